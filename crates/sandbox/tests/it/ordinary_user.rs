//! What holds for root must hold for an ordinary user, and the other way round: the same tests once more as another user.

use crate::world::{is_root, program};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

const USER: u32 = 1000;

#[test]
fn an_ordinary_user_is_held_as_well() {
    if !is_root() {
        // Then the other tests of this binary have shown it.
        return;
    }
    // That user may not reach the place where this test was built.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = |from: std::path::PathBuf, name: &str| {
        let to = folder.path().join(name);
        fs::copy(from, &to).unwrap();
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).unwrap();
        to
    };
    copy(program("sandbox-stand-in"), "sandbox-stand-in");
    copy(program("sandbox-prober"), "sandbox-prober");
    let tests = copy(std::env::current_exe().unwrap(), "tests");
    let output = Command::new(tests)
        .args(["everyone::", "--nocapture", "--test-threads=4"])
        .env("LANGO_TEST_PROGRAMS", folder.path())
        .current_dir(folder.path())
        .uid(USER)
        .gid(USER)
        .output()
        .unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    println!("as user {USER}:\n{stdout}{stderr}");
    assert!(output.status.success(), "as user {USER}:\n{stdout}{stderr}");
    assert!(
        stdout.contains("got out: 0"),
        "the battery did not run:\n{stdout}"
    );
}
