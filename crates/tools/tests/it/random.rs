//! With random trees, links and paths, nothing outside is read or changed, and no protected file is changed.

use crate::canary;
use crate::support::FileFixture;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::Path;

const SECRET: &str = "canary-beside-the-workspace";
const HIDDEN: &str = "canary-inside-of-it";
const SECRET_NAME: &str = "name-beside-the-workspace";

/// A small set of names, so that paths often collide. Some are protected or hidden.
fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a", "b", "f.txt", ".git", ".env", ".GIT", "hidden", "kept.txt",
    ])
}

/// A path of names and dots, sometimes with the absolute path of one of the folders.
fn path() -> impl Strategy<Value = String> {
    let part = prop_oneof![6 => name(), 2 => Just(".."), 1 => Just("."), 1 => Just("")];
    let start = prop_oneof![
        8 => Just(""),
        1 => Just("{base}/outside/"),
        1 => Just("{base}/workspace/"),
        1 => Just("../outside/"),
        1 => Just("/proc/self/root{base}/outside/"),
    ];
    (start, prop::collection::vec(part, 0..4))
        .prop_map(|(start, parts)| format!("{start}{}", parts.join("/")))
}

#[derive(Debug, Clone)]
enum Entry {
    File(String),
    Folder(String),
    Link(String, String),
}

/// An entry up to three levels deep.
fn entry() -> impl Strategy<Value = Entry> {
    let place = || prop::collection::vec(name(), 1..4).prop_map(|names| names.join("/"));
    prop_oneof![
        3 => place().prop_map(Entry::File),
        2 => place().prop_map(Entry::Folder),
        4 => (place(), path()).prop_map(|(place, target)| Entry::Link(place, target)),
    ]
}

impl Entry {
    /// Creates the entry, unless another one is in the way. The content shows where a file is.
    fn create(&self, base: &Path, root: &Path, content: &str) {
        // Links are not followed, because the entry would be created in another folder.
        let make = |place: &str| {
            let mut path = root.to_owned();
            for name in Path::new(place) {
                match path.symlink_metadata() {
                    Ok(metadata) if metadata.is_dir() => {}
                    Ok(_) => return None,
                    Err(_) => std::fs::create_dir(&path).unwrap(),
                }
                path.push(name);
            }
            path.symlink_metadata().is_err().then_some(path)
        };
        match self {
            Self::File(place) => {
                if let Some(path) = make(place) {
                    let is_hidden = place.split('/').next() == Some("hidden");
                    let content = if is_hidden { HIDDEN } else { content };
                    std::fs::write(path, format!("{content}\nline\n")).unwrap();
                }
            }
            Self::Folder(place) => {
                if let Some(path) = make(place) {
                    std::fs::create_dir(path).unwrap();
                }
            }
            Self::Link(place, target) => {
                let target = target.replace("{base}", base.to_str().unwrap());
                if let Some(path) = make(place)
                    && !target.is_empty()
                {
                    symlink(target, path).unwrap();
                }
            }
        }
    }
}

fn call() -> impl Strategy<Value = (&'static str, Value)> {
    let tool = prop::sample::select(vec![
        "fs_list",
        "fs_read",
        "fs_stat",
        "fs_search",
        "fs_write",
        "fs_edit",
        "fs_mkdir",
        "fs_delete",
        "restore",
    ]);
    (tool, path()).prop_map(|(tool, path)| {
        let arguments = match tool {
            "fs_search" => json!({"path": path, "pattern": ""}),
            "fs_write" => json!({"path": path, "content": "written\nline\n"}),
            "fs_edit" => json!({"path": path, "old": "line", "new": "other line"}),
            _ => json!({"path": path}),
        };
        (tool, arguments)
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_path_leads_outside(
        inside in prop::collection::vec(entry(), 0..14),
        outside in prop::collection::vec(entry(), 0..6),
        calls in prop::collection::vec(call(), 1..14),
    ) {
        let mut policy = None;
        let fixture = FileFixture::with_policy(|ours, _| {
            ours.hidden = vec![ours.workspace.join("hidden")];
            ours.read_only = vec![ours.workspace.join("kept.txt")];
            policy = Some(ours.clone());
        });
        let policy = policy.unwrap();
        let base = policy.workspace.parent().unwrap().to_owned();
        let beside = base.join("outside");
        std::fs::write(beside.join(SECRET_NAME), SECRET).unwrap();
        std::fs::write(beside.join("secret.txt"), SECRET).unwrap();
        // Some protected files always exist, so that many paths reach them.
        for path in ["hidden/f.txt", ".git/f.txt", "a/.env", "kept.txt"] {
            Entry::File(path.to_owned()).create(&base, &policy.workspace, "protected");
        }
        for entry in &outside {
            entry.create(&base, &beside, SECRET);
        }
        for entry in &inside {
            entry.create(&base, &policy.workspace, "inside");
        }
        let before = (canary::of_tree(&beside), canary::of_protected(&policy));
        for (tool, arguments) in calls {
            let path = arguments["path"].as_str().unwrap();
            let path = path.replace("{base}", base.to_str().unwrap());
            let mut arguments = arguments.clone();
            arguments["path"] = json!(path);
            let mut said = fixture_preview(&fixture, tool, &arguments);
            if tool == "restore" {
                for item in fixture.trash().list().unwrap() {
                    said += &format!("{:?}", fixture.restore(&item.id));
                }
            } else {
                said += &match fixture.call(tool, arguments.clone()) {
                    Ok(text) => text,
                    Err(error) => error.message,
                };
            }
            for secret in [SECRET, SECRET_NAME, HIDDEN] {
                prop_assert!(!said.contains(secret), "{} {}: {}", tool, arguments, said);
            }
            let after = (canary::of_tree(&beside), canary::of_protected(&policy));
            prop_assert!(after == before, "{} {}: {}", tool, arguments, said);
        }
        let mut around: Vec<_> = std::fs::read_dir(&base).unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        around.sort();
        prop_assert_eq!(around, ["outside", "workspace"]);
    }
}

fn fixture_preview(fixture: &FileFixture, tool: &str, arguments: &Value) -> String {
    match tool {
        "restore" => String::new(),
        tool => fixture.preview(tool, arguments.clone()).unwrap_or_default(),
    }
}
