//! Clean-up while somebody else swaps directories for links at full speed: nothing outside of the workspace changes.
//!
//! The swapper is not in a sandbox, so it is faster than any command could be. `LANGO_RACE_SECONDS` makes a race longer.

use crate::world::World;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What there is of a directory tree: path, inode, mode, and content or target.
type Inventory = Vec<(PathBuf, u64, u32, Vec<u8>)>;

fn inventory(directory: &Path) -> Inventory {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(path) = waiting.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let mut content = Vec::new();
        if metadata.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            waiting.extend(entries.map(|entry| entry.path()));
        } else if metadata.is_symlink() {
            content = fs::read_link(&path)
                .unwrap()
                .into_os_string()
                .into_encoded_bytes();
        } else if metadata.is_file() {
            content = fs::read(&path).unwrap_or_default();
        }
        found.push((path, metadata.ino(), metadata.mode(), content));
    }
    found.sort();
    found
}

fn race_time() -> Duration {
    let seconds = std::env::var("LANGO_RACE_SECONDS").ok();
    Duration::from_secs(seconds.and_then(|text| text.parse().ok()).unwrap_or(2))
}

/// Exchanges a directory and a link until it is dropped.
struct Swapper {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<u64>>,
}

impl Swapper {
    fn start(one: PathBuf, other: PathBuf) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut swaps = 0;
            while !seen.load(Ordering::Relaxed) {
                let swapped = renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE);
                swaps += u64::from(swapped.is_ok());
            }
            swaps
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }

    fn finish(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// Runs one command again and again, each followed by its clean-up, while `workspace/swap/a` is now a directory and now a
/// link to `outside/project`.
async fn race(script: &str) -> usize {
    let mut world = World::new();
    world.launcher = world.launcher.clone().with_trash(world.path("trash"));
    let project = world.path("outside/project");
    fs::create_dir_all(project.join(".git/hooks")).unwrap();
    fs::write(project.join(".git/config"), "[core]\n").unwrap();
    fs::create_dir_all(project.join("closed/.vscode")).unwrap();
    fs::create_dir_all(project.join("bare/objects")).unwrap();
    fs::create_dir_all(project.join("bare/refs")).unwrap();
    fs::write(project.join("bare/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::set_permissions(project.join("closed"), fs::Permissions::from_mode(0o100)).unwrap();
    let swap = world.path("workspace/swap");
    fs::create_dir_all(swap.join("a/closed")).unwrap();
    fs::create_dir_all(swap.join("a/bare")).unwrap();
    std::os::unix::fs::symlink(&project, swap.join("b")).unwrap();
    std::os::unix::fs::symlink("nothing", swap.join("a/.env.link")).unwrap();

    let before = inventory(&world.path("outside"));
    let swapper = Swapper::start(swap.join("a"), swap.join("b"));
    let (started, mut commands, mut removed) = (Instant::now(), 0, 0);
    while started.elapsed() < race_time() {
        // A start can fail because something was swapped just then; nothing ran in that case.
        let Ok(mut child) = world.launcher.spawn(&world.policy, world.shell(script)) else {
            continue;
        };
        if let Ok(ended) = child.wait().await {
            commands += 1;
            removed += ended.clean_up.removed.len();
        }
    }
    let swaps = swapper.finish();
    println!("{commands} commands, {removed} files removed, {swaps} swaps");
    assert!(commands > 0 && swaps > 1000, "{commands} {swaps}");
    assert_eq!(inventory(&world.path("outside")), before);
    removed
}

#[tokio::test]
async fn a_swapped_directory_does_not_lead_the_removal_out() {
    let script = "for i in 1 2 3 4 5 6 7 8; do mkdir -p swap/a/.git swap/b/.git; mkdir -p swap/a/d$i/.vscode; done; true";
    assert!(race(script).await > 0, "clean-up found nothing at all");
}

#[tokio::test]
async fn a_swapped_directory_does_not_lead_a_change_of_modes_out() {
    race(
        "for i in 1 2 3 4 5 6 7 8; do mkdir -p swap/a/closed/.vscode swap/b/closed/.vscode; \
         chmod 100 swap/a/closed swap/b/closed; rm -f swap/a/.env.link swap/b/.env.link; done; true",
    )
    .await;
}

#[tokio::test]
async fn a_swapped_directory_does_not_turn_foreign_repositories_into_new_ones() {
    race(
        "for i in 1 2 3 4; do for d in a b; do mkdir -p swap/$d/bare/objects swap/$d/bare/refs; echo x > swap/$d/bare/HEAD; \
         done; done; true",
    )
    .await;
}
