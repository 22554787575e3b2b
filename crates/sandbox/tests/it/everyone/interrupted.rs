//! Clean-up happens even if lango, the command's guard or both are killed.

use crate::fixture::{Fixture, program};
use lango_sandbox::CleanUpReport;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Plants a repository and stays.
const PLANT_AND_STAY: &str = "mkdir -p new/.git && echo planted && sleep 600";

/// Starts a separate lango that runs a script, and waits until the script has printed a line.
fn lango(fixture: &Fixture, script: &str) -> Child {
    let mut lango = std::process::Command::new(program("sandbox-stand-in"))
        .arg("launch")
        .arg(fixture.workspace())
        .arg(script)
        .arg(fixture.path("home"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(lango.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "planted\n");
    // The script must not end because its output pipe breaks.
    std::mem::forget(stdout);
    lango
}

fn children(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"));
    tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| {
            text.split_whitespace()
                .filter_map(|child| child.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect()
}

fn signal(process: u32, signal: Signal) {
    let process = Pid::from_raw(process.try_into().unwrap()).unwrap();
    let _ = kill_process(process, signal);
}

fn kill(process: u32) {
    signal(process, Signal::KILL);
}

async fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(20), "{what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn records(fixture: &Fixture) -> usize {
    fs::read_dir(fixture.path("home/clean-up")).map_or(0, Iterator::count)
}

fn trashed(fixture: &Fixture) -> usize {
    fs::read_dir(fixture.path("home/trash")).map_or(0, Iterator::count)
}

async fn recover(fixture: &Fixture) -> Vec<CleanUpReport> {
    let launcher = fixture.launcher.clone();
    let home = fixture.path("home");
    let launcher = launcher.with_trash(home.join("trash"));
    launcher.with_records(home.join("clean-up")).recover().await
}

fn removed(reports: &[CleanUpReport]) -> Vec<PathBuf> {
    let removed = reports.iter().flat_map(|report| report.removed.clone());
    removed.collect()
}

fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

#[tokio::test]
async fn when_lango_is_killed_the_guard_cleans_up_and_the_next_start_reports_it() {
    let fixture = Fixture::new();
    let planted = fixture.path("workspace/new/.git");
    let mut lango = lango(&fixture, PLANT_AND_STAY);
    assert!(exists(&planted));
    lango.kill().unwrap();
    lango.wait().unwrap();
    wait_until("the repository is still there", || !exists(&planted)).await;
    wait_until("nothing is in the trash", || trashed(&fixture) == 1).await;
    assert_eq!(records(&fixture), 1);
    // The guard may need a moment to write the result.
    let mut reports = recover(&fixture).await;
    let started = Instant::now();
    while reports.is_empty() && started.elapsed() < Duration::from_secs(10) {
        reports = recover(&fixture).await;
    }
    assert_eq!(removed(&reports), [planted]);
    assert_eq!(records(&fixture), 0);
}

#[tokio::test]
async fn when_guard_and_lango_are_killed_the_next_start_cleans_up_but_leaves_later_files() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.path("outside/older/.git")).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let planted = fixture.path("workspace/new/.git");
    let mut lango = lango(&fixture, PLANT_AND_STAY);
    let bubblewrap = children(lango.id());
    let guards: Vec<u32> = bubblewrap.iter().flat_map(|id| children(*id)).collect();
    assert!(!guards.is_empty());
    // Stopped first, so that it cannot clean up before it is killed.
    guards.iter().for_each(|guard| signal(*guard, Signal::STOP));
    lango.kill().unwrap();
    lango.wait().unwrap();
    guards.iter().for_each(|guard| kill(*guard));
    wait_until("the guard still runs", || {
        guards
            .iter()
            .all(|guard| !exists(Path::new(&format!("/proc/{guard}/fd/0"))))
    })
    .await;
    // Later, when the command's time is over, the user keeps working.
    tokio::time::sleep(Duration::from_millis(3500)).await;
    let own = fixture.path("workspace/own/.git");
    fs::create_dir_all(&own).unwrap();
    // A file that is older than the command may have been moved here by the user.
    let moved = fixture.path("workspace/moved");
    fs::rename(fixture.path("outside/older"), &moved).unwrap();
    let reports = recover(&fixture).await;
    assert_eq!(removed(&reports), std::slice::from_ref(&planted));
    assert_eq!(reports[0].remaining, [moved.join(".git")]);
    assert!(!exists(&planted) && exists(&own) && exists(&moved.join(".git")));
    assert_eq!((records(&fixture), trashed(&fixture)), (0, 1));
}

#[tokio::test]
async fn when_only_the_guard_is_killed_lango_cleans_up_immediately() {
    let fixture = Fixture::new();
    let planted = fixture.path("workspace/new/.git");
    let mut lango = lango(&fixture, PLANT_AND_STAY);
    // The kernel's list may miss children while other processes exit, so repeat until it has one.
    let mut guards: Vec<u32> = Vec::new();
    while guards.is_empty() {
        guards = children(lango.id())
            .into_iter()
            .flat_map(children)
            .collect();
    }
    guards.into_iter().for_each(kill);
    wait_until("the repository is still there", || !exists(&planted)).await;
    wait_until("the record is still there", || records(&fixture) == 0).await;
    lango.kill().unwrap();
    lango.wait().unwrap();
}

#[tokio::test]
async fn recovery_leaves_a_running_clean_up_alone() {
    let fixture = Fixture::new();
    let planted = fixture.path("workspace/new/.git");
    let mut lango = lango(&fixture, PLANT_AND_STAY);
    assert_eq!(recover(&fixture).await, []);
    assert!(exists(&planted));
    lango.kill().unwrap();
    lango.wait().unwrap();
    wait_until("the repository is still there", || !exists(&planted)).await;
}

#[tokio::test]
async fn overlapping_commands_are_each_cleaned_up() {
    let fixture = Fixture::new();
    let mut first = fixture
        .launcher
        .spawn(
            &fixture.policy,
            fixture.shell("mkdir -p one/.git; sleep 600"),
        )
        .unwrap();
    wait_until("nothing is planted", || {
        exists(&fixture.path("workspace/one/.git"))
    })
    .await;
    // The first command's file exists when the second starts, so the second clean-up must leave it.
    let second = fixture
        .run(fixture.shell("mkdir -p two/.git; echo x > one/.git/config || true"))
        .await;
    assert_eq!(
        second.outcome.clean_up.removed,
        [fixture.path("workspace/two/.git")]
    );
    assert!(exists(&fixture.path("workspace/one/.git")));
    first.kill();
    let outcome = first.wait().await.unwrap();
    assert_eq!(
        outcome.clean_up.removed,
        [fixture.path("workspace/one/.git")]
    );
}
