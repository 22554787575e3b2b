//! `fs_write` and `fs_mkdir`.

use crate::support::{Bench, prepared};
use lango_core::Extent;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_file_is_made_with_the_folders_above_it() {
    let bench = Bench::new();
    let text = bench.text(
        "fs_write",
        json!({"path": "a/b/c.txt", "content": "one\ntwo\n"}),
    );
    assert_eq!(text, "created a/b/c.txt (2 lines, 8 B)\n");
    assert_eq!(bench.read("a/b/c.txt"), "one\ntwo\n");
}

#[test]
fn a_file_is_replaced_whole_and_keeps_its_mode() {
    let bench = Bench::new();
    bench.write("run.sh", "old and longer");
    std::fs::set_permissions(bench.inside("run.sh"), PermissionsExt::from_mode(0o4750)).unwrap();
    let text = bench.text("fs_write", json!({"path": "run.sh", "content": ""}));
    assert_eq!(text, "replaced run.sh (0 lines, 0 B)\n");
    assert_eq!(bench.read("run.sh"), "");
    let mode = bench
        .inside("run.sh")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(
        mode & 0o7777,
        0o750,
        "but not the right to run as its owner"
    );
    let names: Vec<_> = std::fs::read_dir(bench.inside("")).unwrap().collect();
    assert_eq!(names.len(), 1, "nothing is left beside it: {names:?}");
}

#[test]
fn a_link_is_written_through_if_it_stays_inside() {
    let bench = Bench::new();
    bench.write("data/real.txt", "old");
    bench.link("short", "data/real.txt");
    bench.link("new", "data/fresh.txt");
    bench.text("fs_write", json!({"path": "short", "content": "new"}));
    bench.text("fs_write", json!({"path": "new", "content": "fresh"}));
    assert_eq!(bench.read("data/real.txt"), "new");
    assert_eq!(bench.read("data/fresh.txt"), "fresh");
    assert!(bench.inside("short").is_symlink() && bench.inside("new").is_symlink());
}

#[test]
fn what_is_no_file_is_not_replaced() {
    let bench = Bench::new();
    bench.write("src/a.txt", "");
    assert!(prepared("mkfifo", &[], &bench.inside("pipe")));
    let write = |path: &str| bench.error("fs_write", json!({"path": path, "content": "x"}));
    assert_eq!(
        write("src"),
        "`src` is a folder; see its entries with `fs_list`"
    );
    assert_eq!(
        write("."),
        "`.` is a folder; see its entries with `fs_list`"
    );
    assert_eq!(
        write("pipe"),
        "`pipe` is a named pipe; only regular files can be written"
    );
    assert!(write("src/a.txt/b").starts_with("`src/a.txt/b` is not a folder"));
    assert!(write("fresh/").starts_with("`fresh` ends like the path of a folder"));
    assert!(write("fresh/.").starts_with("`fresh` ends like the path of a folder"));
    assert!(!bench.has("fresh"));
}

#[test]
fn a_write_protected_file_stays_as_it_is() {
    let bench = Bench::new();
    bench.write("a.txt", "old");
    std::fs::set_permissions(bench.inside("a.txt"), PermissionsExt::from_mode(0o444)).unwrap();
    let error = bench.error("fs_write", json!({"path": "a.txt", "content": "x"}));
    assert!(error.starts_with("`a.txt` is write-protected"), "{error}");
    assert_eq!(bench.read("a.txt"), "old");
}

#[test]
fn another_hard_link_keeps_the_old_content() {
    let bench = Bench::new();
    std::fs::hard_link(bench.outside("secret.txt"), bench.inside("linked")).unwrap();
    bench.text("fs_write", json!({"path": "linked", "content": "mine"}));
    assert_eq!(bench.read("linked"), "mine");
    let outside = std::fs::read_to_string(bench.outside("secret.txt")).unwrap();
    assert_eq!(outside, crate::support::SECRET);
}

#[test]
fn the_preview_of_a_write_is_the_difference() {
    let bench = Bench::new();
    bench.write("a.txt", "1\n2\n3\n");
    let preview = |path: &str, content: &str| {
        let arguments = json!({"path": path, "content": content});
        bench.preview("fs_write", arguments).unwrap()
    };
    assert_eq!(
        preview("a.txt", "1\ntwo\n3\n"),
        "Replaces a.txt (3 lines, 8 B)\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n"
    );
    assert_eq!(
        preview("b/new.txt", "x\ny"),
        "Creates b/new.txt (2 lines, 3 B)\n@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\n"
    );
    assert_eq!(
        preview("a.txt", "1\n2\n3\n"),
        "Leaves a.txt as it is (3 lines, 6 B)\n"
    );
    let long = preview("long.txt", &"line\n".repeat(1000));
    assert_eq!(long.lines().count(), 202);
    assert!(long.ends_with("[801 more lines not shown]\n"), "{long}");
    assert!(!bench.has("b") && !bench.has("long.txt"));
    assert_eq!(bench.read("a.txt"), "1\n2\n3\n");
}

#[test]
fn a_preview_tells_problems_in_words() {
    let bench = Bench::new();
    bench.write("image", b"\x89PNG\r\n\x1a\n\0");
    let preview = |arguments| bench.preview("fs_write", arguments).unwrap();
    assert!(
        preview(json!({"path": "image", "content": "x"})).starts_with(
            "Replaces image (1 line, 1 B), which is not shown: 9 B, by the look of it a PNG image\n"
        )
    );
    assert_eq!(
        preview(json!({"path": "../x", "content": ""})),
        "This call will fail: `../x` leads outside the workspace; files outside it cannot be reached, give a path \
         inside it\n"
    );
    assert!(
        preview(json!({"path": 1})).starts_with("This call will fail: the arguments do not fit")
    );
    assert_eq!(bench.preview("fs_read", json!({"path": "image"})), None);
}

#[test]
fn a_folder_is_made_with_those_above_it_once() {
    let bench = Bench::new();
    let arguments = json!({"path": "a/b/"});
    assert_eq!(
        bench.preview("fs_mkdir", arguments.clone()).unwrap(),
        "Creates the folder a/b\n"
    );
    assert_eq!(bench.text("fs_mkdir", arguments.clone()), "created a/b/\n");
    assert!(bench.inside("a/b").is_dir());
    assert_eq!(
        bench.preview("fs_mkdir", arguments.clone()).unwrap(),
        "Leaves the folder a/b as it is\n"
    );
    assert_eq!(bench.text("fs_mkdir", arguments), "a/b/ is there already\n");
    bench.write("file", "");
    for path in ["file", "file/x"] {
        assert!(
            bench.call("fs_mkdir", json!({"path": path})).is_err(),
            "{path}"
        );
    }
}

#[test]
fn all_of_a_long_change_can_be_seen() {
    let bench = Bench::new();
    let long_line = "y".repeat(1000);
    let content = format!("{}{long_line}\n", "x\n".repeat(40_000));
    let arguments = json!({"path": "a.txt", "content": content});
    let short = bench.preview("fs_write", arguments.clone()).unwrap();
    assert!(short.ends_with("[39802 more lines not shown]\n"), "{short}");
    let whole = bench
        .preview_of("fs_write", arguments, Extent::Whole)
        .unwrap();
    assert_eq!(whole.lines().filter(|line| *line == "+x").count(), 40_000);
    assert!(whole.contains(&format!("+{long_line}\n")));
}
