//! Clean-up while another thread swaps directories for links at full speed: nothing outside of the workspace may
//! change.
//!
//! The swapper is not in a sandbox, so it is faster than any command. `LANGO_RACE_SECONDS` makes a race longer.

use crate::fixture::Fixture;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The entries of a directory tree: path, inode, mode, and content or link target.
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

/// Runs a command repeatedly, each time followed by its clean-up, while `workspace/swap/a` alternates between a
/// directory and a link to `outside/project`.
async fn race(script: &str) -> usize {
    let mut fixture = Fixture::new();
    fixture.launcher = fixture.launcher.clone().with_trash(fixture.path("trash"));
    let project = fixture.path("outside/project");
    fs::create_dir_all(project.join(".git/hooks")).unwrap();
    fs::write(project.join(".git/config"), "[core]\n").unwrap();
    fs::create_dir_all(project.join("closed/.vscode")).unwrap();
    fs::create_dir_all(project.join("bare/objects")).unwrap();
    fs::create_dir_all(project.join("bare/refs")).unwrap();
    fs::write(project.join("bare/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::set_permissions(project.join("closed"), fs::Permissions::from_mode(0o100)).unwrap();
    let swap = fixture.path("workspace/swap");
    fs::create_dir_all(swap.join("a/closed")).unwrap();
    fs::create_dir_all(swap.join("a/bare")).unwrap();
    std::os::unix::fs::symlink(&project, swap.join("b")).unwrap();
    std::os::unix::fs::symlink("nothing", swap.join("a/.env.link")).unwrap();

    let before = inventory(&fixture.path("outside"));
    let swapper = Swapper::start(swap.join("a"), swap.join("b"));
    let (started, mut commands, mut removed) = (Instant::now(), 0, 0);
    while started.elapsed() < race_time() {
        // A start can fail because of a swap; then nothing ran.
        let Ok(mut child) = fixture
            .launcher
            .spawn(&fixture.policy, fixture.shell(script))
        else {
            continue;
        };
        if let Ok(outcome) = child.wait().await {
            commands += 1;
            removed += outcome.clean_up.removed.len();
        }
    }
    let swaps = swapper.finish();
    println!("{commands} commands, {removed} files removed, {swaps} swaps");
    assert!(commands > 0 && swaps > 1000, "{commands} {swaps}");
    assert_eq!(inventory(&fixture.path("outside")), before);
    removed
}

#[tokio::test]
async fn swapping_a_directory_does_not_redirect_the_removal_outside() {
    let script = "for i in 1 2 3 4 5 6 7 8; do mkdir -p swap/a/.git swap/b/.git; mkdir -p swap/a/d$i/.vscode; done; true";
    assert!(race(script).await > 0, "clean-up found nothing at all");
}

#[tokio::test]
async fn swapping_a_directory_does_not_redirect_mode_changes_outside() {
    race(
        "for i in 1 2 3 4 5 6 7 8; do mkdir -p swap/a/closed/.vscode swap/b/closed/.vscode; \
         chmod 100 swap/a/closed swap/b/closed; rm -f swap/a/.env.link swap/b/.env.link; done; true",
    )
    .await;
}

#[tokio::test]
async fn swapping_a_directory_does_not_make_outside_repositories_look_new() {
    race(
        "for i in 1 2 3 4; do for d in a b; do mkdir -p swap/$d/bare/objects swap/$d/bare/refs; echo x > swap/$d/bare/HEAD; \
         done; done; true",
    )
    .await;
}
