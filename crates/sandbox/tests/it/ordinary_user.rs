//! What holds for root must hold for an ordinary user, and the other way round: the same tests once more as another user.

use crate::world::{is_root, program};
use lango_sandbox::{ExitKind, Helper, Launcher, Policy};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

const USER: u32 = 1000;

/// Copies of all programs: that user may not reach the place where they were built.
fn programs_for_everyone() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let programs = [
        (program("sandbox-stand-in"), "sandbox-stand-in"),
        (program("sandbox-prober"), "sandbox-prober"),
        (std::env::current_exe().unwrap(), "tests"),
    ];
    for (from, name) in programs {
        let to = folder.path().join(name);
        fs::copy(from, &to).unwrap();
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

#[tokio::test]
async fn root_works_in_the_folder_of_another_as_that_user() {
    if !is_root() {
        // Only root can become another.
        return;
    }
    let folder = programs_for_everyone();
    let helper = Helper {
        program: folder.path().join("sandbox-stand-in"),
        arguments: vec!["__sandbox".into()],
    };
    let workspace = folder.path().join("workspace");
    fs::create_dir(&workspace).unwrap();
    fs::set_permissions(&workspace, fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(&workspace, Some(USER), Some(USER)).unwrap();
    let launcher = Launcher::new(helper);
    let policy = Policy::of(workspace.clone());
    let command = lango_sandbox::Command::new(["touch", "new"], workspace.clone());
    let mut child = launcher.spawn(&policy, command).unwrap();
    assert_eq!(child.wait().await.unwrap().exit, ExitKind::Code(0));
    assert_eq!(fs::metadata(workspace.join("new")).unwrap().uid(), USER);
}

#[test]
fn an_ordinary_user_is_held_as_well() {
    if !is_root() {
        // Then the other tests of this binary have shown it.
        return;
    }
    let folder = programs_for_everyone();
    // A part of the tests, where one wants only that.
    let filter = std::env::var("LANGO_TEST_FILTER");
    let part = filter.as_deref().unwrap_or("everyone::");
    let mut tests = Command::new(folder.path().join("tests"));
    tests
        .args([part, "--nocapture", "--test-threads=4"])
        .env("LANGO_TEST_PROGRAMS", folder.path())
        .current_dir(folder.path())
        .uid(USER)
        .gid(USER);
    // A process that another test is just starting holds the copy open for writing until it becomes its program.
    let output = loop {
        match tests.output() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {}
            output => break output.unwrap(),
        }
    };
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    println!("as user {USER}:\n{stdout}{stderr}");
    assert!(output.status.success(), "as user {USER}:\n{stdout}{stderr}");
    assert!(
        filter.is_ok() || stdout.contains("got out: 0"),
        "the battery did not run:\n{stdout}"
    );
}
