//! No process outlives its call, however the call ends.

use crate::fixture::{Fixture, is_root, program};
use lango_sandbox::{Command, ExitKind, Layer, Layers, Stdin};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};

/// A command with an orphan in a separate session that holds a lock on a file while it runs.
const WITH_ORPHAN: &str = "touch src/lock; (setsid flock src/lock sleep 600 >/dev/null 2>&1 &); while flock -n src/lock true; do :; done; echo ready;";

/// Whether the orphan still holds its lock.
fn is_locked(fixture: &Fixture) -> bool {
    is_locked_at(&fixture.path("workspace/src/lock"))
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
            "a child still runs"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn when_a_command_ends_its_orphans_end_too() {
    let fixture = Fixture::new();
    let result = fixture
        .run(fixture.shell(&format!("{WITH_ORPHAN} exit 7")))
        .await;
    assert_eq!(result.stdout, "ready\n", "{result:?}");
    assert_eq!(result.outcome.exit, ExitKind::Code(7));
    assert!(!is_locked(&fixture));
}

#[tokio::test]
async fn when_a_child_is_killed_its_orphans_end_too() {
    let fixture = Fixture::new();
    let command = fixture.shell(&format!("{WITH_ORPHAN} sleep 600"));
    let mut child = fixture.launcher.spawn(&fixture.policy, command).unwrap();
    let mut lines = tokio::io::BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("ready"));
    assert!(is_locked(&fixture));
    child.kill();
    let outcome = child.wait().await.unwrap();
    assert_eq!(outcome.exit, ExitKind::Signal(9));
    assert_eq!(outcome.stopped_by, None);
    assert!(!is_locked(&fixture));
}

#[tokio::test]
async fn without_namespaces_orphans_are_found_and_killed_too() {
    let layers = Layers {
        bubblewrap: Layer::LeftOut,
        ..Layers::default()
    };
    let fixture = Fixture::new().with_layers(layers);
    let result = fixture
        .run(fixture.shell(&format!("{WITH_ORPHAN} exit 7")))
        .await;
    assert_eq!(result.outcome.exit, ExitKind::Code(7), "{result:?}");
    assert!(!is_locked(&fixture));
}

#[tokio::test]
async fn when_a_child_is_dropped_its_orphans_end_too() {
    let fixture = Fixture::new();
    let command = fixture.shell(&format!("{WITH_ORPHAN} sleep 600"));
    let mut child = fixture.launcher.spawn(&fixture.policy, command).unwrap();
    let mut lines = tokio::io::BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("ready"));
    drop(child);
    wait_until_free(&fixture.path("workspace/src/lock")).await;
}

#[tokio::test]
async fn when_lango_is_killed_its_commands_end_too() {
    let fixture = Fixture::new();
    let mut lango = launch(&fixture, &format!("{WITH_ORPHAN} sleep 600"));
    let mut line = String::new();
    BufReader::new(lango.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
    assert!(is_locked(&fixture));
    lango.kill().unwrap();
    lango.wait().unwrap();
    wait_until_free(&fixture.path("workspace/src/lock")).await;
}

#[tokio::test]
async fn a_dropped_wait_can_be_repeated() {
    let fixture = Fixture::new();
    let mut command = fixture.command(&["cat"]);
    command.stdin = Stdin::Piped;
    let mut child = fixture.launcher.spawn(&fixture.policy, command).unwrap();
    let dropped = tokio::time::timeout(Duration::from_millis(1), child.wait()).await;
    assert!(dropped.is_err());
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
    let fixture = Fixture::new();
    let command = Command {
        stdin: Stdin::Piped,
        ..fixture.command(&["cat"])
    };
    let (launcher, policy) = (fixture.launcher.clone(), fixture.policy.clone());
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

/// Lists the control groups that a process created and that still exist.
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

fn launch(fixture: &Fixture, script: &str) -> std::process::Child {
    std::process::Command::new(program("sandbox-stand-in"))
        .arg("launch")
        .arg(fixture.workspace())
        .arg(script)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn no_control_group_is_left_behind() {
    let fixture = Fixture::new();
    let mut lango = launch(&fixture, "true");
    assert!(lango.wait().unwrap().success());
    assert_eq!(groups_of(lango.id()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn the_groups_of_a_killed_lango_are_removed_by_the_next_self_test() {
    let fixture = Fixture::new();
    let mut lango = launch(&fixture, &format!("{WITH_ORPHAN} sleep 600"));
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
    wait_until_free(&fixture.path("workspace/src/lock")).await;
    let started = Instant::now();
    while !groups_of(lango.id()).is_empty() {
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "a group is left"
        );
        fixture.launcher.self_test().await;
    }
}
