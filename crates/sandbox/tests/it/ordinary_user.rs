//! The sandbox must hold for root and for ordinary users, so this runs the same tests again as another user.

use crate::fixture::{is_root, program};
use lango_sandbox::{ExitKind, HelperCommand, Launcher, Policy};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

const USER: u32 = 1000;

/// Copies all test programs to a shared folder: the other user may not have access to the build directory.
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
async fn root_works_in_the_folder_of_another_user_as_that_user() {
    if !is_root() {
        // Only root can become another user.
        return;
    }
    let folder = programs_for_everyone();
    let helper = HelperCommand {
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
fn an_ordinary_user_is_confined_too() {
    if !is_root() {
        // The other tests already run as an ordinary user.
        return;
    }
    let folder = programs_for_everyone();
    // Optionally runs only a part of the tests.
    let filter = std::env::var("LANGO_TEST_FILTER");
    let part = filter.as_deref().unwrap_or("everyone::");
    let mut tests = Command::new(folder.path().join("tests"));
    tests
        .args([part, "--nocapture", "--test-threads=4"])
        .env("LANGO_TEST_PROGRAMS", folder.path())
        .current_dir(folder.path())
        .uid(USER)
        .gid(USER);
    // A process that another test forks at the same moment has the copy open for writing until its `exec`.
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
        filter.is_ok() || stdout.contains("escaped: 0"),
        "the battery did not run:\n{stdout}"
    );
}
