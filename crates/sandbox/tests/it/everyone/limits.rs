//! A command that exceeds a limit is stopped, whatever it does.

use super::attempts::Run;
use super::battery::evaluate;
use crate::fixture::{Fixture, RunResult, is_root, program, small_limits};
use lango_sandbox::{ExceededLimit, ExitKind, Layer, Layers, Network, SandboxProfile};
use std::time::Duration;

/// The attempts, and the limits that may stop them. Empty if the kernel itself refuses.
const BOMBS: &[(&str, &str, &[ExceededLimit])] = &[
    (
        "more processes than allowed",
        "fork-bomb",
        &[ExceededLimit::Processes],
    ),
    (
        "more threads than allowed",
        "threads 200",
        &[ExceededLimit::Processes],
    ),
    (
        "more memory than allowed",
        "heap 512",
        &[ExceededLimit::Memory],
    ),
    (
        "more shared memory than allowed",
        "shared-memory 512",
        &[ExceededLimit::Memory],
    ),
    (
        "more in shared segments than allowed",
        "shared-segment 512",
        &[ExceededLimit::Memory],
    ),
    (
        "more in memory files than allowed",
        "memory-file 512",
        &[ExceededLimit::Memory],
    ),
    (
        "more in sockets than allowed",
        "socket-buffers 512",
        &[ExceededLimit::Memory],
    ),
    (
        "more in page tables than allowed",
        "page-tables 512",
        &[ExceededLimit::Memory],
    ),
    (
        "more temporary files than allowed",
        "fill-many 512 /tmp",
        &[ExceededLimit::Memory],
    ),
    (
        "more in shared files than allowed",
        "fill-many 512 /dev/shm",
        &[ExceededLimit::Memory],
    ),
    ("a larger file than allowed", "fill 512 {ws}", &[]),
    (
        "more files than allowed",
        "fill-many 512 {ws}",
        &[ExceededLimit::Disk],
    ),
];

async fn run_bomb(fixture: &Fixture, words: &str) -> RunResult {
    let mut command = fixture.attempt(words);
    command.limits = small_limits();
    fixture.run(command).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_exceeds_a_limit_is_stopped() {
    let mut wrong = Vec::new();
    for (name, words, stops) in BOMBS {
        let result = run_bomb(&Fixture::new(), words).await;
        let (possible, detail) = evaluate(Run::Prober(words), &result);
        println!(
            "{:<14}{name:<46}{detail}",
            if possible { "EXCEEDED" } else { "stopped" }
        );
        let stopped_for_another_reason = result
            .outcome
            .stopped_by
            .is_some_and(|stop| !stops.contains(&stop));
        if possible || stopped_for_another_reason {
            wrong.push(format!("{name}: {detail}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_are_counted_in_separate_networks_too() {
    for (words, profile) in [
        ("tcp-buffers 2048", SandboxProfile::Command),
        ("socket-buffers 512", SandboxProfile::Browser),
        ("nested-apart socket-buffers 512", SandboxProfile::Browser),
    ] {
        // Tests the watchdog alone: control groups of newer kernels count socket memory.
        let layers = Layers {
            cgroup: Layer::LeftOut,
            ..Layers::default()
        };
        let mut fixture = Fixture::new().with_layers(layers);
        fixture.policy.network = Network::Proxied;
        let mut command = fixture.attempt(words);
        command.limits = small_limits();
        command.profile = profile;
        let result = fixture.run(command).await;
        assert_eq!(
            result.outcome.stopped_by,
            Some(ExceededLimit::Memory),
            "{words}: {result:?}"
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
    let fixture = Fixture::new().with_layers(layers);
    let prober = program("sandbox-prober");
    let mut command = fixture.shell(&format!("{} heap 512; exec sleep 60", prober.display()));
    command.limits = small_limits();
    let result = fixture.run(command).await;
    assert_eq!(
        result.outcome.stopped_by,
        Some(ExceededLimit::Memory),
        "{result:?}"
    );
}

#[tokio::test]
async fn a_command_that_runs_too_long_is_stopped() {
    let fixture = Fixture::new();
    let mut command = fixture.attempt("sleep");
    command.limits.time = Some(Duration::from_millis(200));
    let result = fixture.run(command).await;
    assert_eq!(result.outcome.stopped_by, Some(ExceededLimit::Time));
    assert_eq!(result.outcome.exit, ExitKind::Signal(9));
}

#[tokio::test]
async fn memory_that_processes_share_counts_once() {
    let fixture = Fixture::new();
    let script = "import os, time\nheld = bytearray(60 << 20)\nfor _ in range(6):\n    if os.fork() == 0:\n        time.sleep(0.4)\n        os._exit(0)\nfor _ in range(6):\n    os.wait()";
    let mut command = fixture.command(&["/usr/bin/python3", "-c", script]);
    command.limits = small_limits();
    let result = fixture.run(command).await;
    assert_eq!(result.outcome.exit, ExitKind::Code(0), "{result:?}");
}
