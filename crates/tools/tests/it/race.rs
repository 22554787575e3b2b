//! The tools work in a folder that another thread keeps swapping for a link.

use crate::canary;
use crate::support::{FileFixture, SECRET};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

pub(crate) const ROUNDS: usize = 300;

/// Swaps two names until it is dropped.
pub(crate) struct Swapper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Swapper {
    pub(crate) fn start(fixture: &FileFixture, names: [&'static str; 2]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let [a, b] = names.map(|name| fixture.inside(name));
        let thread = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                while !stop.load(Ordering::Relaxed) {
                    renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
                }
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Calls a tool repeatedly while `door`, a folder, and `decoy`, a link, are swapped. The target of the link must not be
/// changed or read, and both outcomes of the race must occur.
fn race(
    link: impl Fn(&FileFixture) -> std::path::PathBuf,
    calls: &[(&str, &dyn Fn(usize) -> Value)],
) {
    for (tool, arguments) in calls {
        let fixture = FileFixture::new();
        fixture.write("door/secret.txt", "inside");
        fixture.write(".git/hooks/secret.txt", SECRET);
        let target = link(&fixture);
        fixture.link("decoy", &target);
        let target = fixture.inside("decoy").canonicalize().unwrap();
        for round in 0..ROUNDS {
            // Folders that the calls would create exist already in the link's target.
            std::fs::create_dir(target.join(round.to_string())).unwrap();
        }
        let before = canary::of_tree(&target);
        let swapper = Swapper::start(&fixture, ["door", "decoy"]);
        let (mut done, mut refused) = (0, 0);
        for round in 0..ROUNDS {
            match fixture.call(tool, arguments(round)) {
                Ok(text) => {
                    assert!(!text.contains(SECRET), "{tool}: {text}");
                    done += 1;
                }
                Err(error) => {
                    assert!(!error.message.contains(SECRET), "{tool}: {error}");
                    refused += 1;
                }
            }
        }
        drop(swapper);
        canary::assert_same(&before, &canary::of_tree(&target), tool);
        assert!(
            done > 0 && refused > 0,
            "{tool}: the swapping had no effect: {done} done, {refused} refused"
        );
        println!("{tool:<10} {done} done, {refused} refused");
    }
}

/// Calls that change something different in each round.
const CHANGES: &[(&str, &dyn Fn(usize) -> Value)] = &[
    (
        "fs_write",
        &|round| json!({"path": format!("door/{round}/new.txt"), "content": "new"}),
    ),
    (
        "fs_write",
        &|round| json!({"path": "door/secret.txt", "content": format!("inside {round}")}),
    ),
    (
        "fs_edit",
        &|round| json!({"path": "door/secret.txt", "old": "side", "new": format!("side{round}")}),
    ),
    (
        "fs_mkdir",
        &|round| json!({"path": format!("door/{round}/deep")}),
    ),
];

#[test]
fn swapping_a_folder_for_a_link_never_redirects_a_change_outside() {
    race(|fixture| fixture.outside(""), CHANGES);
}

#[test]
fn swapping_a_folder_for_a_link_never_redirects_a_change_to_protected_files() {
    race(|_| ".git/hooks".into(), CHANGES);
}

#[test]
fn swapping_a_folder_for_a_link_never_redirects_a_search_outside() {
    let reads: &[(&str, &dyn Fn(usize) -> Value)] = &[
        ("fs_search", &|_| json!({"path": "door", "pattern": ""})),
        ("fs_list", &|_| json!({"path": "door"})),
        ("fs_read", &|_| json!({"path": "door/secret.txt"})),
    ];
    race(|fixture| fixture.outside(""), reads);
    // A search from above skips the link.
    let fixture = FileFixture::new();
    fixture.write("door/a.txt", "inside");
    fixture.link("decoy", fixture.outside(""));
    let _swapper = Swapper::start(&fixture, ["door", "decoy"]);
    for _ in 0..ROUNDS {
        let text = fixture.text("fs_search", json!({"pattern": "s"}));
        assert!(!text.contains(SECRET), "{text}");
    }
}

#[test]
fn swapping_a_folder_for_a_link_never_redirects_a_deletion_or_restoration_outside() {
    let fixture = FileFixture::new();
    fixture.write("door/keep", "");
    for name in ["secret.txt", "other.txt"] {
        std::fs::write(fixture.outside(name), SECRET).unwrap();
    }
    fixture.link("decoy", fixture.outside(""));
    let before = canary::of_tree(&fixture.outside(""));
    let swapper = Swapper::start(&fixture, ["door", "decoy"]);
    let (mut deleted, mut restored, mut refused) = (0, 0, 0);
    for _ in 0..ROUNDS {
        // Fails if `door` is the link at the moment.
        let _ = fixture.call(
            "fs_write",
            json!({"path": "door/other.txt", "content": "mine"}),
        );
        match fixture.call("fs_delete", json!({"path": "door/other.txt"})) {
            Ok(_) => deleted += 1,
            Err(_) => refused += 1,
        }
        for item in fixture.trash().list().unwrap() {
            assert_eq!(content(fixture.trash().path(), &item.id), "mine");
            restored += usize::from(fixture.restore(&item.id).is_ok());
        }
    }
    drop(swapper);
    let after = canary::of_tree(&fixture.outside(""));
    canary::assert_same(&before, &after, "deleting and restoring");
    assert!(
        deleted > 0 && restored > 0 && refused > 0,
        "the swapping had no effect: {deleted} deleted, {restored} restored, {refused} refused"
    );
}

fn content(folder: &Path, id: &str) -> String {
    std::fs::read_to_string(folder.join(id)).unwrap()
}
