//! Files that other programs execute: the inspection reports why the change is more than an ordinary edit, and a call
//! that was inspected as an ordinary edit does not change such a file.

use crate::race::{ROUNDS, Swapper};
use crate::support::FileFixture;
use lango_core::{FileEdit, Inspection};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn caution(fixture: &FileFixture, tool: &str, arguments: Value) -> Option<String> {
    let edit = fixture.inspect(tool, arguments).edit.expect("an edit");
    edit.caution.map(|caution| caution.to_string())
}

fn write(path: &str) -> Value {
    json!({ "path": path, "content": "new" })
}

fn ordinary() -> Inspection {
    Inspection {
        edit: Some(Box::new(FileEdit::default())),
        ..Inspection::default()
    }
}

fn make_executable(path: &Path) {
    std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

fn is_executable(path: &Path) -> bool {
    path.metadata().unwrap().permissions().mode() & 0o111 != 0
}

/// A workspace with ordinary files, files that other programs execute, and links between them.
fn fixture() -> FileFixture {
    let fixture =
        FileFixture::with_policy(|policy, path| policy.write = vec![path.join("outside")]);
    for name in [
        "notes.md",
        "src/main.rs",
        "target.txt",
        "tool",
        "Makefile",
        "dir/run.sh",
    ] {
        fixture.write(name, "old");
    }
    fixture.write("script", "#!/bin/sh\nold\n");
    make_executable(&fixture.inside("tool"));
    fixture.link("to-script", "script");
    fixture.link("to-tool", "tool");
    fixture.link("justfile", "target.txt");
    fixture.link("through", "justfile");
    fixture
}

#[test]
fn a_change_of_a_file_that_other_programs_execute_has_a_caution() {
    let fixture = fixture();
    let outside = fixture.outside("new.txt").to_str().unwrap().to_owned();
    for (path, reason) in [
        ("Makefile", "`Makefile` is executed by make"),
        ("new/MAKEFILE", "`new/MAKEFILE` is executed by make"),
        ("dir/../Makefile", "`Makefile` is executed by make"),
        ("web/package.json", "is executed by npm"),
        ("tool", "`tool` is executable"),
        ("to-tool", "`tool` is executable"),
        ("script", "`script` is a script"),
        ("to-script", "`script` is a script"),
        // The name of a link counts, too.
        ("justfile", "`justfile` is executed by just"),
        ("through", "`justfile` is executed by just"),
        (&outside, "is outside the folder that the agents work in"),
    ] {
        let found = caution(&fixture, "fs_write", write(path)).unwrap_or_else(|| panic!("{path}"));
        assert!(found.contains(reason), "{path}: {found}");
    }
    let script = json!({ "path": "new", "content": "#!/bin/sh\n" });
    let found = caution(&fixture, "fs_write", script).unwrap();
    assert!(found.contains("`new` is a script"), "{found}");
    let into_script = json!({ "path": "notes.md", "old": "old", "new": "#!/bin/sh" });
    assert!(caution(&fixture, "fs_edit", into_script).is_some());
    let from_script = json!({ "path": "script", "old": "#!/bin/sh\n", "new": "" });
    assert!(caution(&fixture, "fs_edit", from_script).is_some());
    assert!(caution(&fixture, "fs_mkdir", json!({ "path": ".cargo/x" })).is_some());
    for path in ["Makefile", "tool", "script", "justfile", "dir"] {
        let delete = json!({ "path": path });
        assert!(caution(&fixture, "fs_delete", delete).is_some(), "{path}");
    }
}

#[test]
fn a_change_of_an_ordinary_file_has_no_caution() {
    let fixture = fixture();
    for path in ["notes.md", "src/main.rs", "src/new/a.py", "target.txt"] {
        assert_eq!(caution(&fixture, "fs_write", write(path)), None, "{path}");
    }
    let edit = json!({ "path": "notes.md", "old": "ld", "new": "ld\n#!" });
    assert_eq!(caution(&fixture, "fs_edit", edit), None);
    assert_eq!(
        caution(&fixture, "fs_mkdir", json!({ "path": "build" })),
        None
    );
    for path in ["notes.md", "src", "to-script"] {
        let delete = json!({ "path": path });
        assert_eq!(caution(&fixture, "fs_delete", delete), None, "{path}");
    }
}

#[test]
fn a_call_inspected_as_an_ordinary_edit_does_not_change_a_file_that_other_programs_execute() {
    let fixture = fixture();
    let outside = fixture.outside("secret.txt").to_str().unwrap().to_owned();
    let shebang = json!({ "path": "notes.md", "content": "#!/bin/sh\n" });
    let calls = [
        ("fs_write", write("Makefile")),
        ("fs_write", write("tool")),
        ("fs_write", write("to-script")),
        ("fs_write", write("justfile")),
        ("fs_write", write(&outside)),
        ("fs_write", shebang),
        (
            "fs_edit",
            json!({ "path": "notes.md", "old": "old", "new": "#!x" }),
        ),
        (
            "fs_edit",
            json!({ "path": "tool", "old": "old", "new": "new" }),
        ),
        ("fs_mkdir", json!({ "path": ".buildkite" })),
        ("fs_delete", json!({ "path": "dir" })),
        ("fs_delete", json!({ "path": "Makefile" })),
    ];
    // A caution that was approved for another file does not count either.
    let other = fixture.inspect("fs_write", write("script"));
    for (tool, arguments) in calls {
        for inspection in [ordinary(), Inspection::default(), other.clone()] {
            let is_other = inspection == other && arguments["path"] == "to-script";
            if is_other {
                continue;
            }
            let refused = fixture.call_inspected(tool, arguments.clone(), inspection);
            let refused = refused.expect_err("not approved").message;
            let is_refused = refused.contains("has not approved this change");
            assert!(is_refused, "{tool} {arguments}: {refused}");
        }
    }
    assert_eq!(fixture.read("Makefile"), "old");
    assert_eq!(fixture.read("notes.md"), "old");
    assert!(fixture.has("dir/run.sh") && !fixture.has(".buildkite"));
    fixture.text("fs_write", write("tool"));
    assert!(
        is_executable(&fixture.inside("tool")),
        "an approved change keeps the bits"
    );
}

#[test]
fn swapping_an_ordinary_file_for_an_executable_one_never_gives_new_content_executable_bits() {
    const CALLS: usize = 3;
    let fixture = FileFixture::new();
    let (mut done, mut refused) = (0, 0);
    for _ in 0..ROUNDS / CALLS {
        fixture.write("notes.md", "old");
        fixture.write("tool", "old");
        make_executable(&fixture.inside("tool"));
        let swapper = Swapper::start(&fixture, ["notes.md", "tool"]);
        for _ in 0..CALLS {
            match fixture.call_inspected("fs_write", write("notes.md"), ordinary()) {
                Ok(_) => done += 1,
                Err(_) => refused += 1,
            }
        }
        drop(swapper);
        for name in ["notes.md", "tool"] {
            let is_executable = is_executable(&fixture.inside(name));
            assert!(!is_executable || fixture.read(name) == "old", "{name}");
            std::fs::remove_file(fixture.inside(name)).unwrap();
        }
    }
    assert!(
        done > 0 && refused > 0,
        "the swapping had no effect: {done} done, {refused} refused"
    );
    println!("{done} done, {refused} refused");
}
