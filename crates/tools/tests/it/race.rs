//! A folder that another process keeps swapping for a link while the tools work in it.

use crate::canary;
use crate::support::{Bench, SECRET};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

const ROUNDS: usize = 300;

/// Swaps two names until it is dropped.
struct Swapper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Swapper {
    fn start(bench: &Bench, names: [&'static str; 2]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let [a, b] = names.map(|name| bench.inside(name));
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

/// Calls a tool again and again while `door`, a folder, and `decoy`, a link, change places. Nothing where the link
/// leads may change or be seen; both ends of the race must have been met.
fn race(link: impl Fn(&Bench) -> std::path::PathBuf, calls: &[(&str, &dyn Fn(usize) -> Value)]) {
    for (tool, arguments) in calls {
        let bench = Bench::new();
        bench.write("door/secret.txt", "inside");
        bench.write(".git/hooks/secret.txt", SECRET);
        let target = link(&bench);
        bench.link("decoy", &target);
        let target = bench.inside("decoy").canonicalize().unwrap();
        for round in 0..ROUNDS {
            // A folder that is made inside is there already where the link leads.
            std::fs::create_dir(target.join(round.to_string())).unwrap();
        }
        let before = canary::of_tree(&target);
        let swapper = Swapper::start(&bench, ["door", "decoy"]);
        let (mut done, mut refused) = (0, 0);
        for round in 0..ROUNDS {
            match bench.call(tool, arguments(round)) {
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
            "{tool}: the swapping was not seen: {done} done, {refused} refused"
        );
        println!("{tool:<10} {done} done, {refused} refused");
    }
}

/// What changes something, each time something else.
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
fn a_folder_swapped_for_a_link_never_leads_a_change_out() {
    race(|bench| bench.outside(""), CHANGES);
}

#[test]
fn a_folder_swapped_for_a_link_never_leads_a_change_to_what_is_kept() {
    race(|_| ".git/hooks".into(), CHANGES);
}

#[test]
fn a_folder_swapped_for_a_link_never_leads_a_search_out() {
    let reads: &[(&str, &dyn Fn(usize) -> Value)] = &[
        ("fs_search", &|_| json!({"path": "door", "pattern": ""})),
        ("fs_list", &|_| json!({"path": "door"})),
        ("fs_read", &|_| json!({"path": "door/secret.txt"})),
    ];
    race(|bench| bench.outside(""), reads);
    // From above, the link is no folder and left out.
    let bench = Bench::new();
    bench.write("door/a.txt", "inside");
    bench.link("decoy", bench.outside(""));
    let _swapper = Swapper::start(&bench, ["door", "decoy"]);
    for _ in 0..ROUNDS {
        let text = bench.text("fs_search", json!({"pattern": "s"}));
        assert!(!text.contains(SECRET), "{text}");
    }
}

#[test]
fn a_folder_swapped_for_a_link_never_leads_a_deletion_or_its_way_back_out() {
    let bench = Bench::new();
    bench.write("door/keep", "");
    for name in ["secret.txt", "other.txt"] {
        std::fs::write(bench.outside(name), SECRET).unwrap();
    }
    bench.link("decoy", bench.outside(""));
    let before = canary::of_tree(&bench.outside(""));
    let swapper = Swapper::start(&bench, ["door", "decoy"]);
    let (mut deleted, mut restored, mut refused) = (0, 0, 0);
    for _ in 0..ROUNDS {
        // Whichever of the two is the folder just now; the name may also meet the link.
        let _ = bench.call(
            "fs_write",
            json!({"path": "door/other.txt", "content": "mine"}),
        );
        match bench.call("fs_delete", json!({"path": "door/other.txt"})) {
            Ok(_) => deleted += 1,
            Err(_) => refused += 1,
        }
        for item in bench.trash().list().unwrap() {
            assert_eq!(content(bench.trash().path(), &item.id), "mine");
            restored += usize::from(bench.restore(&item.id).is_ok());
        }
    }
    drop(swapper);
    let after = canary::of_tree(&bench.outside(""));
    canary::assert_same(&before, &after, "deleting and restoring");
    assert!(
        deleted > 0 && restored > 0 && refused > 0,
        "the swapping was not seen: {deleted} deleted, {restored} restored, {refused} refused"
    );
}

fn content(folder: &Path, id: &str) -> String {
    std::fs::read_to_string(folder.join(id)).unwrap()
}
