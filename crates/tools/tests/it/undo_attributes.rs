//! An undo restores the content of a file, and leaves permissions and owners that the user has set since.

use crate::support::FileFixture;
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
