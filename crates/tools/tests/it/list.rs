//! Tests of `fs_list`.

use crate::support::{FileFixture, create_special};
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;

#[test]
fn folders_come_first_then_files_sorted_by_name_with_dotfiles() {
    let fixture = FileFixture::new();
    fixture.write("src/main.rs", "fn main() {}");
    fixture.write(".git/HEAD", "ref");
    fixture.write("README.md", "x".repeat(4249));
    fixture.write(".env", "A=1");
    fixture.write("b.txt", "");
    let expected =
        "2 folders, 3 files in .\n.git/\nsrc/\n.env  3 B\nREADME.md  4.2 KB\nb.txt  0 B\n";
    assert_eq!(fixture.text("fs_list", json!({})), expected);
    assert_eq!(fixture.text("fs_list", json!({"path": ""})), expected);
    assert_eq!(
        fixture
            .text("fs_list", json!({"path": "./src/.."}))
            .lines()
            .count(),
        6
    );
    assert_eq!(
        fixture.text("fs_list", json!({"path": "src/"})),
        "0 folders, 1 file in src\nmain.rs  12 B\n"
    );
}

#[test]
fn an_empty_folder_is_listed_as_empty() {
    let fixture = FileFixture::new();
    assert_eq!(
        fixture.text("fs_list", json!({})),
        "0 folders, 0 files in .\n"
    );
}

#[test]
fn links_and_special_files_are_counted_and_marked() {
    let fixture = FileFixture::new();
    fixture.write("data/x", "");
    fixture.link("latest", "data");
    fixture.link("dangling", "nowhere");
    let _socket = UnixListener::bind(fixture.inside("socket")).unwrap();
    assert!(create_special("mkfifo", &[], &fixture.inside("pipe")));
    assert_eq!(
        fixture.text("fs_list", json!({})),
        "1 folder, 0 files, 2 links, 2 special files in .\ndata/\ndangling  link to nowhere\n\
         latest  link to data\npipe  named pipe\nsocket  socket\n"
    );
    assert_eq!(
        fixture.text("fs_list", json!({"path": "latest"})),
        "0 folders, 1 file in latest\nx  0 B\n"
    );
}

#[test]
fn ten_thousand_entries_are_shown_in_pages_that_together_miss_nothing() {
    let fixture = FileFixture::new();
    for number in 0..10_000 {
        fixture.write(&format!("many/{number:05}"), "");
    }
    fixture.write("many/zzz/x", "");
    let first = fixture.text("fs_list", json!({"path": "many"}));
    assert!(
        first.starts_with("1 folder, 10000 files in many\nzzz/\n00000  0 B\n"),
        "{first}"
    );
    let note = "[500 of 10001 entries shown, 9501 more; see them with fs_list {\"path\":\"many\",\"skip\":500}]";
    assert_eq!(first.lines().last(), Some(note));

    let mut names = Vec::new();
    let mut arguments = json!({"path": "many"});
    loop {
        let page = fixture.text("fs_list", arguments);
        let lines: Vec<_> = page.lines().skip(1).collect();
        names.extend(
            lines
                .iter()
                .filter(|line| !line.starts_with('['))
                .map(|line| line.to_string()),
        );
        let Some(note) = lines.last().filter(|line| line.starts_with('[')) else {
            break;
        };
        let next = note.split_once("fs_list ").unwrap().1.trim_end_matches(']');
        arguments = serde_json::from_str(next).unwrap();
    }
    let expected: Vec<_> = std::iter::once("zzz/".to_owned())
        .chain((0..10_000).map(|n| format!("{n:05}  0 B")))
        .collect();
    assert_eq!(names, expected);

    let past = fixture.error("fs_list", json!({"path": "many", "skip": 10_001}));
    assert_eq!(past, "`many` has 10001 entries; pass a smaller `skip`");
    assert!(
        fixture
            .call("fs_list", json!({"path": "many", "skip": u64::MAX}))
            .is_err()
    );
}

#[test]
fn a_listing_that_just_fits_has_no_note() {
    let fixture = FileFixture::new();
    for number in 0..500 {
        fixture.write(&format!("{number}"), "");
    }
    let text = fixture.text("fs_list", json!({}));
    assert_eq!(text.lines().count(), 501);
    assert!(!text.contains('['), "{text}");
}

#[test]
fn names_that_are_not_utf8_or_would_break_the_line_are_marked() {
    let fixture = FileFixture::new();
    std::fs::write(
        fixture.inside("").join(OsStr::from_bytes(b"caf\xe9")),
        "abc",
    )
    .unwrap();
    std::fs::create_dir(fixture.inside("").join(OsStr::from_bytes(b"dir\xff"))).unwrap();
    fixture.write("two\nlines", "");
    assert_eq!(
        fixture.text("fs_list", json!({})),
        "1 folder, 2 files in .\ndir\u{fffd}/  (name is not UTF-8)\ncaf\u{fffd}  3 B  (name is not UTF-8)\n\
         \"two\\nlines\"  0 B\n"
    );
}

#[test]
fn a_file_or_a_missing_folder_is_refused() {
    let fixture = FileFixture::new();
    fixture.write("file.txt", "");
    let file = fixture.error("fs_list", json!({"path": "file.txt"}));
    assert!(
        file.starts_with("`file.txt`, or a parent of it, is not a folder"),
        "{file}"
    );
    let missing = fixture.error("fs_list", json!({"path": "nowhere"}));
    assert_eq!(
        missing,
        "`nowhere` does not exist; list the folder with `fs_list`"
    );
}
