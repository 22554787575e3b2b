//! An edit and its undo leave the owner, the permissions and the extended attributes of a file as they are, and an undo
//! leaves those that the user has set since.

use crate::support::FileFixture;
use rustix::fs::{XattrFlags, getxattr, setxattr};
use serde_json::json;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

fn set_mode(fixture: &FileFixture, name: &str, mode: u32) {
    std::fs::set_permissions(fixture.inside(name), Permissions::from_mode(mode)).unwrap();
}

fn mode(fixture: &FileFixture, name: &str) -> u32 {
    fixture.inside(name).metadata().unwrap().mode() & 0o777
}

fn edit(fixture: &FileFixture, name: &str) {
    fixture.text("fs_edit", json!({"path": name, "old": "old", "new": "new"}));
}

#[test]
fn permissions_that_the_user_changed_since_the_turn_stay() {
    for (before, since, after) in [
        (0o644, 0o600, 0o600),
        (0o644, 0o755, 0o755),
        (0o600, 0o644, 0o644),
        (0o755, 0o700, 0o700),
        // Nobody changed these.
        (0o640, 0o640, 0o640),
        (0o755, 0o755, 0o755),
        // A write can take away executable bits.
        (0o755, 0o644, 0o755),
    ] {
        let fixture = FileFixture::new();
        fixture.write("notes.md", "old");
        set_mode(&fixture, "notes.md", before);
        edit(&fixture, "notes.md");
        assert_eq!(mode(&fixture, "notes.md"), before);
        set_mode(&fixture, "notes.md", since);
        fixture.undo_all("t_1");
        assert_eq!(fixture.read("notes.md"), "old");
        assert_eq!(mode(&fixture, "notes.md"), after, "{before:o} {since:o}");
    }
}

#[test]
fn permissions_that_the_user_changed_between_two_changes_of_a_turn_stay() {
    let fixture = FileFixture::new();
    fixture.write("notes.md", "old old2");
    set_mode(&fixture, "notes.md", 0o644);
    fixture.text(
        "fs_edit",
        json!({"path": "notes.md", "old": "old2", "new": "x"}),
    );
    set_mode(&fixture, "notes.md", 0o600);
    edit(&fixture, "notes.md");
    fixture.undo_all("t_1");
    assert_eq!(fixture.read("notes.md"), "old old2");
    assert_eq!(mode(&fixture, "notes.md"), 0o600);
}

#[test]
fn an_owner_that_was_set_since_the_turn_stays() {
    let fixture = FileFixture::new();
    fixture.write("notes.md", "old");
    edit(&fixture, "notes.md");
    let path = fixture.inside("notes.md");
    if chown(&path, Some(1000), Some(1001)).is_err() {
        println!("not root, so nothing was tested");
        return;
    }
    set_mode(&fixture, "notes.md", 0o660);
    fixture.undo_all("t_1");
    let metadata = path.metadata().unwrap();
    assert_eq!(fixture.read("notes.md"), "old");
    assert_eq!((metadata.uid(), metadata.gid()), (1000, 1001));
    assert_eq!(mode(&fixture, "notes.md"), 0o660);
}

#[test]
fn an_edit_and_its_undo_preserve_the_owner_and_extended_attributes() {
    let fixture = FileFixture::new();
    fixture.write("notes.md", "old");
    let path = fixture.inside("notes.md");
    // Some file systems have no extended attributes.
    let has_attribute = setxattr(&path, "user.test", b"mine", XattrFlags::empty()).is_ok();
    let is_root = path.metadata().unwrap().uid() == 0;
    assert_eq!(chown(&path, Some(1000), Some(1001)).is_ok(), is_root);
    set_mode(&fixture, "notes.md", 0o640);
    let attributes = || {
        let metadata = path.metadata().unwrap();
        let mut value = [0; 16];
        let size = getxattr(&path, "user.test", &mut value).unwrap_or_default();
        let owner = (metadata.uid(), metadata.gid());
        (owner, metadata.mode(), value[..size].to_vec())
    };
    let before = attributes();
    assert_eq!(before.2 == b"mine", has_attribute);
    edit(&fixture, "notes.md");
    assert_eq!(fixture.read("notes.md"), "new");
    assert_eq!(attributes(), before);
    fixture.undo_all("t_1");
    assert_eq!(fixture.read("notes.md"), "old");
    assert_eq!(attributes(), before);
}
