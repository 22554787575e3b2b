//! Every attack on every file tool: nothing outside or hidden is read, nothing outside or kept is changed.
//!
//! `cargo test -p lango-tools --test it attacked -- --nocapture` prints a row for each.

use crate::attacks::{ATTACKS, Aim, Attack, HIDDEN_SECRET, KEPT, OUTSIDE_NAME, OUTSIDE_SECRET};
use crate::attacks::{lay_out, path_of};
use crate::canary;
use crate::support::Bench;
use lango_core::Inspection;
use lango_sandbox::Policy;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Each tool with the arguments that would do the most with a path, and whether it follows a link at the end of it.
fn calls(path: &str) -> Vec<(&'static str, Value, bool)> {
    vec![
        ("fs_stat", json!({"path": path}), false),
        ("fs_list", json!({"path": path}), true),
        ("fs_read", json!({"path": path}), true),
        ("fs_search", json!({"path": path, "pattern": ""}), true),
        ("fs_search", json!({"path": path, "glob": "**"}), true),
        (
            "fs_write",
            json!({"path": path, "content": "changed"}),
            true,
        ),
        (
            "fs_edit",
            json!({"path": path, "old": OUTSIDE_SECRET, "new": "changed"}),
            true,
        ),
        (
            "fs_edit",
            json!({"path": path, "old": KEPT, "new": "changed"}),
            true,
        ),
        ("fs_mkdir", json!({"path": path}), true),
        ("fs_delete", json!({"path": path}), false),
    ]
}

struct Scene {
    bench: Bench,
    workspace: PathBuf,
    outside: PathBuf,
    policy: Policy,
}

impl Scene {
    fn new() -> Self {
        let mut kept = None;
        let bench = Bench::with_policy(|policy, _| {
            let workspace = policy.workspace.clone();
            policy.hidden = vec![workspace.join("hidden"), workspace.join("holder/key.txt")];
            policy.kept = vec![workspace.join("conf/settings.txt")];
            kept = Some(policy.clone());
        });
        let workspace = bench.inside("").canonicalize().unwrap();
        let outside = bench.outside("").canonicalize().unwrap();
        lay_out(&workspace, &outside);
        Self {
            bench,
            workspace,
            outside,
            policy: kept.unwrap(),
        }
    }

    /// All that must stay as it is.
    fn canaries(&self) -> [canary::Snapshot; 3] {
        [
            canary::of_tree(&self.outside),
            canary::of_tree(&self.workspace.with_file_name("workspace-twin")),
            canary::of_protected(&self.policy),
        ]
    }
}

fn assert_silent(text: &str, what: &str) {
    for secret in [OUTSIDE_SECRET, HIDDEN_SECRET, OUTSIDE_NAME, "root:x:0"] {
        assert!(!text.contains(secret), "{what} gave away: {text}");
    }
}

/// Whether a call may succeed: one that takes a link at the end of a path as itself has not left the workspace.
fn may_succeed(scene: &Scene, attack: &Attack, path: &str, tool: &str, follows: bool) -> bool {
    let takes_link = || {
        let name = path.trim_end_matches("/.").trim_end_matches('/');
        !follows && !name.contains('/') && scene.workspace.join(name).is_symlink()
    };
    match attack.2 {
        Aim::Inside => true,
        Aim::Outside | Aim::Hidden => takes_link(),
        Aim::Kept => {
            !matches!(tool, "fs_write" | "fs_edit" | "fs_mkdir" | "fs_delete") || takes_link()
        }
    }
}

#[test]
fn no_attack_reads_or_changes_what_is_not_its_own() {
    assert!(ATTACKS.len() >= 60);
    let number_of_calls = calls("").len();
    for attack in ATTACKS {
        let mut scene = Scene::new();
        for at in 0..number_of_calls {
            let path = path_of(attack, &scene.workspace, &scene.outside);
            let (tool, arguments, follows) = calls(&path).swap_remove(at);
            let may_succeed = may_succeed(&scene, attack, &path, tool, follows);
            let what = format!("{tool} on {} ({:?})", attack.0, attack.1);

            let before = (scene.canaries(), canary::of_tree(&scene.workspace));
            let preview = scene.bench.preview(tool, arguments.clone());
            let result = scene
                .bench
                .call_inspected(tool, arguments, Inspection::default());
            for (before, after) in before.0.iter().zip(&scene.canaries()) {
                canary::assert_same(before, after, &what);
            }

            let said = match &result {
                Ok(text) => text.clone(),
                Err(error) => error.message.clone(),
            };
            assert_silent(&said, &what);
            assert_silent(&preview.unwrap_or_default(), &what);
            assert!(result.is_err() || may_succeed, "{what}: {said}");
            if canary::of_tree(&scene.workspace) != before.1 {
                assert!(
                    result.is_ok(),
                    "{what} failed and changed something: {said}"
                );
                scene = Scene::new();
            }
            let outcome = if result.is_ok() { "inside" } else { "refused" };
            let first: String = said.lines().next().unwrap_or("").chars().take(80).collect();
            println!("{:<48} {tool:<10} {outcome:<8} {first}", attack.0);
        }
    }
}

#[test]
fn what_is_deleted_is_not_restored_where_a_path_leads_out_since() {
    let bench = Bench::new();
    let secret = std::fs::read(bench.outside("secret.txt")).unwrap();
    for swap in ["", ".."] {
        bench.write("a/b/c.txt", "mine");
        bench.text("fs_delete", json!({"path": "a/b/c.txt"}));
        let id = bench.trash().list().unwrap()[0].id.clone();
        std::fs::remove_dir_all(bench.inside("a/b")).unwrap();
        bench.link("a/b", bench.outside(swap));
        bench.restore(&id).unwrap_err();
        std::fs::remove_file(bench.inside("a/b")).unwrap();
    }
    assert!(!bench.outside("c.txt").exists() && !bench.outside("../c.txt").exists());
    assert_eq!(std::fs::read(bench.outside("secret.txt")).unwrap(), secret);
}
