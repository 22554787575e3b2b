//! Writing a file while another program saves it. Whatever that program saved last is under the name of the file, or an
//! undo restores it.

use crate::canary;
use crate::support::FileFixture;
use lango_core::{Caller, FileEdit, Inspection};
use lango_testkit::tool::caller;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

const ROUNDS: u32 = 150;

const SAVED: &str = "original, saved by the user";

/// Runs a call again and again while another program saves the file, at another moment of the call each time. `save` gets
/// the new version and the file.
fn race(
    (tool, arguments): (&str, Value),
    before: Option<&str>,
    save: fn(&Path, &Path) -> std::io::Result<()>,
) {
    let fixture = FileFixture::new();
    // The user was asked about a file that is not saved, and has not seen what it contains.
    let edit = FileEdit {
        irreversible: Some("it is too large".into()),
        ..FileEdit::default()
    };
    let caller = Caller {
        inspection: Inspection {
            edit: Some(Box::new(edit)),
            ..Inspection::default()
        },
        ..caller()
    };
    let (file, new) = (fixture.inside("file.txt"), fixture.inside(".editor"));
    let (mut written, mut refused) = (0, 0);
    let mut duration = Duration::from_millis(5);
    for round in 0..ROUNDS {
        let _ = std::fs::remove_file(&file);
        if let Some(before) = before {
            fixture.write("file.txt", before);
        }
        std::fs::write(&new, SAVED).unwrap();
        let start = Arc::new(Barrier::new(2));
        let editor = std::thread::spawn({
            let (start, file, new) = (Arc::clone(&start), file.clone(), new.clone());
            let delay = duration * round / ROUNDS;
            move || {
                start.wait();
                let started = Instant::now();
                while started.elapsed() < delay {
                    std::hint::spin_loop();
                }
                save(&new, &file).is_ok()
            }
        });
        start.wait();
        let started = Instant::now();
        let result = fixture.call_as(&caller, tool, arguments.clone());
        duration = (duration * 9 + started.elapsed()) / 10;
        let is_saved = editor.join().unwrap();
        match result {
            Ok(_) => written += 1,
            Err(_) => refused += 1,
        }
        if is_saved && fixture.read("file.txt") != SAVED {
            result.as_ref().expect("a refused call changes nothing");
            fixture.undo_all("t_1");
            assert_eq!(fixture.read("file.txt"), SAVED, "round {round}");
        }
        fixture.forget_turns();
        let _ = std::fs::remove_file(&new);
    }
    println!("{written} written, {refused} refused");
    assert!(
        written > 0 && refused > 0,
        "{written} written, {refused} refused"
    );
    let left = canary::of_tree(&fixture.inside(""));
    assert_eq!(left.len(), 2, "nothing temporary is left: {left:?}");
}

#[test]
fn what_another_program_saves_while_a_file_is_replaced_is_never_lost() {
    let call = (
        "fs_write",
        json!({"path": "file.txt", "content": "written"}),
    );
    race(call, Some("original"), |new, file| {
        std::fs::rename(new, file)
    });
}

#[test]
fn what_another_program_saves_while_a_file_is_edited_is_never_lost() {
    let edit = json!({"path": "file.txt", "old": "original", "new": "edited"});
    race(("fs_edit", edit), Some("original"), |new, file| {
        std::fs::rename(new, file)
    });
}

#[test]
fn what_another_program_creates_while_a_file_is_created_is_never_lost() {
    let call = (
        "fs_write",
        json!({"path": "file.txt", "content": "written"}),
    );
    race(call, None, |new, file| std::fs::hard_link(new, file));
}

#[test]
fn a_large_file_that_another_program_replaces_meanwhile_is_not_lost() {
    let large = "x".repeat((4 << 20) + 1);
    let call = (
        "fs_write",
        json!({"path": "file.txt", "content": "written"}),
    );
    race(call, Some(&large), |new, file| std::fs::rename(new, file));
}
