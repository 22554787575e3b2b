//! Key files that others could read are refused, and none is overwritten.

use lango_vault::key_file;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn a_key_file_is_private_and_can_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault.key");
    let key = key_file::create(&path).unwrap();
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(key_file::read(&path).unwrap().expose(), key.expose());
    let again = key_file::create(&path).unwrap_err().to_string();
    assert!(again.contains("exists already"), "{again}");
    assert_eq!(key_file::read(&path).unwrap().expose(), key.expose());
}

#[test]
fn a_key_file_that_others_can_read_or_write_is_refused_with_the_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault.key");
    key_file::create(&path).unwrap();
    for mode in [0o640, 0o604, 0o620, 0o602, 0o610] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let refused = key_file::read(&path).unwrap_err().to_string();
        assert!(refused.contains("chmod 600"), "{mode:o}: {refused}");
    }
    fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
    key_file::read(&path).unwrap();
}

#[test]
fn a_key_file_of_another_user_is_refused_even_for_root() {
    // Only root can create such a file.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault.key");
    key_file::create(&path).unwrap();
    std::os::unix::fs::chown(&path, Some(1234), None).unwrap();
    let refused = key_file::read(&path).unwrap_err().to_string();
    for part in ["another user (uid 1234)", "chown 0 "] {
        assert!(refused.contains(part), "{refused}");
    }
    std::os::unix::fs::chown(&path, Some(0), None).unwrap();
    key_file::read(&path).unwrap();
}

#[test]
fn links_and_other_content_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault.key");
    key_file::create(&path).unwrap();
    let link = folder.path().join("link");
    symlink(&path, &link).unwrap();
    let refused = key_file::read(&link).unwrap_err().to_string();
    let file = path.canonicalize().unwrap();
    assert!(refused.contains("a symbolic link"), "{refused}");
    assert!(refused.contains(file.to_str().unwrap()), "{refused}");
    let dangling = folder.path().join("dangling");
    symlink(folder.path().join("elsewhere"), &dangling).unwrap();
    key_file::create(&dangling).unwrap_err();
    assert!(!folder.path().join("elsewhere").exists());
    let line = fs::read_to_string(&path).unwrap();
    for content in [
        "",
        "other",
        &line[1..],
        &line[..line.len() - 2],
        &format!("{line}x"),
    ] {
        fs::write(&path, content).unwrap();
        let refused = key_file::read(&path).unwrap_err().to_string();
        assert!(
            refused.contains("does not contain a lango key"),
            "{refused}"
        );
    }
    key_file::read(folder.path()).unwrap_err();
}
