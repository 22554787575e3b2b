//! Undoing while another thread swaps links, renames files and writes to them.

use crate::canary;
use crate::support::{FileFixture, SECRET};
use lango_tools::{UndoMode, UndoOutcome, UndoResult};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

const ROUNDS: usize = 300;

/// Runs an attack again and again until it is dropped.
struct Attacker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Attacker {
    fn start(mut attack: impl FnMut() + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !is_stopped.load(Ordering::Relaxed) {
                attack();
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }

    fn swap(one: PathBuf, other: PathBuf) -> Self {
        Self::start(move || {
            // Fails while one of them is missing.
            let _ = renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE);
        })
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn write(path: &str, content: &str) -> Value {
    json!({"path": path, "content": content})
}

fn is_restored(results: &[UndoResult]) -> bool {
    let restored = |result: &UndoResult| result.outcome == UndoOutcome::Restored;
    results.iter().any(restored)
}

/// Runs the changes of one turn in `door`, then undoes the turn while `door` and `decoy`, a link to the folder outside,
/// are swapped. Everything that the turn wrote also exists outside, so only the path shows the difference.
fn race_with_a_swapped_folder(change: impl Fn(&FileFixture, &str)) {
    let (mut restored, mut refused) = (0, 0);
    let fixture = FileFixture::new();
    for name in ["file.txt", "new.txt", "gone.txt"] {
        std::fs::write(fixture.outside(name), "written").unwrap();
    }
    std::fs::create_dir(fixture.outside("folder")).unwrap();
    fixture.link("decoy", fixture.outside(""));
    let before = canary::of_tree(&fixture.outside(""));
    for _ in 0..ROUNDS {
        let _ = std::fs::remove_dir_all(fixture.inside("door"));
        fixture.write("door/file.txt", "original");
        fixture.write("door/gone.txt", "original");
        change(&fixture, "t_1");
        let attacker = Attacker::swap(fixture.inside("door"), fixture.inside("decoy"));
        let results = fixture.undo("t_1", UndoMode::Partial);
        drop(attacker);
        fixture.forget_turns();
        if fixture.inside("door").is_symlink() {
            let (one, other) = (fixture.inside("door"), fixture.inside("decoy"));
            renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
        }
        if is_restored(&results) {
            restored += 1;
        } else {
            refused += 1;
        }
        let after = canary::of_tree(&fixture.outside(""));
        canary::assert_same(&before, &after, "the undo");
    }
    assert!(
        restored > 0 && refused > 0,
        "the swapping had no effect: {restored} restored, {refused} refused"
    );
}

#[test]
fn swapping_a_folder_for_a_link_never_restores_a_file_outside() {
    race_with_a_swapped_folder(|fixture, turn| {
        fixture.call_in(turn, "fs_write", write("door/file.txt", "written"));
    });
}

#[test]
fn swapping_a_folder_for_a_link_never_removes_a_file_outside() {
    race_with_a_swapped_folder(|fixture, turn| {
        fixture.call_in(turn, "fs_write", write("door/new.txt", "written"));
    });
}

#[test]
fn swapping_a_folder_for_a_link_never_removes_a_folder_outside() {
    race_with_a_swapped_folder(|fixture, turn| {
        fixture.call_in(turn, "fs_mkdir", json!({"path": "door/folder"}));
    });
}

#[test]
fn swapping_a_folder_for_a_link_never_restores_a_deleted_file_outside() {
    race_with_a_swapped_folder(|fixture, turn| {
        fixture.call_in(turn, "fs_delete", json!({"path": "door/gone.txt"}));
    });
}

/// Swaps the file itself for a link to a file outside with the same content.
#[test]
fn swapping_a_file_for_a_link_changes_nothing_outside() {
    let fixture = FileFixture::new();
    let target = fixture.outside("file.txt");
    std::fs::write(&target, "written").unwrap();
    let (mut restored, mut refused) = (0, 0);
    for round in 0..ROUNDS {
        for name in ["file.txt", "decoy"] {
            let _ = std::fs::remove_file(fixture.inside(name));
        }
        if round % 2 == 0 {
            fixture.write("file.txt", "original");
        }
        fixture.call_in("t_1", "fs_write", write("file.txt", "written"));
        fixture.link("decoy", &target);
        let attacker = Attacker::swap(fixture.inside("file.txt"), fixture.inside("decoy"));
        let results = fixture.undo("t_1", UndoMode::Partial);
        drop(attacker);
        fixture.forget_turns();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "written");
        assert_eq!(
            std::fs::read_to_string(fixture.outside("secret.txt")).unwrap(),
            SECRET
        );
        if is_restored(&results) {
            restored += 1;
        } else {
            refused += 1;
        }
    }
    assert!(
        restored > 0 && refused > 0,
        "{restored} restored, {refused} refused"
    );
}

/// An editor saves new versions by renaming them into place. No version that it saved last is lost.
#[test]
fn what_another_program_saves_meanwhile_is_never_lost() {
    let fixture = FileFixture::new();
    let (mut restored, mut refused) = (0, 0);
    for round in 0..ROUNDS {
        let _ = std::fs::remove_file(fixture.inside("file.txt"));
        let is_new = round % 2 == 0;
        if !is_new {
            fixture.write("file.txt", "original");
        }
        fixture.call_in("t_1", "fs_write", write("file.txt", "written"));
        let (file, new) = (fixture.inside("file.txt"), fixture.inside(".editor"));
        let record = fixture.record("t_1");
        let start = Arc::new(std::sync::Barrier::new(2));
        let editor = std::thread::spawn({
            let start = Arc::clone(&start);
            move || {
                std::fs::write(&new, "saved by the user").unwrap();
                start.wait();
                for _ in 0..(round % 40) * 50 {
                    std::hint::spin_loop();
                }
                std::fs::rename(&new, &file).unwrap();
            }
        });
        start.wait();
        let results = record.undo(
            fixture.workspace(),
            fixture.trash(),
            UndoMode::Partial,
            &|| true,
        );
        editor.join().unwrap();
        fixture.forget_turns();
        if is_restored(&results) {
            restored += 1;
        } else {
            refused += 1;
        }
        // The editor was last, or the undo saw its version.
        let content = std::fs::read_to_string(fixture.inside("file.txt"));
        assert_eq!(content.unwrap(), "saved by the user", "{results:?}");
    }
    println!("{restored} restored, {refused} refused");
    assert!(
        restored > 0 && refused > 0,
        "{restored} restored, {refused} refused"
    );
    let left = canary::of_tree(&fixture.inside(""));
    assert_eq!(left.len(), 2, "nothing temporary is left: {left:?}");
}
