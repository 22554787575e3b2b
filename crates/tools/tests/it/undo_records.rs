//! What is saved of changed files: limits, crashes, privacy and deletion.

use crate::canary;
use crate::support::FileFixture;
use lango_core::{CallId, Caller, SessionId, Trust, TurnId};
use lango_testkit::tool::caller;
use lango_tools::{
    RecordedTurn, TurnRecord, UndoAction, UndoLimits, UndoMode, UndoStep, UndoStore,
};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn write(path: &str, content: &str) -> Value {
    json!({"path": path, "content": content})
}

/// Returns all files of the undo store.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in canary::of_tree(folder).into_keys() {
        if path.is_file() {
            found.push(path);
        }
    }
    found
}

fn reason(step: &UndoStep) -> &str {
    match &step.action {
        UndoAction::Refuse { reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn originals_are_private_and_outside_the_workspace() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "private content");
    fixture.text("fs_write", write("a.txt", "new"));
    let folder = fixture.undo_store().path();
    for path in canary::of_tree(folder).into_keys() {
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{path:?}");
    }
    let originals = files(folder).into_iter();
    let originals = originals.filter(|path| std::fs::read(path).unwrap() == b"private content");
    assert_eq!(originals.count(), 1);
    let inside = canary::of_tree(&fixture.inside(""));
    assert_eq!(inside.len(), 2, "{inside:?}");
}

#[test]
fn what_exceeds_a_limit_is_changed_but_cannot_be_undone() {
    let limits = UndoLimits {
        file_bytes: 100,
        turn_bytes: 1_000,
        turn_files: 6,
        ..UndoLimits::default()
    };
    let fixture = FileFixture::new().with_undo_limits(limits);
    fixture.write("large.txt", "x".repeat(101));
    fixture.write("small.txt", "small");
    fixture.text("fs_write", write("large.txt", "new"));
    fixture.text("fs_write", write("small.txt", "new"));
    let steps = fixture.check_undo("t_1");
    assert_eq!(steps[0].action, UndoAction::Restore);
    assert_eq!(
        reason(&steps[1]),
        "it was too large to save: 101 B, and the limit is 100 B"
    );
    fixture.undo("t_1", UndoMode::Partial);
    assert_eq!(fixture.read("small.txt"), "small");
    assert_eq!(fixture.read("large.txt"), "new");
    // The record itself counts too.
    for number in 0..3 {
        let name = format!("{number}.txt");
        fixture.write(&name, "y".repeat(100));
        fixture.call_in("t_2", "fs_write", write(&name, "new"));
    }
    let steps = fixture.check_undo("t_2");
    assert_eq!(steps[2].action, UndoAction::Restore);
    assert_eq!(
        reason(&steps[0]),
        "the turn changed too much to save all of it; the limit is 1.0 KB"
    );
    for number in 0..8 {
        let name = format!("new-{number}.txt");
        fixture.call_in("t_3", "fs_write", write(&name, "new"));
    }
    let steps = fixture.check_undo("t_3");
    assert_eq!(
        reason(&steps[0]),
        "the turn changed too many files; the limit is 6"
    );
    let undoable = |step: &&UndoStep| step.action == UndoAction::RemoveFile;
    assert_eq!(steps.iter().filter(undoable).count(), 6);
    assert_eq!(fixture.read("new-7.txt"), "new");
}

#[test]
fn a_file_of_more_than_four_mebibytes_is_not_saved() {
    let fixture = FileFixture::new();
    fixture.write("large.txt", "x".repeat((4 << 20) + 1));
    fixture.write("full.txt", "y".repeat(4 << 20));
    let text = fixture.text("fs_write", write("large.txt", "new"));
    assert_eq!(text.lines().next(), Some("replaced large.txt"));
    fixture.text(
        "fs_edit",
        json!({"path": "full.txt", "old": "y".repeat(4 << 20), "new": "z"}),
    );
    let steps = fixture.check_undo("t_1");
    assert!(
        reason(&steps[1]).contains("too large to save: 4.1 MB"),
        "{steps:?}"
    );
    assert_eq!(steps[0].action, UndoAction::Restore);
}

#[test]
fn repeated_changes_of_a_file_save_it_once() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "original");
    for number in 0..20 {
        fixture.text("fs_write", write("a.txt", &number.to_string()));
    }
    assert_eq!(files(fixture.undo_store().path()).len(), 2);
    fixture.undo_all("t_1");
    assert_eq!(fixture.read("a.txt"), "original");
    // The original is not needed any more.
    assert_eq!(files(fixture.undo_store().path()).len(), 1);
}

#[test]
fn the_original_of_a_file_that_was_not_restored_is_preserved() {
    let fixture = FileFixture::new();
    for name in ["a.txt", "b.txt"] {
        fixture.write(name, name);
        fixture.text("fs_write", write(name, "new"));
    }
    fixture.write("a.txt", "mine");
    fixture.undo("t_1", UndoMode::Partial);
    let files = files(fixture.undo_store().path());
    let contents = files.iter().map(|path| std::fs::read(path).unwrap());
    assert_eq!(contents.filter(|content| content == b"a.txt").count(), 1);
    assert_eq!(files.len(), 2);
}

#[test]
fn the_oldest_turns_are_dropped_first() {
    let limits = UndoLimits {
        turn_bytes: 3_000,
        total_bytes: 12_000,
        ..UndoLimits::default()
    };
    let fixture = FileFixture::new().with_undo_limits(limits);
    let turns = |fixture: &FileFixture| {
        let turns = fixture.undo_store().turns().unwrap().into_iter();
        turns
            .map(|turn| turn.turn().to_string())
            .collect::<Vec<_>>()
    };
    for number in 10..40 {
        fixture.write("a.txt", "x".repeat(1_000 + number));
        fixture.call_in(&format!("t_{number}"), "fs_write", write("a.txt", "new"));
        wait_for_next_time();
    }
    let left = turns(&fixture);
    assert!((4..10).contains(&left.len()), "{left:?}");
    let newest: Vec<_> = (10..40).rev().map(|number| format!("t_{number}")).collect();
    assert_eq!(left, newest[..left.len()]);
    let size: u64 = files(fixture.undo_store().path())
        .iter()
        .map(|path| path.metadata().unwrap().len())
        .sum();
    assert!(size <= limits.total_bytes, "{size}");
    let limits = UndoLimits { turns: 3, ..limits };
    let fixture = fixture.with_undo_limits(limits);
    fixture.call_in("t_50", "fs_write", write("a.txt", "new"));
    assert_eq!(turns(&fixture).len(), 3);
    let limits = UndoLimits {
        age: Duration::ZERO,
        ..limits
    };
    let fixture = fixture.with_undo_limits(limits);
    wait_for_next_time();
    fixture.call_in("t_51", "fs_write", write("a.txt", "new"));
    assert_eq!(turns(&fixture), ["t_51"]);
}

#[test]
fn the_folder_of_a_turn_that_has_just_started_is_not_dropped() {
    let fixture = FileFixture::new();
    let started = fixture.undo_store().path().join("session/turn");
    std::fs::create_dir_all(&started).unwrap();
    fixture.text("fs_write", write("a.txt", "new"));
    assert!(started.is_dir());
    let limits = UndoLimits {
        age: Duration::ZERO,
        ..UndoLimits::default()
    };
    let fixture = fixture.with_undo_limits(limits);
    wait_for_next_time();
    fixture.call_in("t_2", "fs_write", write("a.txt", "newer"));
    assert!(!started.exists());
}

#[test]
fn a_folder_that_cannot_be_read_does_not_hide_the_other_turns() {
    let fixture = FileFixture::new();
    fixture.text("fs_write", write("a.txt", "new"));
    let folder = fixture.undo_store().path().join("session/turn");
    std::fs::create_dir_all(folder.join("record.jsonl")).unwrap();
    std::fs::write(fixture.undo_store().path().join("session/file"), "").unwrap();
    assert_eq!(fixture.undo_store().turns().unwrap().len(), 1);
}

#[test]
fn a_list_of_turns_holds_no_open_files() {
    let fixture = FileFixture::new();
    for number in 0..20 {
        let name = format!("{number}.txt");
        fixture.call_in(&format!("t_{number}"), "fs_write", write(&name, "new"));
    }
    let undo = fixture.undo_store();
    let turns = undo.turns().unwrap();
    let open = |turn: &RecordedTurn| undo.turn(turn.session(), turn.turn()).unwrap().unwrap();
    let records: Vec<TurnRecord> = turns.iter().map(open).collect();
    let folder = undo.path().canonicalize().unwrap();
    let handles = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let targets = handles.filter_map(|handle| std::fs::read_link(handle.path()).ok());
    let held = targets.filter(|target| target.starts_with(&folder)).count();
    assert_eq!((records.len(), held), (20, 0));
}

/// Waits until the clock of the file system has advanced, so that two files have different times.
fn wait_for_next_time() {
    let folder = tempfile::tempdir().unwrap();
    let time = |name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, "").unwrap();
        let modified = path.metadata().unwrap().modified().unwrap();
        modified
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_millis()
    };
    let first = time("first");
    while time("next") == first {
        std::thread::yield_now();
    }
}

#[test]
fn originals_are_deleted_with_their_session_only() {
    let fixture = FileFixture::new();
    for session in ["s_1", "s_2", "../../etc/passwd"] {
        let caller = Caller {
            session: session.into(),
            ..caller()
        };
        fixture.write("a.txt", session);
        fixture
            .call_as(&caller, "fs_write", write("a.txt", "new"))
            .unwrap();
    }
    let undo = fixture.undo_store();
    assert_eq!(undo.turns().unwrap().len(), 3);
    undo.forget_session(&SessionId::from("s_1")).unwrap();
    undo.forget_session(&SessionId::from("s_none")).unwrap();
    undo.forget_session(&SessionId::from("../../etc/passwd"))
        .unwrap();
    let left = undo.turns().unwrap();
    assert_eq!((left.len(), left[0].session().as_str()), (1, "s_2"));
    let other = undo.turn(&SessionId::from("s_1"), &TurnId::from("t_1"));
    assert!(other.unwrap().is_none());
    UndoStore::at("/nowhere")
        .forget_session(&SessionId::from("s_1"))
        .unwrap();
}

#[test]
fn a_record_says_whose_turn_it_was_and_whether_its_paths_are_trusted() {
    let fixture = FileFixture::new();
    fixture.text("fs_write", write("a.txt", "1"));
    let record = fixture.record("t_1");
    assert_eq!(record.user().as_str(), "local");
    assert_eq!(record.folder(), fixture.workspace().name());
    assert_eq!(record.trust(), Trust::Trusted);
    assert!(record.has_call(&CallId::from("call_1")));
    assert!(!record.has_call(&CallId::from("call_2")));
    let caller = Caller {
        trust: Trust::Untrusted,
        call: "call_2".into(),
        ..caller()
    };
    // It exists, but the call is recorded.
    fixture
        .call_as(&caller, "fs_mkdir", json!({"path": "."}))
        .unwrap();
    let record = fixture.record("t_1");
    assert_eq!(record.trust(), Trust::Untrusted);
    assert!(record.has_call(&CallId::from("call_2")));
    assert_eq!(record.paths(), [fixture.workspace().path().join("a.txt")]);
}

#[test]
fn a_recorded_change_that_was_not_made_is_harmless() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "a");
    fixture.write("b.txt", "b");
    fixture.write("c.txt", "c");
    let before = canary::of_tree(&fixture.inside(""));
    fixture.text("fs_write", write("a.txt", "A"));
    fixture.text("fs_write", write("new/n.txt", "N"));
    fixture.text("fs_delete", json!({"path": "b.txt"}));
    // As if the process had ended after each record, before the change.
    fixture.write("a.txt", "a");
    std::fs::remove_dir_all(fixture.inside("new")).unwrap();
    let item = fixture.trash().list().unwrap().remove(0);
    std::fs::rename(
        fixture.trash().path().join(item.id),
        fixture.inside("b.txt"),
    )
    .unwrap();
    for step in fixture.check_undo("t_1") {
        assert_eq!(step.action, UndoAction::Nothing, "{step:?}");
    }
    fixture.undo_all("t_1");
    canary::assert_same(&before, &canary::of_tree(&fixture.inside("")), "the undo");
}

#[test]
fn a_line_that_a_crash_cut_off_is_ignored() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "a");
    fixture.write("b.txt", "b");
    fixture.text("fs_write", write("a.txt", "A"));
    let files = files(fixture.undo_store().path());
    let record = files
        .iter()
        .find(|path| path.ends_with("record.jsonl"))
        .unwrap();
    let whole = std::fs::read(record).unwrap();
    for cut in [1, 10] {
        let mut text = whole.clone();
        text.extend_from_slice(&whole[..whole.len() - cut]);
        std::fs::write(record, &text).unwrap();
        fixture.write("b.txt", "b");
        fixture.text("fs_write", write("b.txt", "B"));
        assert_eq!(fixture.check_undo("t_1").len(), 2);
    }
    fixture.undo_all("t_1");
    assert_eq!(
        (fixture.read("a.txt"), fixture.read("b.txt")),
        ("a".into(), "b".into())
    );
}

#[test]
fn a_damaged_original_is_not_restored() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "original");
    fixture.text("fs_write", write("a.txt", "new"));
    let files = files(fixture.undo_store().path());
    let original = files.iter().find(|path| path.ends_with("1")).unwrap();
    std::fs::write(original, "0riginal").unwrap();
    let steps = fixture.check_undo("t_1");
    assert!(reason(&steps[0]).contains("damaged"), "{steps:?}");
    fixture.undo("t_1", UndoMode::Partial);
    assert_eq!(fixture.read("a.txt"), "new");
}

#[test]
fn a_change_that_cannot_be_recorded_is_not_made() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "a");
    std::fs::write(fixture.undo_store().path(), "in the way").unwrap();
    let before = canary::of_tree(&fixture.inside(""));
    for (tool, arguments) in [
        ("fs_write", write("a.txt", "A")),
        ("fs_write", write("new/b.txt", "B")),
        ("fs_edit", json!({"path": "a.txt", "old": "a", "new": "A"})),
        ("fs_mkdir", json!({"path": "folder"})),
        ("fs_delete", json!({"path": "a.txt"})),
    ] {
        let error = fixture.error(tool, arguments);
        assert!(error.contains("was not changed"), "{tool}: {error}");
    }
    canary::assert_same(&before, &canary::of_tree(&fixture.inside("")), "the calls");
    assert!(fixture.trash().list().unwrap().is_empty());
}
