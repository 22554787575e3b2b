//! Every attack with every file tool: nothing outside or hidden is read, and nothing outside or protected is changed.
//!
//! `cargo test -p lango-tools --test it attacked -- --nocapture` prints a row for each.

use crate::attacks::{
    ATTACKS, Aim, Attack, HIDDEN_SECRET, OUTSIDE_NAME, OUTSIDE_SECRET, PROTECTED,
};
use crate::attacks::{create_files, path_of};
use crate::canary;
use crate::support::FileFixture;
use lango_core::Inspection;
use lango_sandbox::Policy;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Each tool with the most harmful arguments for a path, and whether it follows a link at the end of the path.
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
            json!({"path": path, "old": PROTECTED, "new": "changed"}),
            true,
        ),
        ("fs_mkdir", json!({"path": path}), true),
        ("fs_delete", json!({"path": path}), false),
    ]
}

struct AttackSetup {
    fixture: FileFixture,
    workspace: PathBuf,
    outside: PathBuf,
    policy: Policy,
}

impl AttackSetup {
    fn new() -> Self {
        let mut used = None;
        let fixture = FileFixture::with_policy(|policy, _| {
            let workspace = policy.workspace.clone();
            policy.hidden = vec![workspace.join("hidden"), workspace.join("holder/key.txt")];
            policy.read_only = vec![workspace.join("conf/settings.txt")];
            used = Some(policy.clone());
        });
        let workspace = fixture.inside("").canonicalize().unwrap();
        let outside = fixture.outside("").canonicalize().unwrap();
        create_files(&workspace, &outside);
        Self {
            fixture,
            workspace,
            outside,
            policy: used.unwrap(),
        }
    }

    /// Takes snapshots of everything that must not change.
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
        assert!(!text.contains(secret), "{what} revealed a secret: {text}");
    }
}

/// Whether a call may succeed. A call on a link itself, instead of its target, stays inside the workspace.
fn may_succeed(
    setup: &AttackSetup,
    attack: &Attack,
    path: &str,
    tool: &str,
    follows: bool,
) -> bool {
    let takes_link = || {
        let name = path.trim_end_matches("/.").trim_end_matches('/');
        !follows && !name.contains('/') && setup.workspace.join(name).is_symlink()
    };
    match attack.2 {
        Aim::Inside => true,
        Aim::Outside | Aim::Hidden => takes_link(),
        Aim::Protected => {
            !matches!(tool, "fs_write" | "fs_edit" | "fs_mkdir" | "fs_delete") || takes_link()
        }
    }
}

#[test]
fn no_attack_reads_or_changes_forbidden_files() {
    assert!(ATTACKS.len() >= 60);
    let number_of_calls = calls("").len();
    for attack in ATTACKS {
        let mut setup = AttackSetup::new();
        for at in 0..number_of_calls {
            let path = path_of(attack, &setup.workspace, &setup.outside);
            let (tool, arguments, follows) = calls(&path).swap_remove(at);
            let may_succeed = may_succeed(&setup, attack, &path, tool, follows);
            let what = format!("{tool} on {} ({:?})", attack.0, attack.1);

            let before = (setup.canaries(), canary::of_tree(&setup.workspace));
            let preview = setup.fixture.preview(tool, arguments.clone());
            let result = setup
                .fixture
                .call_inspected(tool, arguments, Inspection::default());
            for (before, after) in before.0.iter().zip(&setup.canaries()) {
                canary::assert_same(before, after, &what);
            }

            let said = match &result {
                Ok(text) => text.clone(),
                Err(error) => error.message.clone(),
            };
            assert_silent(&said, &what);
            assert_silent(&preview.unwrap_or_default(), &what);
            assert!(result.is_err() || may_succeed, "{what}: {said}");
            if canary::of_tree(&setup.workspace) != before.1 {
                assert!(
                    result.is_ok(),
                    "{what} failed and changed something: {said}"
                );
                setup = AttackSetup::new();
            }
            let outcome = if result.is_ok() { "inside" } else { "refused" };
            let first: String = said.lines().next().unwrap_or("").chars().take(80).collect();
            println!("{:<48} {tool:<10} {outcome:<8} {first}", attack.0);
        }
    }
}

#[test]
fn an_item_is_not_restored_through_a_link_that_appeared_later() {
    let fixture = FileFixture::new();
    let secret = std::fs::read(fixture.outside("secret.txt")).unwrap();
    for swap in ["", ".."] {
        fixture.write("a/b/c.txt", "mine");
        fixture.text("fs_delete", json!({"path": "a/b/c.txt"}));
        let id = fixture.trash().list().unwrap()[0].id.clone();
        std::fs::remove_dir_all(fixture.inside("a/b")).unwrap();
        fixture.link("a/b", fixture.outside(swap));
        fixture.restore(&id).unwrap_err();
        std::fs::remove_file(fixture.inside("a/b")).unwrap();
    }
    assert!(!fixture.outside("c.txt").exists() && !fixture.outside("../c.txt").exists());
    assert_eq!(
        std::fs::read(fixture.outside("secret.txt")).unwrap(),
        secret
    );
}
