//! Each layer is needed: without it, some attempts succeed. This also shows that the battery can fail.

use super::attempts::Run::{self, Prober, Shell};
use super::battery::try_it;
use crate::fixture::{Fixture, is_root, small_limits};
use lango_sandbox::{Layer, Layers};

/// Makes these attempts without a layer, where they must succeed, and with all layers.
async fn assert_needed(layers: Layers, attempts: &[Run]) {
    for run in attempts {
        let (possible, detail) = try_it(&Fixture::new().with_layers(layers), *run).await;
        println!("without: {run:?}: {detail}");
        assert!(possible, "{run:?} is refused without {layers:?}: {detail}");
        let (possible, detail) = try_it(&Fixture::new(), *run).await;
        assert!(!possible, "{run:?}: {detail}");
    }
}

const OUT: Layer = Layer::LeftOut;

#[tokio::test(flavor = "multi_thread")]
async fn without_bubblewrap_the_rest_of_the_machine_is_visible() {
    let layers = Layers {
        bubblewrap: OUT,
        ..Layers::default()
    };
    let attempts = [
        Prober("unix {out}/socket"),
        Prober("descriptor-from-outside {out}/rights"),
        Shell("stat {out}/secret"),
        Shell("chmod 700 {out}"),
    ];
    assert_needed(layers, &attempts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_landlock_commands_can_reach_the_guard() {
    let layers = Layers {
        landlock: OUT,
        ..Layers::default()
    };
    let attempts = [Prober("signal 1"), Shell("/.lango; test $? -eq 2")];
    assert_needed(layers, &attempts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_bubblewrap_landlock_protects_the_files() {
    let neither = Layers {
        bubblewrap: OUT,
        landlock: OUT,
        ..Layers::default()
    };
    let landlock = Layers {
        bubblewrap: OUT,
        ..Layers::default()
    };
    let attempts = [
        Shell("cat {out}/secret"),
        Shell("echo x > {out}/new"),
        Shell("ln -s {out}/secret l && cat l"),
        Shell("cat {out}/lango.db"),
        Shell("cat {ws}/../outside/secret"),
        Shell("cat {ws}/private/lango.db"),
        Shell("cat {host-file}"),
        Shell("echo x > .git/hooks/pre-commit"),
        Shell("echo x >> sub/.git/config"),
        Prober("abstract {abstract}"),
        Prober("rename {out}/secret {ws}/stolen"),
    ];
    for run in attempts {
        let (possible, detail) = try_it(&Fixture::new().with_layers(neither), run).await;
        assert!(possible, "{run:?} is refused without any layer: {detail}");
        let (possible, detail) = try_it(&Fixture::new().with_layers(landlock), run).await;
        assert!(!possible, "{run:?}: {detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_seccomp_dangerous_system_calls_succeed() {
    let layers = Layers {
        seccomp: OUT,
        ..Layers::default()
    };
    let attempts = [
        Prober("unshare-user"),
        Prober("clone-user"),
        Prober("clone3-user"),
        Prober("io-uring"),
        Prober("udp"),
        Prober("netlink"),
        Prober("add-key"),
        Prober("personality"),
        Prober("handle {ws}/file"),
        Prober("fallocate {ws}/room"),
        Prober("hide-from-guard"),
    ];
    assert_needed(layers, &attempts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_watchdog_and_the_control_group_limits_can_be_exceeded() {
    let layers = Layers {
        watchdog: OUT,
        cgroup: OUT,
        ..Layers::default()
    };
    let mut attempts = vec!["shared-memory 160", "fill-many 80 {ws}"];
    if is_root() {
        // For an ordinary user the kernel itself limits the processes.
        attempts.push("threads 100");
    }
    for words in attempts {
        let fixture = Fixture::new().with_layers(layers);
        let mut command = fixture.attempt(words);
        command.limits = small_limits();
        let result = fixture.run(command).await;
        assert!(result.stdout.starts_with("possible"), "{words}: {result:?}");
    }
}
