//! Nothing outlives its call, whatever ends it.

use crate::world::{World, is_root, program};
use lango_sandbox::{Command, ExitKind, Layer, Layers, Stdin};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};

/// A command with a child in a session of its own, an orphan, that holds a lock on a file while it lives.
const WITH_ORPHAN: &str = "touch src/lock; (setsid flock src/lock sleep 600 >/dev/null 2>&1 &); while flock -n src/lock true; do :; done; echo ready;";

/// Whether a file is locked by anyone.
fn is_locked(world: &World) -> bool {
    is_locked_at(&world.path("workspace/src/lock"))
}

fn is_locked_at(path: &std::path::Path) -> bool {
    let file = std::fs::File::open(path).unwrap();
    match file.try_lock() {
        Ok(()) => false,
        Err(std::fs::TryLockError::WouldBlock) => true,
        Err(std::fs::TryLockError::Error(error)) => panic!("{error}"),
    }
}

async fn wait_until_free(path: &std::path::Path) {
    let started = Instant::now();
    while is_locked_at(path) {
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "a child lives on"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn when_a_command_ends_its_orphans_are_gone() {
    let world = World::new();
    let done = world
        .run(world.shell(&format!("{WITH_ORPHAN} exit 7")))
        .await;
    assert_eq!(done.stdout, "ready\n", "{done:?}");
    assert_eq!(done.ended.exit, ExitKind::Code(7));
    assert!(!is_locked(&world));
}

#[tokio::test]
async fn when_a_child_is_killed_its_orphans_are_gone() {
    let world = World::new();
    let command = world.shell(&format!("{WITH_ORPHAN} sleep 600"));
    let mut child = world.launcher.spawn(&world.policy, command).unwrap();
    let mut lines = tokio::io::BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("ready"));
    assert!(is_locked(&world));
    child.kill();
    let ended = child.wait().await.unwrap();
    assert_eq!(ended.exit, ExitKind::Signal(9));
    assert_eq!(ended.stopped, None);
    assert!(!is_locked(&world));
}

#[tokio::test]
async fn without_namespaces_orphans_are_found_and_ended_too() {
    let layers = Layers {
        bubblewrap: Layer::LeftOut,
        ..Layers::default()
    };
    let world = World::new().with_layers(layers);
    let done = world
        .run(world.shell(&format!("{WITH_ORPHAN} exit 7")))
        .await;
    assert_eq!(done.ended.exit, ExitKind::Code(7), "{done:?}");
    assert!(!is_locked(&world));
}

#[tokio::test]
async fn when_a_child_is_dropped_its_orphans_are_gone() {
    let world = World::new();
    let command = world.shell(&format!("{WITH_ORPHAN} sleep 600"));
    let mut child = world.launcher.spawn(&world.policy, command).unwrap();
    let mut lines = tokio::io::BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("ready"));
    drop(child);
    wait_until_free(&world.path("workspace/src/lock")).await;
}

#[tokio::test]
async fn when_lango_is_killed_its_commands_are_gone() {
    let world = World::new();
    let mut lango = launch(&world, &format!("{WITH_ORPHAN} sleep 600"));
    let mut line = String::new();
    BufReader::new(lango.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
    assert!(is_locked(&world));
    lango.kill().unwrap();
    lango.wait().unwrap();
    wait_until_free(&world.path("workspace/src/lock")).await;
}

#[tokio::test]
async fn a_wait_that_was_given_up_can_be_taken_up_again() {
    let world = World::new();
    let mut command = world.command(&["cat"]);
    command.stdin = Stdin::Piped;
    let mut child = world.launcher.spawn(&world.policy, command).unwrap();
    let given_up = tokio::time::timeout(Duration::from_millis(1), child.wait()).await;
    assert!(given_up.is_err());
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"through").await.unwrap();
    drop(stdin);
    let mut text = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .await
        .unwrap();
    assert_eq!(text, "through");
    assert_eq!(child.wait().await.unwrap().exit, ExitKind::Code(0));
    assert_eq!(child.wait().await.unwrap().exit, ExitKind::Code(0));
}

#[tokio::test]
async fn a_command_outlives_the_thread_that_started_it() {
    let world = World::new();
    let command = Command {
        stdin: Stdin::Piped,
        ..world.command(&["cat"])
    };
    let (launcher, policy) = (world.launcher.clone(), world.policy.clone());
    let runtime = tokio::runtime::Handle::current();
    let thread = std::thread::spawn(move || {
        let _entered = runtime.enter();
        launcher.spawn(&policy, command).unwrap()
    });
    let mut child = thread.join().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"x").await.unwrap();
    drop(stdin);
    assert_eq!(child.wait().await.unwrap().exit, ExitKind::Code(0));
}

/// The control groups that a process made and that are still there.
fn groups_of(process: u32) -> Vec<PathBuf> {
    let own = Some(process.to_string());
    let text = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let folders = text.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        Some(format!("/sys/fs/cgroup/{controllers}{path}"))
    });
    let entries =
        folders.flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    entries
        .filter(|entry| owner(&entry.file_name().to_string_lossy()) == own)
        .map(|entry| entry.path())
        .collect()
}

/// Returns the process id in a group's name, which follows the PID namespace.
fn owner(group: &str) -> Option<String> {
    let numbers = group.strip_prefix("lango-")?;
    numbers.split('-').nth(1).map(str::to_owned)
}

fn launch(world: &World, script: &str) -> std::process::Child {
    std::process::Command::new(program("sandbox-stand-in"))
        .arg("launch")
        .arg(world.workspace())
        .arg(script)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn no_control_group_is_left_behind() {
    let world = World::new();
    let mut lango = launch(&world, "true");
    assert!(lango.wait().unwrap().success());
    assert_eq!(groups_of(lango.id()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn the_groups_of_a_killed_lango_are_removed_by_the_next_self_test() {
    let world = World::new();
    let mut lango = launch(&world, &format!("{WITH_ORPHAN} sleep 600"));
    let mut line = String::new();
    BufReader::new(lango.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(
        groups_of(lango.id()).is_empty(),
        !is_root(),
        "as root there is a group"
    );
    lango.kill().unwrap();
    lango.wait().unwrap();
    wait_until_free(&world.path("workspace/src/lock")).await;
    let started = Instant::now();
    while !groups_of(lango.id()).is_empty() {
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "a group is left"
        );
        world.launcher.self_test().await;
    }
}
