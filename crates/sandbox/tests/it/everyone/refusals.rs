//! Commands that are refused before they run, and how a caller tells a failed sandbox from a failed command.

use crate::fixture::Fixture;
use lango_sandbox::{Command, ExitKind, LaunchError, Layer, Layers, Policy, SandboxStrength};
use std::path::Path;

const FAILING: Layer = Layer::Failing;

/// Returns the error of a command that would create a file, and checks that it did not.
async fn failure(fixture: &Fixture) -> LaunchError {
    let command = fixture.shell("echo x > ran");
    let error = match fixture.launcher.spawn(&fixture.policy, command) {
        Err(error) => error,
        Ok(mut child) => {
            let error = child.wait().await.unwrap_err();
            let inner = error.into_inner().unwrap();
            *inner.downcast::<LaunchError>().unwrap()
        }
    };
    assert!(!fixture.path("workspace/ran").exists());
    error
}

#[tokio::test]
async fn if_a_layer_fails_nothing_runs() {
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
        let error = failure(&Fixture::new().with_layers(layers))
            .await
            .to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[tokio::test]
async fn if_bubblewrap_fails_nothing_runs_and_the_error_says_why() {
    let mut fixture = Fixture::new();
    // Nothing can be mounted on such a long path.
    let long = fixture.workspace().join("n".repeat(200));
    fixture.policy.read.push(long.clone());
    std::fs::create_dir(&long).unwrap();
    let launcher = lango_sandbox::Launcher::new(lango_sandbox::HelperCommand {
        program: "/nonexistent/helper".into(),
        arguments: Vec::new(),
    });
    fixture.launcher = launcher;
    let error = failure(&fixture).await.to_string();
    assert!(
        error.contains("bwrap") && error.contains("not run"),
        "{error}"
    );
}

#[tokio::test]
async fn without_a_sandbox_nothing_runs() {
    let mut fixture = Fixture::new();
    let why = "no kernel".to_string();
    fixture.launcher = fixture
        .launcher
        .clone()
        .with_strength(SandboxStrength::None { why });
    assert!(failure(&fixture).await.to_string().contains("no kernel"));
}

#[tokio::test]
async fn a_missing_program_is_a_failure_of_the_command_and_is_named() {
    let fixture = Fixture::new();
    let result = fixture.run(fixture.command(&["no-such-program"])).await;
    assert_eq!(result.outcome.exit, ExitKind::Code(127));
    assert!(
        result.stderr.contains("`no-such-program`"),
        "{}",
        result.stderr
    );
    let result = fixture.run(fixture.command(&["./file"])).await;
    assert_eq!(result.outcome.exit, ExitKind::Code(126));
}

#[tokio::test]
async fn system_folders_cannot_be_a_workspace() {
    let fixture = Fixture::new();
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
        let error = fixture.launcher.spawn(&policy, command).unwrap_err();
        assert!(
            matches!(error, LaunchError::Policy { .. }),
            "{folder}: {error}"
        );
    }
    let mut policy = fixture.policy.clone();
    policy.write = vec!["/".into()];
    assert!(
        fixture
            .launcher
            .spawn(&policy, fixture.command(&["true"]))
            .is_err()
    );
}

#[tokio::test]
async fn a_command_starts_only_in_a_visible_folder() {
    let fixture = Fixture::new();
    for folder in [
        fixture.path("outside"),
        Path::new("/root").into(),
        "file".into(),
    ] {
        let command = Command::new(["true"], folder);
        let error = fixture
            .launcher
            .spawn(&fixture.policy, command)
            .unwrap_err();
        assert!(matches!(error, LaunchError::Command { .. }), "{error}");
    }
    let empty = Command::new(Vec::<String>::new(), fixture.workspace().to_path_buf());
    assert!(fixture.launcher.spawn(&fixture.policy, empty).is_err());
}
