//! Undoing the changes of a turn.

use crate::canary;
use crate::support::{FileFixture, SECRET};
use lango_core::SkippedPath;
use lango_tools::{FileChange, UndoAction, UndoMode, UndoOutcome, UndoResult, differences};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use std::cell::Cell;
use std::os::unix::fs::PermissionsExt;

fn skipped(results: &[UndoResult]) -> Vec<(&str, &str)> {
    let skipped = results.iter().filter_map(|result| match &result.outcome {
        UndoOutcome::Skipped { reason } => Some((result.path.as_str(), reason.as_str())),
        _ => None,
    });
    skipped.collect()
}

/// Returns what undoing the turn `t_1` would refuse.
fn refused(fixture: &FileFixture) -> Vec<(String, String)> {
    let steps = fixture.check_undo("t_1").into_iter();
    let refused = steps.filter_map(|step| match step.action {
        UndoAction::Refuse { reason } => Some((step.path, reason)),
        _ => None,
    });
    refused.collect()
}

fn write(path: &str, content: &str) -> Value {
    json!({"path": path, "content": content})
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old": old, "new": new})
}

#[test]
fn everything_that_a_turn_changed_is_as_before() {
    let fixture = FileFixture::new();
    fixture.write("notes.md", "one\ntwo\n");
    fixture.write("run.sh", "#!/bin/sh\n");
    fixture.write("binary", [0, 159, 146, 150]);
    fixture.write("old/a/b.txt", "deep");
    fixture.write("single.txt", "single");
    let mode = std::fs::Permissions::from_mode(0o751);
    std::fs::set_permissions(fixture.inside("run.sh"), mode).unwrap();
    let before = canary::of_tree(&fixture.inside(""));
    fixture.text("fs_edit", edit("notes.md", "two", "2"));
    fixture.text("fs_edit", edit("notes.md", "2", "three"));
    fixture.text("fs_write", write("run.sh", ""));
    fixture.text("fs_write", write("binary", "text"));
    fixture.text("fs_write", write("new/deep/file.txt", "x"));
    fixture.text("fs_mkdir", json!({"path": "empty/folder"}));
    fixture.text("fs_delete", json!({"path": "old"}));
    fixture.text("fs_delete", json!({"path": "single.txt"}));
    assert_eq!(refused(&fixture), []);
    fixture.undo_all("t_1");
    canary::assert_same(&before, &canary::of_tree(&fixture.inside("")), "the turn");
    assert!(fixture.trash().list().unwrap().is_empty());
}

#[test]
fn what_an_undo_left_is_undone_later_and_nothing_else_is_touched() {
    let fixture = FileFixture::new();
    for name in ["a.txt", "b.txt", "c.txt"] {
        fixture.write(name, name);
        fixture.text("fs_write", write(name, "new"));
    }
    fixture.write("a.txt", "in the way");
    fixture.write("b.txt", "in the way");
    let first = fixture.undo("t_1", UndoMode::Partial);
    let left: Vec<SkippedPath> = skipped(&first)
        .into_iter()
        .map(|(path, reason)| SkippedPath {
            path: path.into(),
            reason: reason.into(),
        })
        .collect();
    assert_eq!(left.len(), 2);
    fixture.write("a.txt", "new");
    // What was restored is the user's again.
    fixture.write("c.txt", "new");
    let record = fixture.record("t_1");
    let record = record.limited_to(fixture.workspace(), &left);
    let shown = differences(fixture.workspace(), std::slice::from_ref(&record), 100);
    let shown: Vec<&str> = shown.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(shown, ["a.txt", "b.txt"]);
    let second = fixture.undo_record(&record, UndoMode::Partial);
    let paths: Vec<&str> = second.iter().map(|result| result.path.as_str()).collect();
    assert_eq!(paths, ["b.txt", "a.txt"]);
    assert_eq!(skipped(&second).len(), 1);
    assert_eq!(
        ["a.txt", "b.txt", "c.txt"].map(|name| fixture.read(name)),
        ["a.txt", "in the way", "new"]
    );
    fixture.write("b.txt", "new");
    let record = fixture.record("t_1");
    let record = record.limited_to(fixture.workspace(), &left[..1]);
    fixture.undo_record(&record, UndoMode::Whole);
    assert_eq!(fixture.read("b.txt"), "b.txt");
}

#[test]
fn a_path_that_is_deleted_and_written_again_is_as_before() {
    let fixture = FileFixture::new();
    fixture.write("a/x.txt", "x");
    fixture.write("a/y.txt", "y");
    fixture.write("b.txt", "b");
    let before = canary::of_tree(&fixture.inside(""));
    fixture.text("fs_edit", edit("a/x.txt", "x", "edited"));
    fixture.text("fs_delete", json!({"path": "a"}));
    fixture.text("fs_write", write("a/x.txt", "again"));
    fixture.text("fs_write", write("a/z.txt", "new"));
    fixture.text("fs_delete", json!({"path": "a"}));
    fixture.text("fs_write", write("a", "a file"));
    fixture.text("fs_delete", json!({"path": "b.txt"}));
    fixture.text("fs_mkdir", json!({"path": "b.txt"}));
    assert_eq!(refused(&fixture), []);
    fixture.undo_all("t_1");
    canary::assert_same(&before, &canary::of_tree(&fixture.inside("")), "the turn");
}

/// A random call. Few names, so that calls concern the same paths.
fn call() -> impl Strategy<Value = (&'static str, Value)> {
    let path = prop::sample::select(vec!["a", "b", "a/c", "a/d", "a/c/e", "b/f", "b/g/h", "i"]);
    let text = prop::sample::select(vec!["", "1\n", "1\n2\n", "other\n"]);
    (0..5_u8, path, text).prop_map(|(tool, path, text)| match tool {
        0 | 1 => ("fs_write", write(path, text)),
        2 => ("fs_edit", edit(path, "1", "one and 1")),
        3 => ("fs_mkdir", json!({ "path": path })),
        _ => ("fs_delete", json!({ "path": path })),
    })
}

#[test]
fn after_random_calls_everything_is_as_before() {
    let mut runner = TestRunner::new(Config::with_cases(150));
    let calls = || prop::collection::vec(call(), 0..12);
    let undone = Cell::new(0);
    runner
        .run(&(calls(), calls()), |(earlier, calls)| {
            let fixture = FileFixture::new();
            for (tool, arguments) in earlier {
                let turn = lango_core::Caller {
                    turn: "t_0".into(),
                    ..lango_testkit::tool::caller()
                };
                let _ = fixture.call_as(&turn, tool, arguments);
            }
            let before = canary::of_tree(&fixture.inside(""));
            let done = calls.into_iter().filter(|(tool, arguments)| {
                let result = fixture.call(tool, arguments.clone());
                result.is_ok()
            });
            if done.count() > 0 {
                assert_eq!(refused(&fixture), []);
                fixture.undo_all("t_1");
                undone.set(undone.get() + 1);
            }
            canary::assert_same(&before, &canary::of_tree(&fixture.inside("")), "the turn");
            Ok(())
        })
        .unwrap();
    assert!(undone.get() > 100, "{undone:?}");
}

#[test]
fn a_file_that_changed_since_is_refused_and_nothing_else_is_changed() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "a");
    fixture.write("b.txt", "b");
    fixture.text("fs_write", write("a.txt", "A"));
    fixture.text("fs_write", write("b.txt", "B"));
    fixture.text("fs_write", write("new.txt", "N"));
    // The same size, and an extended one.
    for (name, content) in [("b.txt", "X"), ("new.txt", "N and more")] {
        fixture.write(name, content);
    }
    let reason = "it changed since the turn wrote it";
    let expected = [("new.txt", reason), ("b.txt", reason)];
    let expected = expected.map(|(path, reason)| (path.to_owned(), reason.to_owned()));
    assert_eq!(refused(&fixture), expected);
    let results = fixture.undo("t_1", UndoMode::Partial);
    assert_eq!(skipped(&results), [("new.txt", reason), ("b.txt", reason)]);
    assert_eq!(fixture.read("a.txt"), "a");
    assert_eq!(fixture.read("b.txt"), "X");
    assert_eq!(fixture.read("new.txt"), "N and more");
}

#[test]
fn a_whole_undo_stops_at_the_first_step_that_fails() {
    let fixture = FileFixture::new();
    for name in ["a.txt", "b.txt", "c.txt"] {
        fixture.write(name, "before");
        fixture.text("fs_write", write(name, "after"));
    }
    fixture.write("b.txt", "mine");
    let results = fixture.undo("t_1", UndoMode::Whole);
    let stopped = "the undo stopped before it";
    assert_eq!(skipped(&results)[1], ("a.txt", stopped));
    assert_eq!(fixture.read("c.txt"), "before");
    assert_eq!(fixture.read("a.txt"), "after");
}

#[test]
fn without_permission_nothing_is_changed() {
    let fixture = FileFixture::new();
    fixture.text("fs_write", write("a.txt", "A"));
    let record = fixture.record("t_1");
    let results = record.undo(
        fixture.workspace(),
        fixture.trash(),
        UndoMode::Partial,
        &|| false,
    );
    assert_eq!(skipped(&results).len(), 1);
    assert!(fixture.has("a.txt"));
}

#[test]
fn what_was_removed_restored_or_replaced_by_hand_is_explained() {
    let fixture = FileFixture::new();
    for name in [
        "gone.txt",
        "folder.txt",
        "again.txt",
        "emptied.txt",
        "back.txt",
    ] {
        fixture.write(name, name);
    }
    fixture.text("fs_write", write("gone.txt", "new"));
    fixture.text("fs_write", write("folder.txt", "new"));
    fixture.text("fs_write", write("created.txt", "new"));
    fixture.text("fs_delete", json!({"path": "again.txt"}));
    fixture.text("fs_delete", json!({"path": "back.txt"}));
    fixture.text("fs_delete", json!({"path": "emptied.txt"}));
    let items = fixture.trash().list().unwrap();
    let id = |name: &str| items.iter().find(|item| item.path.ends_with(name)).unwrap();
    std::fs::remove_file(fixture.trash().path().join(&id("emptied.txt").id)).unwrap();
    fixture.restore(&id("back.txt").id).unwrap();
    fixture.write("again.txt", "mine");
    for name in ["gone.txt", "folder.txt", "created.txt"] {
        std::fs::remove_file(fixture.inside(name)).unwrap();
    }
    std::fs::create_dir(fixture.inside("folder.txt")).unwrap();
    let expected = [
        ("emptied.txt", "it is no longer in the trash"),
        ("again.txt", "it exists again"),
        ("folder.txt", "it is a folder now"),
        (
            "gone.txt",
            "it was deleted or moved since the turn wrote it",
        ),
    ];
    let expected = expected.map(|(path, reason)| (path.to_owned(), reason.to_owned()));
    assert_eq!(refused(&fixture), expected);
    assert_eq!(skipped(&fixture.undo("t_1", UndoMode::Partial)).len(), 4);
    assert_eq!(fixture.read("again.txt"), "mine");
    assert_eq!(fixture.read("back.txt"), "back.txt");
    assert!(!fixture.has("created.txt"));
}

#[test]
fn a_new_folder_with_something_else_in_it_stays() {
    let fixture = FileFixture::new();
    fixture.text("fs_write", write("a/b/file.txt", "x"));
    fixture.write("a/mine.txt", "mine");
    let results = fixture.undo("t_1", UndoMode::Whole);
    assert_eq!(skipped(&results), []);
    let reason = "it is not empty".to_owned();
    assert_eq!(results[2].outcome, UndoOutcome::Kept { reason });
    assert!(!fixture.has("a/b") && fixture.has("a/mine.txt"));
}

#[test]
fn changes_of_others_between_two_changes_of_the_turn_are_pointed_out() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "1\n");
    fixture.text("fs_edit", edit("a.txt", "1", "2"));
    assert!(!fixture.check_undo("t_1")[0].has_other_changes);
    fixture.write("a.txt", "2\nformatted\n");
    fixture.text("fs_edit", edit("a.txt", "2", "3"));
    assert!(fixture.check_undo("t_1")[0].has_other_changes);
    fixture.undo_all("t_1");
    assert_eq!(fixture.read("a.txt"), "1\n");
}

#[test]
fn a_later_turn_is_undone_before_an_earlier_one() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "0");
    fixture.call_in("t_1", "fs_write", write("a.txt", "1"));
    fixture.call_in("t_2", "fs_write", write("a.txt", "2"));
    assert_eq!(refused(&fixture).len(), 1);
    fixture.undo_all("t_2");
    assert_eq!(fixture.read("a.txt"), "1");
    fixture.undo_all("t_1");
    assert_eq!(fixture.read("a.txt"), "0");
}

#[test]
fn a_guarded_file_can_be_restored() {
    let fixture = FileFixture::new();
    fixture.write(".vscode/settings.json", "{}");
    fixture.text("fs_write", write(".vscode/settings.json", "[]"));
    fixture.undo_all("t_1");
    assert_eq!(fixture.read(".vscode/settings.json"), "{}");
}

#[test]
fn a_path_that_leads_through_a_link_by_now_is_refused() {
    let fixture = FileFixture::new();
    std::fs::write(fixture.outside("file.txt"), "written").unwrap();
    fixture.write("dir/file.txt", "original");
    fixture.text("fs_write", write("dir/file.txt", "written"));
    std::fs::rename(fixture.inside("dir"), fixture.inside("moved")).unwrap();
    for target in [fixture.outside(""), fixture.inside("moved")] {
        fixture.link("dir", &target);
        assert_eq!(refused(&fixture).len(), 1, "{target:?}");
        let results = fixture.undo("t_1", UndoMode::Partial);
        assert_eq!(skipped(&results).len(), 1);
        std::fs::remove_file(fixture.inside("dir")).unwrap();
    }
    let outside = std::fs::read_to_string(fixture.outside("file.txt")).unwrap();
    assert_eq!(
        (outside.as_str(), &*fixture.read("moved/file.txt")),
        ("written", "written")
    );
    assert_eq!(
        std::fs::read_to_string(fixture.outside("secret.txt")).unwrap(),
        SECRET
    );
}

#[test]
fn a_file_written_through_a_link_is_restored_at_its_target() {
    let fixture = FileFixture::new();
    fixture.write("real/file.txt", "original");
    fixture.link("alias", "real");
    fixture.text("fs_write", write("alias/file.txt", "new"));
    assert_eq!(fixture.check_undo("t_1")[0].path, "real/file.txt");
    fixture.undo_all("t_1");
    assert_eq!(fixture.read("real/file.txt"), "original");
}

#[test]
fn a_file_that_the_policy_now_protects_is_refused() {
    let mut policy = None;
    let fixture = FileFixture::with_policy(|used, _| policy = Some(used.clone()));
    fixture.write("a.txt", "a");
    fixture.text("fs_write", write("a.txt", "A"));
    let mut policy = policy.unwrap();
    policy.read_only.push(fixture.inside("a.txt"));
    let workspace = lango_tools::Workspace::open(policy).unwrap();
    let record = fixture.record("t_1");
    let steps = record.check(&workspace, fixture.trash());
    let reason = "it is protected from changes".to_owned();
    assert_eq!(steps[0].action, UndoAction::Refuse { reason });
    record.undo(&workspace, fixture.trash(), UndoMode::Partial, &|| true);
    assert_eq!(fixture.read("a.txt"), "A");
}

#[test]
fn differences_are_those_since_before_the_first_turn() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "1\n2\n");
    fixture.write("same.txt", "same\n");
    fixture.write("old.txt", "old\n");
    fixture.write("image", [0, 1, 2]);
    fixture.call_in("t_1", "fs_write", write("a.txt", "1\n3\n"));
    fixture.call_in("t_1", "fs_write", write("same.txt", "other\n"));
    fixture.call_in("t_1", "fs_mkdir", json!({"path": "folder"}));
    fixture.call_in("t_2", "fs_write", write("a.txt", "1\n3\n4\n"));
    fixture.call_in("t_2", "fs_write", write("same.txt", "same\n"));
    fixture.call_in("t_2", "fs_write", write("new.txt", "new\n"));
    fixture.call_in("t_2", "fs_write", write("image", "text"));
    fixture.call_in("t_2", "fs_delete", json!({"path": "old.txt"}));
    let turns = [fixture.record("t_1"), fixture.record("t_2")];
    let found = differences(fixture.workspace(), &turns, 100);
    let shown: Vec<_> = found
        .iter()
        .map(|file| (file.path.as_str(), file.change, file.lines))
        .collect();
    let expected = [
        ("a.txt", FileChange::Changed, Some((2, 1))),
        ("image", FileChange::Changed, None),
        ("new.txt", FileChange::Created, Some((1, 0))),
        ("old.txt", FileChange::Deleted, None),
    ];
    assert_eq!(shown, expected);
    assert_eq!(found[0].diff, "@@ -1,2 +1,3 @@\n 1\n-2\n+3\n+4\n");
    let last = differences(fixture.workspace(), &turns[1..], 1);
    assert_eq!(
        (last[0].lines, last[0].diff.lines().count()),
        (Some((1, 0)), 2)
    );
}
