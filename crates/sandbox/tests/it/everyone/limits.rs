//! Whoever uses up too much is ended, however it goes about it.

use super::attempts::Run;
use super::battery::verdict;
use crate::world::{Done, World, is_root, program, small_limits};
use lango_sandbox::{ExitKind, Layer, Layers, Network, Profile, Stopped};
use std::time::Duration;

/// What is tried, and the limits that may end it. Where the kernel says no by itself, nothing has to be ended.
const BOMBS: &[(&str, &str, &[Stopped])] = &[
    (
        "more processes than allowed",
        "fork-bomb",
        &[Stopped::Processes],
    ),
    (
        "more threads than allowed",
        "threads 200",
        &[Stopped::Processes],
    ),
    ("more memory than allowed", "heap 512", &[Stopped::Memory]),
    (
        "more shared memory than allowed",
        "shared-memory 512",
        &[Stopped::Memory],
    ),
    (
        "more in shared segments than allowed",
        "shared-segment 512",
        &[Stopped::Memory],
    ),
    (
        "more in files in memory than allowed",
        "memory-file 512",
        &[Stopped::Memory],
    ),
    (
        "more in sockets than allowed",
        "socket-buffers 512",
        &[Stopped::Memory],
    ),
    (
        "more in tables of the kernel than allowed",
        "page-tables 512",
        &[Stopped::Memory],
    ),
    (
        "more temporary files than allowed",
        "fill-many 512 /tmp",
        &[Stopped::Memory],
    ),
    (
        "more in shared files than allowed",
        "fill-many 512 /dev/shm",
        &[Stopped::Memory],
    ),
    ("a longer file than allowed", "fill 512 {ws}", &[]),
    (
        "more files than allowed",
        "fill-many 512 {ws}",
        &[Stopped::Disk],
    ),
];

async fn run_bomb(world: &World, words: &str) -> Done {
    let mut command = world.attempt(words);
    command.limits = small_limits();
    world.run(command).await
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_uses_up_too_much_is_ended() {
    let mut wrong = Vec::new();
    for (name, words, stops) in BOMBS {
        let done = run_bomb(&World::new(), words).await;
        let (possible, detail) = verdict(Run::Prober(words), &done);
        println!(
            "{:<14}{name:<46}{detail}",
            if possible { "GOT OUT" } else { "held" }
        );
        let ended_for_another_reason = done
            .ended
            .stopped
            .is_some_and(|stop| !stops.contains(&stop));
        if possible || ended_for_another_reason {
            wrong.push(format!("{name}: {detail}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_are_counted_in_networks_of_ones_own_too() {
    for (words, profile) in [
        ("tcp-buffers 2048", Profile::Command),
        ("socket-buffers 512", Profile::Browser),
        ("nested-apart socket-buffers 512", Profile::Browser),
    ] {
        // The watchdog alone: groups of newer kernels count what lies in sockets.
        let layers = Layers {
            cgroup: Layer::LeftOut,
            ..Layers::default()
        };
        let mut world = World::new().with_layers(layers);
        world.policy.network = Network::Proxied;
        let mut command = world.attempt(words);
        command.limits = small_limits();
        command.profile = profile;
        let done = world.run(command).await;
        assert_eq!(
            done.ended.stopped,
            Some(Stopped::Memory),
            "{words}: {done:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_killed_when_the_oom_killer_kills_one_of_its_processes() {
    if !is_root() {
        // Only root can create the control group.
        return;
    }
    let layers = Layers {
        watchdog: Layer::LeftOut,
        ..Layers::default()
    };
    let world = World::new().with_layers(layers);
    let prober = program("sandbox-prober");
    let mut command = world.shell(&format!("{} heap 512; exec sleep 60", prober.display()));
    command.limits = small_limits();
    let done = world.run(command).await;
    assert_eq!(done.ended.stopped, Some(Stopped::Memory), "{done:?}");
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended() {
    let world = World::new();
    let mut command = world.attempt("sleep");
    command.limits.time = Some(Duration::from_millis(200));
    let done = world.run(command).await;
    assert_eq!(done.ended.stopped, Some(Stopped::Time));
    assert_eq!(done.ended.exit, ExitKind::Signal(9));
}

#[tokio::test]
async fn processes_that_share_their_memory_count_it_once() {
    let world = World::new();
    let script = "import os, time\nheld = bytearray(60 << 20)\nfor _ in range(6):\n    if os.fork() == 0:\n        time.sleep(0.4)\n        os._exit(0)\nfor _ in range(6):\n    os.wait()";
    let mut command = world.command(&["/usr/bin/python3", "-c", script]);
    command.limits = small_limits();
    let done = world.run(command).await;
    assert_eq!(done.ended.exit, ExitKind::Code(0), "{done:?}");
}
