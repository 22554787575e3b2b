//! Changes that an undo could not restore, because the original is too large or the limits of the turn are reached: the
//! inspection says so, and a call that was inspected as an ordinary edit does not make such a change.

use crate::support::FileFixture;
use lango_core::{Caller, Inspection};
use lango_testkit::tool::caller;
use lango_tools::{UndoLimits, UndoMode};
use serde_json::{Value, json};

const TOO_LARGE: &str = "it was too large to save: 101 B, and the limit is 100 B";

fn write(path: &str) -> Value {
    json!({ "path": path, "content": "new" })
}

fn limited() -> FileFixture {
    FileFixture::new().with_undo_limits(UndoLimits {
        file_bytes: 100,
        turn_bytes: 2_000,
        turn_files: 3,
        ..UndoLimits::default()
    })
}

fn reason(inspection: Inspection) -> Option<String> {
    let edit = inspection.edit.expect("an edit");
    edit.irreversible.map(|reason| reason.to_string())
}

/// Returns why an undo could not restore what a call of the turn `t_1` would replace.
fn irreversible(fixture: &FileFixture, tool: &str, arguments: Value) -> Option<String> {
    reason(fixture.inspect(tool, arguments))
}

#[test]
fn a_change_of_a_file_that_is_too_large_to_save_is_irreversible() {
    let fixture = limited();
    fixture.write("large.txt", format!("old{}", "x".repeat(98)));
    fixture.write("small.txt", format!("old{}", "x".repeat(97)));
    fixture.link("link", "large.txt");
    let edit = |path: &str| json!({ "path": path, "old": "old", "new": "new" });
    for path in ["large.txt", "link"] {
        for (tool, arguments) in [("fs_write", write(path)), ("fs_edit", edit(path))] {
            let found = irreversible(&fixture, tool, arguments).expect(tool);
            let expected =
                format!("`lango undo` could not restore `large.txt`, because {TOO_LARGE}");
            assert_eq!(found, expected, "{tool}");
        }
    }
    for (tool, arguments) in [
        ("fs_write", write("small.txt")),
        ("fs_edit", edit("small.txt")),
        ("fs_write", write("new.txt")),
        ("fs_mkdir", json!({ "path": "new" })),
        // It goes to the trash, which has no limit.
        ("fs_delete", json!({ "path": "large.txt" })),
    ] {
        let name = format!("{tool} {arguments}");
        assert_eq!(irreversible(&fixture, tool, arguments), None, "{name}");
    }
    let fixture = FileFixture::new();
    fixture.write("large.txt", "x".repeat((4 << 20) + 1));
    fixture.write("full.txt", "x".repeat(4 << 20));
    assert!(irreversible(&fixture, "fs_write", write("large.txt")).is_some());
    assert!(irreversible(&fixture, "fs_write", write("full.txt")).is_none());
}

#[test]
fn a_change_beyond_the_limits_of_its_turn_is_irreversible() {
    let fixture = limited();
    for name in ["a", "b", "c", "d"] {
        fixture.write(name, "old");
    }
    for name in ["a", "b", "c"] {
        assert_eq!(irreversible(&fixture, "fs_write", write(name)), None);
        fixture.call_in("t_1", "fs_write", write(name));
    }
    let found = irreversible(&fixture, "fs_write", write("d")).expect("the limit is reached");
    assert!(found.contains("too many files; the limit is 3"), "{found}");
    // Its original is saved, or there is none.
    for name in ["a", "new.txt"] {
        assert_eq!(irreversible(&fixture, "fs_write", write(name)), None);
    }
    let next_turn = Caller {
        turn: "t_2".into(),
        ..caller()
    };
    assert_eq!(
        reason(fixture.inspect_as(&next_turn, "fs_write", write("d"))),
        None
    );

    let limits = UndoLimits {
        turn_bytes: 800,
        ..UndoLimits::default()
    };
    let fixture = FileFixture::new().with_undo_limits(limits);
    fixture.write("a", "x".repeat(400));
    fixture.write("b", "x".repeat(400));
    fixture.call_in("t_1", "fs_write", write("a"));
    let found = irreversible(&fixture, "fs_write", write("b")).expect("the limit is reached");
    assert!(found.contains("changed too much to save all"), "{found}");
}

#[test]
fn without_an_undo_store_replacing_a_file_is_irreversible() {
    let fixture = FileFixture::new().without_undo();
    fixture.write("a.txt", "old");
    let edit = json!({ "path": "a.txt", "old": "old", "new": "new" });
    for (tool, arguments) in [("fs_write", write("a.txt")), ("fs_edit", edit)] {
        let found = irreversible(&fixture, tool, arguments).expect(tool);
        let expected =
            "`lango undo` could not restore `a.txt`, because originals are not saved in this run";
        assert_eq!(found, expected, "{tool}");
    }
    for (tool, arguments) in [
        ("fs_write", write("new.txt")),
        ("fs_mkdir", json!({ "path": "new" })),
        // It goes to the trash.
        ("fs_delete", json!({ "path": "a.txt" })),
    ] {
        assert_eq!(irreversible(&fixture, tool, arguments), None, "{tool}");
    }
    let refused = fixture.call_inspected("fs_write", write("a.txt"), ordinary_edit());
    let refused = refused.expect_err("it was not approved").message;
    assert!(refused.contains("has not approved"), "{refused}");
    assert_eq!(fixture.read("a.txt"), "old");
    fixture.text("fs_write", write("a.txt"));
    assert_eq!(fixture.read("a.txt"), "new");
}

/// Returns the inspection of an edit that needs no question.
fn ordinary_edit() -> Inspection {
    Inspection {
        edit: Some(Box::default()),
        ..Inspection::default()
    }
}

#[test]
fn a_call_inspected_as_an_ordinary_edit_replaces_nothing_that_is_not_saved() {
    let fixture = limited();
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        fixture.write(name, "old");
    }
    // All calls of a reply are inspected before the first one runs.
    let inspections = names.map(|name| fixture.inspect("fs_write", write(name)));
    for (name, mut inspection) in names.into_iter().zip(inspections) {
        inspection.allow_later_changes();
        let result = fixture.call_inspected("fs_write", write(name), inspection);
        if ["d", "e"].contains(&name) {
            let refused = result.expect_err(name).message;
            let is_refused = refused.contains("has not approved this change");
            assert!(
                is_refused && refused.contains("too many files"),
                "{refused}"
            );
        } else {
            result.unwrap();
        }
    }
    assert_eq!(fixture.read("d"), "old");
    fixture.undo("t_1", UndoMode::Whole);
    assert!(names.iter().all(|name| fixture.read(name) == "old"));

    let fixture = limited();
    fixture.write("grows.txt", "old");
    let mut inspection = fixture.inspect("fs_write", write("grows.txt"));
    inspection.allow_later_changes();
    fixture.write("grows.txt", "x".repeat(101));
    let refused = fixture.call_inspected("fs_write", write("grows.txt"), inspection);
    let refused = refused.expect_err("too large").message;
    assert!(refused.contains(TOO_LARGE), "{refused}");
    fixture.text("fs_write", write("grows.txt"));
    assert_eq!(
        fixture.read("grows.txt"),
        "new",
        "an approved change is made"
    );
}

/// A line of the record lists every new folder, so a path with thousands of them made a record that could not be read.
#[test]
fn a_path_with_too_many_new_folders_does_not_switch_off_the_undo() {
    let fixture = FileFixture::new();
    let folders = |number: usize| vec!["\u{1}"; number].join("/");
    for (tool, arguments) in [
        ("fs_mkdir", json!({ "path": folders(65) })),
        ("fs_mkdir", json!({ "path": folders(2_000) })),
        ("fs_write", write(&format!("{}/file", folders(64)))),
    ] {
        let error = fixture.error(tool, arguments);
        assert!(
            error.contains("would need more than 64 new folders"),
            "{error}"
        );
    }
    assert!(!fixture.has("\u{1}"));
    fixture.text("fs_mkdir", json!({ "path": folders(64) }));
    fixture.write("a.txt", "old");
    fixture.text("fs_write", write("a.txt"));
    fixture.undo_all("t_1");
    assert_eq!(fixture.read("a.txt"), "old");
    assert!(!fixture.has("\u{1}"));
}

#[test]
fn a_change_of_a_turn_whose_record_is_full_is_irreversible() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "old");
    fixture.write("b.txt", "old");
    fixture.text("fs_write", write("a.txt"));
    let session = std::fs::read_dir(fixture.undo_store().path()).unwrap();
    let session = session.map(|entry| entry.unwrap().path()).next().unwrap();
    let turn = std::fs::read_dir(session).unwrap();
    let record = turn.map(|entry| entry.unwrap().path()).next().unwrap();
    let record = record.join("record.jsonl");
    let mut text = std::fs::read(&record).unwrap();
    text.extend(" ".repeat(7 << 20).into_bytes());
    std::fs::write(&record, &text).unwrap();
    std::fs::create_dir(fixture.inside("folder")).unwrap();
    let (delete, make) = (json!({ "path": "folder" }), json!({ "path": "new" }));
    for (tool, arguments) in [
        ("fs_write", write("a.txt")),
        ("fs_write", write("b.txt")),
        ("fs_write", write("new.txt")),
        ("fs_delete", json!({ "path": "b.txt" })),
        ("fs_delete", delete.clone()),
        ("fs_mkdir", make.clone()),
    ] {
        let found = irreversible(&fixture, tool, arguments).expect(tool);
        assert!(
            found.contains("the record of the turn is full; the limit is 8.3 MB"),
            "{found}"
        );
    }
    // It changes nothing.
    assert_eq!(irreversible(&fixture, "fs_mkdir", delete.clone()), None);
    for (tool, arguments) in [
        ("fs_write", write("new.txt")),
        ("fs_delete", delete),
        ("fs_mkdir", make),
    ] {
        let refused = fixture.call_inspected(tool, arguments, ordinary_edit());
        let refused = refused.expect_err("it was not approved").message;
        assert!(refused.contains("has not approved"), "{refused}");
    }
    assert!(fixture.has("folder") && !fixture.has("new") && !fixture.has("new.txt"));
    let refused = fixture.call_inspected("fs_write", write("b.txt"), ordinary_edit());
    let refused = refused.expect_err("it was not approved").message;
    assert!(refused.contains("has not approved"), "{refused}");
    fixture.text("fs_write", write("b.txt"));
    assert_eq!(fixture.read("b.txt"), "new", "an approved change is made");
    fixture.undo_all("t_1");
    assert_eq!(fixture.read("a.txt"), "old");
}
