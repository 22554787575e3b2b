//! Whatever trees, links and paths there are: nothing outside is read or changed, nothing kept is changed.

use crate::canary;
use crate::support::Bench;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::Path;

const SECRET: &str = "canary-beside-the-workspace";
const HIDDEN: &str = "canary-inside-of-it";
const SECRET_NAME: &str = "name-beside-the-workspace";

/// Names that meet each other often, some of them kept or hidden.
fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a", "b", "f.txt", ".git", ".env", ".GIT", "hidden", "kept.txt",
    ])
}

/// A path: names and dots, sometimes from the root of one of the folders.
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

/// Something at a few names deep.
fn entry() -> impl Strategy<Value = Entry> {
    let place = || prop::collection::vec(name(), 1..4).prop_map(|names| names.join("/"));
    prop_oneof![
        3 => place().prop_map(Entry::File),
        2 => place().prop_map(Entry::Folder),
        4 => (place(), path()).prop_map(|(place, target)| Entry::Link(place, target)),
    ]
}

impl Entry {
    /// Lays it out, unless something is in its way. Content tells where it lies.
    fn lay_out(&self, base: &Path, root: &Path, content: &str) {
        // A link on the way would lay things out elsewhere.
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
    fn no_tree_and_no_path_leads_out(
        inside in prop::collection::vec(entry(), 0..14),
        outside in prop::collection::vec(entry(), 0..6),
        calls in prop::collection::vec(call(), 1..14),
    ) {
        let mut policy = None;
        let bench = Bench::with_policy(|ours, _| {
            ours.hidden = vec![ours.workspace.join("hidden")];
            ours.kept = vec![ours.workspace.join("kept.txt")];
            policy = Some(ours.clone());
        });
        let policy = policy.unwrap();
        let base = policy.workspace.parent().unwrap().to_owned();
        let beside = base.join("outside");
        std::fs::write(beside.join(SECRET_NAME), SECRET).unwrap();
        std::fs::write(beside.join("secret.txt"), SECRET).unwrap();
        // Some of what is protected is always there, so that many paths meet it.
        for place in ["hidden/f.txt", ".git/f.txt", "a/.env", "kept.txt"] {
            Entry::File(place.to_owned()).lay_out(&base, &policy.workspace, "kept");
        }
        for entry in &outside {
            entry.lay_out(&base, &beside, SECRET);
        }
        for entry in &inside {
            entry.lay_out(&base, &policy.workspace, "inside");
        }
        let before = (canary::of_tree(&beside), canary::of_protected(&policy));
        for (tool, arguments) in calls {
            let path = arguments["path"].as_str().unwrap();
            let path = path.replace("{base}", base.to_str().unwrap());
            let mut arguments = arguments.clone();
            arguments["path"] = json!(path);
            let mut said = bench_preview(&bench, tool, &arguments);
            if tool == "restore" {
                for item in bench.trash().list().unwrap() {
                    said += &format!("{:?}", bench.restore(&item.id));
                }
            } else {
                said += &match bench.call(tool, arguments.clone()) {
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

fn bench_preview(bench: &Bench, tool: &str, arguments: &Value) -> String {
    match tool {
        "restore" => String::new(),
        tool => bench.preview(tool, arguments.clone()).unwrap_or_default(),
    }
}
