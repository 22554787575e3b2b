//! The self-test says what is so.

use crate::world::{World, is_root};
use lango_sandbox::{ExitKind, Layer, Layers, Strength};
use std::time::Instant;

#[tokio::test]
async fn all_layers_work_here() {
    let world = World::new();
    let started = Instant::now();
    let found = world.launcher.self_test().await;
    println!(
        "the self-test took {:?}: {:?}",
        started.elapsed(),
        found.limits
    );
    assert_eq!(found.strength, Strength::Full, "{found:#?}");
    assert!(found.checks.len() > 10);
    assert!(found.checks.iter().all(|check| check.passed));
}

#[tokio::test]
async fn without_bubblewrap_root_is_not_held_and_others_only_in_part() {
    let layers = Layers {
        bubblewrap: Layer::Failing,
        ..Layers::default()
    };
    let mut world = World::new().with_layers(layers);
    let found = world.launcher.self_test().await;
    match (&found.strength, is_root()) {
        (Strength::None { why }, true) => assert!(why.contains("apt install bubblewrap"), "{why}"),
        (Strength::Degraded { missing }, false) => {
            assert!(missing.contains("bubblewrap"), "{missing}")
        }
        other => panic!("{other:?}"),
    }
    if is_root() {
        return;
    }
    world.launcher = world.launcher.clone().with_strength(found.strength);
    let done = world
        .run(world.shell("echo x > src/new && echo x > $TMPDIR/x && echo y"))
        .await;
    assert_eq!(done.ended.exit, ExitKind::Code(0), "{done:?}");
    for refused in [
        "cat {out}/secret",
        "echo x > .git/config",
        "cat private/lango.db",
        "echo x >> .env",
    ] {
        let done = world.run(world.shell(refused)).await;
        assert_ne!(done.ended.exit, ExitKind::Code(0), "{refused}");
    }
    let done = world.run(world.attempt("unix {out}/socket")).await;
    assert!(done.stdout.starts_with("refused"), "{done:?}");
    let done = world.run(world.attempt("signal {pid}")).await;
    assert!(done.stdout.starts_with("refused"), "{done:?}");
}

#[tokio::test]
async fn without_landlock_bubblewrap_holds_alone() {
    let layers = Layers {
        landlock: Layer::Failing,
        ..Layers::default()
    };
    let mut world = World::new().with_layers(layers);
    let found = world.launcher.self_test().await;
    let Strength::Degraded { missing } = &found.strength else {
        panic!("{found:#?}");
    };
    assert!(missing.contains("Landlock"), "{missing}");
    world.launcher = world.launcher.clone().with_strength(found.strength);
    let done = world.run(world.shell("cat {out}/secret")).await;
    assert_ne!(done.ended.exit, ExitKind::Code(0), "{done:?}");
}

#[tokio::test]
async fn a_layer_that_is_left_out_is_noticed() {
    let out = Layer::LeftOut;
    let all = [
        Layers {
            bubblewrap: out,
            ..Layers::default()
        },
        Layers {
            seccomp: out,
            ..Layers::default()
        },
    ];
    for layers in all {
        let found = World::new().with_layers(layers).launcher.self_test().await;
        assert_ne!(found.strength, Strength::Full, "{layers:?}");
    }
}
