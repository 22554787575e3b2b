//! Clean-up happens whatever ends the command: the death of lango, of the command's guard, and of both.

use crate::world::{World, program};
use lango_sandbox::CleanUpReport;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Plants a repository and stays.
const PLANT_AND_STAY: &str = "mkdir -p new/.git && echo planted && sleep 600";

/// A lango of its own that runs a script, once that has printed a line.
fn lango(world: &World, script: &str) -> Child {
    let mut lango = std::process::Command::new(program("sandbox-stand-in"))
        .arg("launch")
        .arg(world.workspace())
        .arg(script)
        .arg(world.path("home"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(lango.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "planted\n");
    // Nobody reads on, and a pipe that breaks is no reason to end.
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

fn records(world: &World) -> usize {
    fs::read_dir(world.path("home/clean-up")).map_or(0, Iterator::count)
}

fn trashed(world: &World) -> usize {
    fs::read_dir(world.path("home/trash")).map_or(0, Iterator::count)
}

async fn recover(world: &World) -> Vec<CleanUpReport> {
    let launcher = world.launcher.clone();
    let home = world.path("home");
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
    let world = World::new();
    let planted = world.path("workspace/new/.git");
    let mut lango = lango(&world, PLANT_AND_STAY);
    assert!(exists(&planted));
    lango.kill().unwrap();
    lango.wait().unwrap();
    wait_until("the repository is still there", || !exists(&planted)).await;
    wait_until("nothing is in the trash", || trashed(&world) == 1).await;
    assert_eq!(records(&world), 1);
    // The guard may need a moment to write the result.
    let mut reports = recover(&world).await;
    let started = Instant::now();
    while reports.is_empty() && started.elapsed() < Duration::from_secs(10) {
        reports = recover(&world).await;
    }
    assert_eq!(removed(&reports), [planted]);
    assert_eq!(records(&world), 0);
}

#[tokio::test]
async fn when_guard_and_lango_are_killed_the_next_start_cleans_up_and_spares_what_came_later() {
    let world = World::new();
    fs::create_dir_all(world.path("outside/older/.git")).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let planted = world.path("workspace/new/.git");
    let mut lango = lango(&world, PLANT_AND_STAY);
    let bubblewrap = children(lango.id());
    let guards: Vec<u32> = bubblewrap.iter().flat_map(|id| children(*id)).collect();
    assert!(!guards.is_empty());
    // It must not be faster than its end.
    guards.iter().for_each(|guard| signal(*guard, Signal::STOP));
    lango.kill().unwrap();
    lango.wait().unwrap();
    guards.iter().for_each(|guard| kill(*guard));
    wait_until("the guard lives", || {
        guards
            .iter()
            .all(|guard| !exists(Path::new(&format!("/proc/{guard}/fd/0"))))
    })
    .await;
    // The user works on; the time of the command is over by then.
    tokio::time::sleep(Duration::from_millis(3500)).await;
    let own = world.path("workspace/own/.git");
    fs::create_dir_all(&own).unwrap();
    // What is older than the command was moved in by the user, as far as anybody can tell.
    let moved = world.path("workspace/moved");
    fs::rename(world.path("outside/older"), &moved).unwrap();
    let reports = recover(&world).await;
    assert_eq!(removed(&reports), std::slice::from_ref(&planted));
    assert_eq!(reports[0].left, [moved.join(".git")]);
    assert!(!exists(&planted) && exists(&own) && exists(&moved.join(".git")));
    assert_eq!((records(&world), trashed(&world)), (0, 1));
}

#[tokio::test]
async fn when_only_the_guard_is_killed_lango_cleans_up_at_once() {
    let world = World::new();
    let planted = world.path("workspace/new/.git");
    let mut lango = lango(&world, PLANT_AND_STAY);
    // The kernel's list may miss children while other processes exit, so it is read until it has one.
    let mut guards: Vec<u32> = Vec::new();
    while guards.is_empty() {
        guards = children(lango.id())
            .into_iter()
            .flat_map(children)
            .collect();
    }
    guards.into_iter().for_each(kill);
    wait_until("the repository is still there", || !exists(&planted)).await;
    wait_until("the record is still there", || records(&world) == 0).await;
    lango.kill().unwrap();
    lango.wait().unwrap();
}

#[tokio::test]
async fn a_clean_up_that_is_under_way_is_left_to_its_owner() {
    let world = World::new();
    let planted = world.path("workspace/new/.git");
    let mut lango = lango(&world, PLANT_AND_STAY);
    assert_eq!(recover(&world).await, []);
    assert!(exists(&planted));
    lango.kill().unwrap();
    lango.wait().unwrap();
    wait_until("the repository is still there", || !exists(&planted)).await;
}

#[tokio::test]
async fn when_commands_overlap_each_is_cleaned_up_after() {
    let world = World::new();
    let mut first = world
        .launcher
        .spawn(&world.policy, world.shell("mkdir -p one/.git; sleep 600"))
        .unwrap();
    wait_until("nothing is planted", || {
        exists(&world.path("workspace/one/.git"))
    })
    .await;
    // What the first one planted exists when the second one starts, and is none of its business.
    let second = world
        .run(world.shell("mkdir -p two/.git; echo x > one/.git/config || true"))
        .await;
    assert_eq!(
        second.ended.clean_up.removed,
        [world.path("workspace/two/.git")]
    );
    assert!(exists(&world.path("workspace/one/.git")));
    first.kill();
    let ended = first.wait().await.unwrap();
    assert_eq!(ended.clean_up.removed, [world.path("workspace/one/.git")]);
}
