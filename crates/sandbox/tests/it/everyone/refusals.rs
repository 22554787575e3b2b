//! What is refused before anything runs, and how a caller can tell a failed sandbox from a failed command.

use crate::world::World;
use lango_sandbox::{Command, ExitKind, LaunchError, Layer, Layers, Policy, Strength};
use std::path::Path;

const FAILING: Layer = Layer::Failing;

/// The error of a command that would leave a mark, which it must not have left.
async fn failure(world: &World) -> LaunchError {
    let command = world.shell("echo x > ran");
    let error = match world.launcher.spawn(&world.policy, command) {
        Err(error) => error,
        Ok(mut child) => {
            let error = child.wait().await.unwrap_err();
            let inner = error.into_inner().unwrap();
            *inner.downcast::<LaunchError>().unwrap()
        }
    };
    assert!(!world.path("workspace/ran").exists());
    error
}

#[tokio::test]
async fn a_layer_that_fails_lets_nothing_run() {
    let all = [
        (
            Layers {
                bubblewrap: FAILING,
                ..Layers::default()
            },
            "apt install bubblewrap",
        ),
        (
            Layers {
                landlock: FAILING,
                ..Layers::default()
            },
            "Landlock",
        ),
        (
            Layers {
                seccomp: FAILING,
                ..Layers::default()
            },
            "seccomp",
        ),
    ];
    for (layers, word) in all {
        let error = failure(&World::new().with_layers(layers)).await.to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[tokio::test]
async fn bubblewrap_that_fails_lets_nothing_run_and_says_why() {
    let mut world = World::new();
    // Nothing can be mounted on a path that long.
    let long = world.workspace().join("n".repeat(200));
    world.policy.read.push(long.clone());
    std::fs::create_dir(&long).unwrap();
    let launcher = lango_sandbox::Launcher::new(lango_sandbox::Helper {
        program: "/nonexistent/helper".into(),
        arguments: Vec::new(),
    });
    world.launcher = launcher;
    let error = failure(&world).await.to_string();
    assert!(
        error.contains("bwrap") && error.contains("not run"),
        "{error}"
    );
}

#[tokio::test]
async fn without_a_sandbox_nothing_runs() {
    let mut world = World::new();
    let why = "no kernel".to_string();
    world.launcher = world.launcher.clone().with_strength(Strength::None { why });
    assert!(failure(&world).await.to_string().contains("no kernel"));
}

#[tokio::test]
async fn a_missing_program_is_the_commands_failure_and_named() {
    let world = World::new();
    let done = world.run(world.command(&["no-such-program"])).await;
    assert_eq!(done.ended.exit, ExitKind::Code(127));
    assert!(done.stderr.contains("`no-such-program`"), "{}", done.stderr);
    let done = world.run(world.command(&["./file"])).await;
    assert_eq!(done.ended.exit, ExitKind::Code(126));
}

#[tokio::test]
async fn folders_of_the_system_are_no_workspace() {
    let world = World::new();
    for folder in [
        "/",
        "/usr",
        "/etc",
        "/proc",
        "/dev",
        "/proc/self",
        "relative",
        "/nonexistent",
    ] {
        let policy = Policy::of(folder.into());
        let command = Command::new(["true"], "/".into());
        let error = world.launcher.spawn(&policy, command).unwrap_err();
        assert!(
            matches!(error, LaunchError::Policy { .. }),
            "{folder}: {error}"
        );
    }
    let mut policy = world.policy.clone();
    policy.write = vec!["/".into()];
    assert!(
        world
            .launcher
            .spawn(&policy, world.command(&["true"]))
            .is_err()
    );
}

#[tokio::test]
async fn a_command_starts_only_where_it_may_look() {
    let world = World::new();
    for folder in [
        world.path("outside"),
        Path::new("/root").into(),
        "file".into(),
    ] {
        let command = Command::new(["true"], folder);
        let error = world.launcher.spawn(&world.policy, command).unwrap_err();
        assert!(matches!(error, LaunchError::Command { .. }), "{error}");
    }
    let empty = Command::new(Vec::<String>::new(), world.workspace().to_path_buf());
    assert!(world.launcher.spawn(&world.policy, empty).is_err());
}
