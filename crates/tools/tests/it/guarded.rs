//! Files that other programs act on: a change of them is told before the call, and nothing else than what was told of is
//! changed.

use crate::support::Bench;
use lango_core::{GuardedTarget, Inspection};
use serde_json::{Value, json};

fn guarded(bench: &Bench, tool: &str, arguments: Value) -> Option<GuardedTarget> {
    bench.inspect(tool, arguments).guarded
}

fn write(path: &str) -> Value {
    json!({ "path": path, "content": "new" })
}

#[test]
fn what_configures_other_programs_is_guarded_however_its_path_is_written() {
    let bench = Bench::new();
    bench.write(".vscode/settings.json", "{}");
    bench.write("docs/a.md", "a");
    bench.link("folder-link", ".vscode");
    bench.link("docs/file-link", "../.vscode/settings.json");
    let absolute = bench.inside(".vscode/tasks.json");
    for (path, target) in [
        (".vscode/tasks.json", ".vscode/tasks.json"),
        ("docs/../.vscode/tasks.json", ".vscode/tasks.json"),
        ("./.vscode//tasks.json", ".vscode/tasks.json"),
        (absolute.to_str().unwrap(), ".vscode/tasks.json"),
        ("folder-link/tasks.json", ".vscode/tasks.json"),
        ("docs/file-link", ".vscode/settings.json"),
        (".VSCode/tasks.json", ".VSCode/tasks.json"),
        ("deep/new/agents.md", "deep/new/agents.md"),
        (".cargo/config.toml", ".cargo/config.toml"),
    ] {
        let found = guarded(&bench, "fs_write", write(path)).unwrap_or_else(|| panic!("{path}"));
        assert_eq!(*found.path, *target, "{path}");
        assert!(
            found.reason.contains("configures other programs"),
            "{found:?}"
        );
    }
    assert_eq!(guarded(&bench, "fs_write", write("docs/b.md")), None);
    assert_eq!(
        guarded(&bench, "fs_delete", json!({"path": "docs/a.md"})),
        None
    );
    // Deleting a link changes the link alone.
    assert_eq!(
        guarded(&bench, "fs_delete", json!({"path": "folder-link"})),
        None
    );
}

#[test]
fn a_guarded_target_is_not_changed_by_a_call_that_was_not_asked_for_as_such() {
    let bench = Bench::new();
    bench.write(".vscode/settings.json", "old");
    bench.write("docs/.vscode/settings.json", "old");
    let calls = [
        ("fs_write", write(".vscode/settings.json")),
        ("fs_write", write(".idea/workspace.xml")),
        (
            "fs_edit",
            json!({"path": ".vscode/settings.json", "old": "new", "new": "newer"}),
        ),
        ("fs_mkdir", json!({"path": ".husky"})),
        ("fs_delete", json!({"path": ".vscode/settings.json"})),
        ("fs_delete", json!({"path": "docs"})),
    ];
    for (tool, arguments) in calls {
        let blind = bench.call_inspected(tool, arguments.clone(), Inspection::default());
        let refusal = match blind {
            Err(error) => error.message,
            Ok(text) => panic!("{tool} {arguments}: {text}"),
        };
        // An edit whose text is not there fails for that reason.
        let is_refused = refusal.contains("the user was not asked about it");
        assert!(is_refused || tool == "fs_edit", "{tool}: {refusal}");
        bench.text(tool, arguments);
    }
    assert!(!bench.has("docs") && bench.has(".husky") && bench.has(".idea/workspace.xml"));
}

#[test]
fn a_link_that_is_turned_after_the_question_changes_nothing() {
    let bench = Bench::new();
    for folder in ["notes", ".vscode", ".idea"] {
        bench.write(&format!("{folder}/a"), "old");
    }
    bench.link("link", "notes");
    let harmless = bench.inspect("fs_write", write("link/a"));
    assert_eq!(harmless, Inspection::default());
    let turn = |target: &str| {
        std::fs::remove_file(bench.inside("link")).unwrap();
        bench.link("link", target);
    };
    turn(".idea");
    let asked = bench.inspect("fs_write", write("link/a"));
    turn(".vscode");
    for inspection in [harmless, asked] {
        let refused = bench.call_inspected("fs_write", write("link/a"), inspection);
        let refused = refused.unwrap_err().message;
        assert!(refused.contains("was not asked about it"), "{refused}");
    }
    for folder in ["notes", ".vscode", ".idea"] {
        assert_eq!(bench.read(&format!("{folder}/a")), "old");
    }
}

#[test]
fn a_directory_that_becomes_or_is_a_git_directory_is_guarded() {
    let bench = Bench::new();
    bench.text("fs_mkdir", json!({"path": "docs/objects"}));
    assert_eq!(guarded(&bench, "fs_write", write("docs/refs/x")), None);
    assert_eq!(guarded(&bench, "fs_write", write("docs/HEAD")), None);
    bench.text("fs_mkdir", json!({"path": "docs/refs"}));
    for path in ["docs/HEAD", "docs/head"] {
        let found = guarded(&bench, "fs_write", write(path)).unwrap();
        assert!(
            found.reason.contains("`docs` is a git directory"),
            "{found:?}"
        );
    }
    bench.write("docs/HEAD", "ref: refs/heads/main\n");
    for path in ["docs/config", "docs/hooks/pre-commit", "docs/refs/heads/x"] {
        assert!(guarded(&bench, "fs_write", write(path)).is_some(), "{path}");
    }
    assert!(guarded(&bench, "fs_delete", json!({"path": "docs"})).is_some());
    bench.write("tree/commondir", "../docs\n");
    assert!(guarded(&bench, "fs_write", write("tree/HEAD")).is_some());
    bench.write("other/HEAD", "x");
    let made = json!({"path": "other/commondir/x"});
    assert!(guarded(&bench, "fs_mkdir", made).is_some());
    assert_eq!(guarded(&bench, "fs_write", write("other/notes.md")), None);
}

#[test]
fn what_is_locked_stays_refused_and_is_not_asked_for() {
    let bench = Bench::new();
    for path in [
        ".git/config",
        ".lango/x",
        "lango.toml",
        ".env",
        ".vscode/.git/config",
    ] {
        let inspection = bench.inspect("fs_write", write(path));
        assert_eq!(inspection, Inspection::default(), "{path}");
        let refused = bench.error("fs_write", write(path));
        assert!(refused.contains("kept as it is"), "{refused}");
    }
}
