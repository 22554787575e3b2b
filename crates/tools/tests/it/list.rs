//! `fs_list`.

use crate::support::{Bench, prepared};
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;

#[test]
fn folders_come_first_then_files_sorted_by_name_hidden_ones_too() {
    let bench = Bench::new();
    bench.write("src/main.rs", "fn main() {}");
    bench.write(".git/HEAD", "ref");
    bench.write("README.md", "x".repeat(4249));
    bench.write(".env", "A=1");
    bench.write("b.txt", "");
    let expected =
        "2 folders, 3 files in .\n.git/\nsrc/\n.env  3 B\nREADME.md  4.2 KB\nb.txt  0 B\n";
    assert_eq!(bench.text("fs_list", json!({})), expected);
    assert_eq!(bench.text("fs_list", json!({"path": ""})), expected);
    assert_eq!(
        bench
            .text("fs_list", json!({"path": "./src/.."}))
            .lines()
            .count(),
        6
    );
    assert_eq!(
        bench.text("fs_list", json!({"path": "src/"})),
        "0 folders, 1 file in src\nmain.rs  12 B\n"
    );
}

#[test]
fn an_empty_folder_is_listed_as_empty() {
    let bench = Bench::new();
    assert_eq!(
        bench.text("fs_list", json!({})),
        "0 folders, 0 files in .\n"
    );
}

#[test]
fn links_and_special_files_are_counted_and_named_as_such() {
    let bench = Bench::new();
    bench.write("data/x", "");
    bench.link("latest", "data");
    bench.link("dangling", "nowhere");
    let _socket = UnixListener::bind(bench.inside("socket")).unwrap();
    assert!(prepared("mkfifo", &[], &bench.inside("pipe")));
    assert_eq!(
        bench.text("fs_list", json!({})),
        "1 folder, 0 files, 2 links, 2 special files in .\ndata/\ndangling  link to nowhere\n\
         latest  link to data\npipe  named pipe\nsocket  socket\n"
    );
    assert_eq!(
        bench.text("fs_list", json!({"path": "latest"})),
        "0 folders, 1 file in latest\nx  0 B\n"
    );
}

#[test]
fn ten_thousand_entries_are_shown_in_pages_that_together_miss_nothing() {
    let bench = Bench::new();
    for number in 0..10_000 {
        bench.write(&format!("many/{number:05}"), "");
    }
    bench.write("many/zzz/x", "");
    let first = bench.text("fs_list", json!({"path": "many"}));
    assert!(
        first.starts_with("1 folder, 10000 files in many\nzzz/\n00000  0 B\n"),
        "{first}"
    );
    let note = "[500 of 10001 entries shown, 9501 more follow; see them with fs_list {\"path\":\"many\",\"skip\":500}]";
    assert_eq!(first.lines().last(), Some(note));

    let mut names = Vec::new();
    let mut arguments = json!({"path": "many"});
    loop {
        let page = bench.text("fs_list", arguments);
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

    let past = bench.error("fs_list", json!({"path": "many", "skip": 10_001}));
    assert_eq!(past, "`many` has 10001 entries; pass a smaller `skip`");
    assert!(
        bench
            .call("fs_list", json!({"path": "many", "skip": u64::MAX}))
            .is_err()
    );
}

#[test]
fn exactly_as_many_entries_as_fit_need_no_note() {
    let bench = Bench::new();
    for number in 0..500 {
        bench.write(&format!("{number}"), "");
    }
    let text = bench.text("fs_list", json!({}));
    assert_eq!(text.lines().count(), 501);
    assert!(!text.contains('['), "{text}");
}

#[test]
fn names_that_are_not_utf8_or_would_break_the_line_are_marked() {
    let bench = Bench::new();
    std::fs::write(bench.inside("").join(OsStr::from_bytes(b"caf\xe9")), "abc").unwrap();
    std::fs::create_dir(bench.inside("").join(OsStr::from_bytes(b"dir\xff"))).unwrap();
    bench.write("two\nlines", "");
    assert_eq!(
        bench.text("fs_list", json!({})),
        "1 folder, 2 files in .\ndir\u{fffd}/  (name is not UTF-8)\ncaf\u{fffd}  3 B  (name is not UTF-8)\n\
         \"two\\nlines\"  0 B\n"
    );
}

#[test]
fn a_file_or_a_missing_folder_is_refused() {
    let bench = Bench::new();
    bench.write("file.txt", "");
    let file = bench.error("fs_list", json!({"path": "file.txt"}));
    assert!(file.starts_with("`file.txt` is not a folder"), "{file}");
    let missing = bench.error("fs_list", json!({"path": "nowhere"}));
    assert_eq!(
        missing,
        "`nowhere` does not exist; see what there is with `fs_list`"
    );
}
