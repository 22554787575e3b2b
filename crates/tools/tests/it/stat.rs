//! Tests of `fs_stat`.

use crate::support::FileFixture;
use serde_json::json;
use std::fs::File;
use std::time::{Duration, UNIX_EPOCH};

#[test]
fn a_file_has_a_kind_a_size_and_a_time() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "x".repeat(4249));
    let file = File::options()
        .write(true)
        .open(fixture.inside("a.txt"))
        .unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_millis(1_772_366_400_900))
        .unwrap();
    assert_eq!(
        fixture.text("fs_stat", json!({"path": "a.txt"})),
        "a.txt\nkind: file\nsize: 4.2 KB (4249 bytes)\nmodified: 2026-03-01T12:00:00Z\n"
    );
}

#[test]
fn a_folder_has_no_size() {
    let fixture = FileFixture::new();
    let text = fixture.text("fs_stat", json!({"path": "."}));
    assert!(text.starts_with(".\nkind: folder\nmodified: 2"), "{text}");
}

#[test]
fn a_link_has_a_target_and_is_not_followed() {
    let fixture = FileFixture::new();
    fixture.link("passwords", "/etc/passwd");
    fixture.link("broken", "nowhere");
    let outside = fixture.text("fs_stat", json!({"path": "passwords"}));
    assert!(
        outside.starts_with("passwords\nkind: link\ntarget: /etc/passwd\nmodified: "),
        "{outside}"
    );
    let broken = fixture.text("fs_stat", json!({"path": "broken"}));
    assert!(
        broken.starts_with("broken\nkind: link\ntarget: nowhere\n"),
        "{broken}"
    );
}

#[test]
fn a_missing_entry_is_refused() {
    let fixture = FileFixture::new();
    let missing = fixture.error("fs_stat", json!({"path": "nowhere"}));
    assert_eq!(
        missing,
        "`nowhere` does not exist; list the folder with `fs_list`"
    );
}
