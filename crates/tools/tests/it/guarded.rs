//! Guarded files, which other programs act on: the inspection reports a change of them before the call, and the call
//! changes only the reported file.

use crate::support::FileFixture;
use lango_core::{GuardedTarget, Inspection};
use serde_json::{Value, json};

fn guarded(fixture: &FileFixture, tool: &str, arguments: Value) -> Option<GuardedTarget> {
    fixture.inspect(tool, arguments).guarded
}

fn write(path: &str) -> Value {
    json!({ "path": path, "content": "new" })
}

#[test]
fn files_that_configure_other_programs_are_guarded_however_the_path_is_written() {
    let fixture = FileFixture::new();
    fixture.write(".vscode/settings.json", "{}");
    fixture.write("docs/a.md", "a");
    fixture.link("folder-link", ".vscode");
    fixture.link("docs/file-link", "../.vscode/settings.json");
    let absolute = fixture.inside(".vscode/tasks.json");
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
        let found = guarded(&fixture, "fs_write", write(path)).unwrap_or_else(|| panic!("{path}"));
        assert_eq!(*found.path, *target, "{path}");
        assert!(
            found.reason.contains("configures other programs"),
            "{found:?}"
        );
    }
    assert_eq!(guarded(&fixture, "fs_write", write("docs/b.md")), None);
    assert_eq!(
        guarded(&fixture, "fs_delete", json!({"path": "docs/a.md"})),
        None
    );
    // Deleting a link does not affect its target.
    assert_eq!(
        guarded(&fixture, "fs_delete", json!({"path": "folder-link"})),
        None
    );
}

#[test]
fn a_call_that_was_not_inspected_does_not_change_a_guarded_file() {
    let fixture = FileFixture::new();
    fixture.write(".vscode/settings.json", "old");
    fixture.write("docs/.vscode/settings.json", "old");
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
        let blind = fixture.call_inspected(tool, arguments.clone(), Inspection::default());
        let refusal = match blind {
            Err(error) => error.message,
            Ok(text) => panic!("{tool} {arguments}: {text}"),
        };
        // The edit fails because its text does not occur.
        let is_refused = refusal.contains("the user has not approved this change");
        assert!(is_refused || tool == "fs_edit", "{tool}: {refusal}");
        fixture.text(tool, arguments);
    }
    assert!(!fixture.has("docs") && fixture.has(".husky") && fixture.has(".idea/workspace.xml"));
}

#[test]
fn redirecting_a_link_after_the_inspection_changes_nothing() {
    let fixture = FileFixture::new();
    for folder in ["notes", ".vscode", ".idea"] {
        fixture.write(&format!("{folder}/a"), "old");
    }
    fixture.link("link", "notes");
    let harmless = fixture.inspect("fs_write", write("link/a"));
    assert_eq!(harmless.guarded, None);
    let turn = |target: &str| {
        std::fs::remove_file(fixture.inside("link")).unwrap();
        fixture.link("link", target);
    };
    turn(".idea");
    let asked = fixture.inspect("fs_write", write("link/a"));
    turn(".vscode");
    for inspection in [harmless, asked] {
        let refused = fixture.call_inspected("fs_write", write("link/a"), inspection);
        let refused = refused.unwrap_err().message;
        assert!(
            refused.contains("has not approved this change"),
            "{refused}"
        );
    }
    for folder in ["notes", ".vscode", ".idea"] {
        assert_eq!(fixture.read(&format!("{folder}/a")), "old");
    }
}

#[test]
fn a_directory_that_becomes_or_is_a_git_directory_is_guarded() {
    let fixture = FileFixture::new();
    fixture.text("fs_mkdir", json!({"path": "docs/objects"}));
    assert_eq!(guarded(&fixture, "fs_write", write("docs/refs/x")), None);
    assert_eq!(guarded(&fixture, "fs_write", write("docs/HEAD")), None);
    fixture.text("fs_mkdir", json!({"path": "docs/refs"}));
    for path in ["docs/HEAD", "docs/head"] {
        let found = guarded(&fixture, "fs_write", write(path)).unwrap();
        assert!(
            found.reason.contains("`docs` is a git directory"),
            "{found:?}"
        );
    }
    fixture.write("docs/HEAD", "ref: refs/heads/main\n");
    for path in ["docs/config", "docs/hooks/pre-commit", "docs/refs/heads/x"] {
        assert!(
            guarded(&fixture, "fs_write", write(path)).is_some(),
            "{path}"
        );
    }
    assert!(guarded(&fixture, "fs_delete", json!({"path": "docs"})).is_some());
    fixture.write("tree/commondir", "../docs\n");
    assert!(guarded(&fixture, "fs_write", write("tree/HEAD")).is_some());
    fixture.write("other/HEAD", "x");
    let made = json!({"path": "other/commondir/x"});
    assert!(guarded(&fixture, "fs_mkdir", made).is_some());
    assert_eq!(guarded(&fixture, "fs_write", write("other/notes.md")), None);
}

#[test]
fn locked_files_are_refused_without_asking() {
    let fixture = FileFixture::new();
    for path in [
        ".git/config",
        ".lango/x",
        "lango.toml",
        ".env",
        ".vscode/.git/config",
    ] {
        let inspection = fixture.inspect("fs_write", write(path));
        assert_eq!(inspection.guarded, None, "{path}");
        let refused = fixture.error("fs_write", write(path));
        assert!(refused.contains("is protected"), "{refused}");
    }
}
