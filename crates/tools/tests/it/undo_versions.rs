//! What others write to a file between two changes of a turn: it is saved before it is replaced, and an undo moves it to
//! the trash.

use crate::support::FileFixture;
use lango_core::{Caller, SkippedPath};
use lango_testkit::tool::caller;
use lango_tools::{UndoLimits, UndoMode, UndoOutcome};
use serde_json::{Value, json};

fn write(path: &str, content: &str) -> Value {
    json!({"path": path, "content": content})
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old": old, "new": new})
}

/// Returns why an undo could not restore what a call of the turn `t_1` would replace.
fn irreversible(fixture: &FileFixture, tool: &str, arguments: Value) -> Option<String> {
    let edit = fixture.inspect(tool, arguments).edit.expect("an edit");
    edit.irreversible.map(|reason| reason.to_string())
}

/// Returns the contents of the files in the trash, in alphabetical order.
fn trashed(fixture: &FileFixture) -> Vec<String> {
    let items = fixture.trash().list().unwrap().into_iter();
    let content = |id| std::fs::read_to_string(fixture.trash().path().join(id)).unwrap();
    let mut contents: Vec<String> = items.map(|item| content(item.id)).collect();
    contents.sort();
    contents
}

#[test]
fn what_a_user_wrote_during_a_turn_is_in_the_trash_after_an_undo() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "original");
    fixture.text("fs_write", write("a.txt", "first"));
    fixture.write("a.txt", "mine");
    assert_eq!(
        irreversible(&fixture, "fs_write", write("a.txt", "x")),
        None
    );
    fixture.text("fs_write", write("a.txt", "second"));
    fixture.write("a.txt", "mine again");
    fixture.text("fs_edit", edit("a.txt", "again", "no longer"));
    fixture.text("fs_write", write("a.txt", "third"));
    let steps = fixture.check_undo("t_1");
    assert_eq!(steps.len(), 1);
    assert!(steps[0].has_other_changes && !steps[0].discards_other_changes);
    fixture.undo_all("t_1");
    assert_eq!(fixture.read("a.txt"), "original");
    assert_eq!(trashed(&fixture), ["mine", "mine again"]);
    let item = fixture.trash().list().unwrap().remove(0);
    std::fs::remove_file(fixture.inside("a.txt")).unwrap();
    fixture.restore(&item.id).unwrap();
    assert!(fixture.read("a.txt").starts_with("mine"));
}

#[test]
fn a_file_that_the_turn_created_and_a_user_changed_is_in_the_trash_after_an_undo() {
    let fixture = FileFixture::new();
    fixture.text("fs_write", write("new.txt", "first"));
    fixture.write("new.txt", "mine");
    fixture.text("fs_write", write("new.txt", "second"));
    fixture.undo_all("t_1");
    assert!(!fixture.has("new.txt"));
    assert_eq!(trashed(&fixture), ["mine"]);
}

/// After a crash an idempotent call runs again, although the file may have changed meanwhile.
#[test]
fn what_a_call_replaces_when_it_runs_again_is_saved() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "original");
    fixture.text("fs_write", write("a.txt", "written"));
    fixture.write("a.txt", "mine");
    fixture.text("fs_write", write("a.txt", "written"));
    fixture.undo_all("t_1");
    assert_eq!(fixture.read("a.txt"), "original");
    assert_eq!(trashed(&fixture), ["mine"]);
}

#[test]
fn a_call_that_was_recorded_but_not_made_has_no_other_version_when_it_runs_again() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "original");
    fixture.text("fs_write", write("a.txt", "written"));
    fixture.write("a.txt", "original");
    fixture.text("fs_write", write("a.txt", "written"));
    assert!(!fixture.check_undo("t_1")[0].has_other_changes);
    fixture.undo_all("t_1");
    assert_eq!(trashed(&fixture), [""; 0]);
}

#[test]
fn replacing_a_version_that_is_not_saved_is_irreversible() {
    let limits = UndoLimits {
        turn_files: 1,
        ..UndoLimits::default()
    };
    let fixture = FileFixture::new().with_undo_limits(limits);
    fixture.write("a.txt", "original");
    fixture.text("fs_write", write("a.txt", "first"));
    let write = || write("a.txt", "second");
    let edit = || edit("a.txt", "mine", "yours");
    assert_eq!(irreversible(&fixture, "fs_write", write()), None);
    let mut ordinary = fixture.inspect("fs_write", write());
    ordinary.allow_later_changes();
    fixture.write("a.txt", "mine");
    for (tool, arguments) in [("fs_write", write()), ("fs_edit", edit())] {
        let reason = irreversible(&fixture, tool, arguments).expect(tool);
        assert!(reason.contains("too many files"), "{reason}");
    }
    let refused = fixture.call_inspected("fs_write", write(), ordinary);
    let refused = refused.expect_err("it was not approved").message;
    assert!(refused.contains("has not approved"), "{refused}");
    assert_eq!(fixture.read("a.txt"), "mine");
    fixture.text("fs_write", write());
    assert!(fixture.check_undo("t_1")[0].discards_other_changes);
}

/// An undo leaves the file as it is, so it would never move a saved version to the trash.
#[test]
fn replacing_a_version_of_a_file_whose_original_is_not_saved_is_irreversible() {
    let limits = UndoLimits {
        file_bytes: 100,
        ..UndoLimits::default()
    };
    let fixture = FileFixture::new().with_undo_limits(limits);
    fixture.write("a.txt", "x".repeat(101));
    fixture.text("fs_write", write("a.txt", "first"));
    let second = || write("a.txt", "second");
    assert_eq!(irreversible(&fixture, "fs_write", second()), None);
    fixture.write("a.txt", "mine");
    let reason = irreversible(&fixture, "fs_write", second()).expect("it is not saved");
    assert!(reason.contains("too large to save: 101 B"), "{reason}");
    fixture.text("fs_write", second());
    assert!(fixture.check_undo("t_1")[0].discards_other_changes);
}

#[test]
fn a_version_is_preserved_until_its_file_is_undone() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "original");
    fixture.write("b.txt", "original");
    fixture.text("fs_write", write("a.txt", "first"));
    fixture.text("fs_write", write("b.txt", "first"));
    fixture.write("a.txt", "mine");
    fixture.text("fs_write", write("a.txt", "second"));
    fixture.write("a.txt", "since then");
    fixture.undo("t_1", UndoMode::Partial);
    assert_eq!(trashed(&fixture), [""; 0]);
    let left = SkippedPath {
        path: "a.txt".into(),
        reason: "it changed since the turn wrote it".into(),
    };
    // As the turn found it: there is nothing to restore, but the version is deleted from the store.
    fixture.write("a.txt", "original");
    let record = fixture.record("t_1");
    let record = record.limited_to(fixture.workspace(), &[left]);
    let results = fixture.undo_record(&record, UndoMode::Whole);
    assert_eq!(results[0].outcome, UndoOutcome::Unchanged);
    assert_eq!(trashed(&fixture), ["mine"]);
}

#[test]
fn a_file_whose_other_version_cannot_be_moved_to_the_trash_is_not_undone() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "original");
    fixture.text("fs_write", write("a.txt", "first"));
    fixture.write("a.txt", "mine");
    fixture.text("fs_write", write("a.txt", "second"));
    std::fs::write(fixture.trash().path(), "in the way").unwrap();
    let results = fixture.undo("t_1", UndoMode::Partial);
    assert!(
        matches!(results[0].outcome, UndoOutcome::Skipped { .. }),
        "{results:?}"
    );
    assert_eq!(fixture.read("a.txt"), "second");
    std::fs::remove_file(fixture.trash().path()).unwrap();
    fixture.undo_all("t_1");
    assert_eq!(trashed(&fixture), ["mine"]);
}

#[test]
fn what_a_user_wrote_before_a_call_of_another_turn_is_its_original() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "original");
    fixture.call_in("t_1", "fs_write", write("a.txt", "first"));
    fixture.write("a.txt", "mine");
    let next_turn = Caller {
        turn: "t_2".into(),
        ..caller()
    };
    let inspected = fixture.inspect_as(&next_turn, "fs_write", write("a.txt", "second"));
    assert_eq!(inspected.edit.unwrap().irreversible, None);
    fixture.call_in("t_2", "fs_write", write("a.txt", "second"));
    fixture.undo_all("t_2");
    assert_eq!(fixture.read("a.txt"), "mine");
}
