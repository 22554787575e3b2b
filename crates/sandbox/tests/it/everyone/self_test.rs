//! The self-test reports the truth.

use crate::fixture::{Fixture, is_root};
use lango_sandbox::{ExitKind, Layer, Layers, SandboxStrength};
use std::time::Instant;

#[tokio::test]
async fn all_layers_work_here() {
    let fixture = Fixture::new();
    let started = Instant::now();
    let found = fixture.launcher.self_test().await;
    println!(
        "the self-test took {:?}: {:?}",
        started.elapsed(),
        found.limits
    );
    assert_eq!(found.strength, SandboxStrength::Full, "{found:#?}");
    assert!(found.checks.len() > 10);
    assert!(found.checks.iter().all(|check| check.passed));
}

#[tokio::test]
async fn without_bubblewrap_root_is_not_confined_and_other_users_only_partly() {
    let layers = Layers {
        bubblewrap: Layer::Failing,
        ..Layers::default()
    };
    let mut fixture = Fixture::new().with_layers(layers);
    let found = fixture.launcher.self_test().await;
    match (&found.strength, is_root()) {
        (SandboxStrength::None { why }, true) => {
            assert!(why.contains("apt install bubblewrap"), "{why}")
        }
        (SandboxStrength::Degraded { missing }, false) => {
            assert!(missing.contains("bubblewrap"), "{missing}")
        }
        other => panic!("{other:?}"),
    }
    if is_root() {
        return;
    }
    fixture.launcher = fixture.launcher.clone().with_strength(found.strength);
    let result = fixture
        .run(fixture.shell("echo x > src/new && echo x > $TMPDIR/x && echo y"))
        .await;
    assert_eq!(result.outcome.exit, ExitKind::Code(0), "{result:?}");
    for refused in [
        "cat {out}/secret",
        "echo x > .git/config",
        "cat private/lango.db",
        "echo x >> .env",
    ] {
        let result = fixture.run(fixture.shell(refused)).await;
        assert_ne!(result.outcome.exit, ExitKind::Code(0), "{refused}");
    }
    let result = fixture.run(fixture.attempt("unix {out}/socket")).await;
    assert!(result.stdout.starts_with("refused"), "{result:?}");
    let result = fixture.run(fixture.attempt("signal {pid}")).await;
    assert!(result.stdout.starts_with("refused"), "{result:?}");
}

#[tokio::test]
async fn without_landlock_bubblewrap_still_confines_commands() {
    let layers = Layers {
        landlock: Layer::Failing,
        ..Layers::default()
    };
    let mut fixture = Fixture::new().with_layers(layers);
    let found = fixture.launcher.self_test().await;
    let SandboxStrength::Degraded { missing } = &found.strength else {
        panic!("{found:#?}");
    };
    assert!(missing.contains("Landlock"), "{missing}");
    fixture.launcher = fixture.launcher.clone().with_strength(found.strength);
    let result = fixture.run(fixture.shell("cat {out}/secret")).await;
    assert_ne!(result.outcome.exit, ExitKind::Code(0), "{result:?}");
}

#[tokio::test]
async fn the_self_test_detects_a_skipped_layer() {
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
        let found = Fixture::new()
            .with_layers(layers)
            .launcher
            .self_test()
            .await;
        assert_ne!(found.strength, SandboxStrength::Full, "{layers:?}");
    }
}
