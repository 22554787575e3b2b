//! Tests of `fs_write` and `fs_mkdir`.

use crate::support::{FileFixture, create_special};
use lango_core::PreviewLength;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_file_is_created_with_its_parent_folders() {
    let fixture = FileFixture::new();
    let text = fixture.text(
        "fs_write",
        json!({"path": "a/b/c.txt", "content": "one\ntwo\n"}),
    );
    assert_eq!(text, "created a/b/c.txt +2\n2 lines, 8 B\n");
    assert_eq!(fixture.read("a/b/c.txt"), "one\ntwo\n");
}

#[test]
fn a_file_is_replaced_as_a_whole_and_keeps_its_mode() {
    let fixture = FileFixture::new();
    fixture.write("run.sh", "old and longer");
    std::fs::set_permissions(fixture.inside("run.sh"), PermissionsExt::from_mode(0o4750)).unwrap();
    let text = fixture.text("fs_write", json!({"path": "run.sh", "content": ""}));
    assert_eq!(text, "replaced run.sh −1\n0 lines, 0 B\n");
    assert_eq!(fixture.read("run.sh"), "");
    let mode = fixture
        .inside("run.sh")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o750, "without the setuid bit");
    let names: Vec<_> = std::fs::read_dir(fixture.inside("")).unwrap().collect();
    assert_eq!(names.len(), 1, "no temporary file is left: {names:?}");
}

#[test]
fn an_approved_write_replaces_only_what_the_user_saw() {
    let fixture = FileFixture::new();
    fixture.write("notes.md", "seen\n");
    for (tool, arguments) in [
        ("fs_write", json!({"path": "notes.md", "content": "new\n"})),
        (
            "fs_edit",
            json!({"path": "notes.md", "old": "seen", "new": "new"}),
        ),
    ] {
        fixture.write("notes.md", "first\nseen\n");
        let inspection = fixture.inspect(tool, arguments.clone());
        // Someone saves the file while the user reads the question.
        fixture.write("notes.md", "first\nseen, and changed\n");
        let refused = fixture.call_inspected(tool, arguments.clone(), inspection.clone());
        let message = refused.unwrap_err().to_string();
        assert!(
            message.contains("not as it was when the user was asked"),
            "{message}"
        );
        assert_eq!(fixture.read("notes.md"), "first\nseen, and changed\n");
        fixture.write("notes.md", "first\nseen\n");
        fixture.call_inspected(tool, arguments, inspection).unwrap();
        assert!(fixture.read("notes.md").contains("new\n"));
    }
    // Edits of the same file in one reply do not disturb each other.
    let edit = json!({"path": "notes.md", "old": "new", "new": "newer"});
    fixture.write("notes.md", "first\nnew\n");
    let inspection = fixture.inspect("fs_edit", edit.clone());
    fixture.write("notes.md", "another first\nnew\n");
    fixture.call_inspected("fs_edit", edit, inspection).unwrap();
    assert_eq!(fixture.read("notes.md"), "another first\nnewer\n");
}

#[test]
fn an_approved_call_that_would_fail_does_not_succeed_later() {
    let fixture = FileFixture::new();
    fixture.write("folder", "in the way\n");
    for (tool, arguments, path, content) in [
        (
            "fs_edit",
            json!({"path": "absent.md", "old": "a\n", "new": "a\nunseen\n"}),
            "absent.md",
            "a\n",
        ),
        (
            "fs_edit",
            json!({"path": "other.md", "old": "a\n", "new": "a\nunseen\n"}),
            "other.md",
            "a\n",
        ),
        (
            "fs_write",
            json!({"path": "folder/a.md", "content": "unseen\n"}),
            "folder",
            "",
        ),
    ] {
        fixture.write("other.md", "b\n");
        let inspection = fixture.inspect(tool, arguments.clone());
        // Another process makes the call possible while the user reads that it would fail.
        let changed = fixture.inside(path);
        match content {
            "" => std::fs::remove_file(&changed).unwrap(),
            content => std::fs::write(&changed, content).unwrap(),
        }
        let refused = fixture.call_inspected(tool, arguments, inspection);
        let message = refused.unwrap_err().to_string();
        assert!(
            message.contains("not as it was when the user was asked"),
            "{message}"
        );
        if !content.is_empty() {
            assert_eq!(fixture.read(path), content);
        }
    }
    assert!(!fixture.inside("folder").exists());
}

#[test]
fn a_write_follows_a_link_that_stays_inside() {
    let fixture = FileFixture::new();
    fixture.write("data/real.txt", "old");
    fixture.link("short", "data/real.txt");
    fixture.link("new", "data/fresh.txt");
    fixture.text("fs_write", json!({"path": "short", "content": "new"}));
    fixture.text("fs_write", json!({"path": "new", "content": "fresh"}));
    assert_eq!(fixture.read("data/real.txt"), "new");
    assert_eq!(fixture.read("data/fresh.txt"), "fresh");
    assert!(fixture.inside("short").is_symlink() && fixture.inside("new").is_symlink());
}

#[test]
fn only_regular_files_are_replaced() {
    let fixture = FileFixture::new();
    fixture.write("src/a.txt", "");
    assert!(create_special("mkfifo", &[], &fixture.inside("pipe")));
    let write = |path: &str| fixture.error("fs_write", json!({"path": path, "content": "x"}));
    assert_eq!(
        write("src"),
        "`src` is a folder; list its entries with `fs_list`"
    );
    assert_eq!(
        write("."),
        "`.` is a folder; list its entries with `fs_list`"
    );
    assert_eq!(
        write("pipe"),
        "`pipe` is a named pipe; only regular files can be written"
    );
    assert!(write("src/a.txt/b").starts_with("`src/a.txt/b`, or a parent of it, is not a folder"));
    assert!(write("fresh/").starts_with("`fresh` ends like the path of a folder"));
    assert!(write("fresh/.").starts_with("`fresh` ends like the path of a folder"));
    assert!(!fixture.has("fresh"));
}

#[test]
fn a_write_protected_file_is_not_changed() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "old");
    std::fs::set_permissions(fixture.inside("a.txt"), PermissionsExt::from_mode(0o444)).unwrap();
    let error = fixture.error("fs_write", json!({"path": "a.txt", "content": "x"}));
    assert!(error.starts_with("`a.txt` is write-protected"), "{error}");
    assert_eq!(fixture.read("a.txt"), "old");
}

#[test]
fn another_hard_link_keeps_the_old_content() {
    let fixture = FileFixture::new();
    std::fs::hard_link(fixture.outside("secret.txt"), fixture.inside("linked")).unwrap();
    fixture.text("fs_write", json!({"path": "linked", "content": "mine"}));
    assert_eq!(fixture.read("linked"), "mine");
    let outside = std::fs::read_to_string(fixture.outside("secret.txt")).unwrap();
    assert_eq!(outside, crate::support::SECRET);
}

#[test]
fn the_preview_of_a_write_is_a_diff() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "1\n2\n3\n");
    let preview = |path: &str, content: &str| {
        let arguments = json!({"path": path, "content": content});
        fixture.preview("fs_write", arguments).unwrap()
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
        "Leaves a.txt unchanged (3 lines, 6 B)\n"
    );
    let long = preview("long.txt", &"line\n".repeat(1000));
    assert_eq!(long.lines().count(), 202);
    assert!(long.ends_with("[801 more lines not shown]\n"), "{long}");
    assert!(!fixture.has("b") && !fixture.has("long.txt"));
    assert_eq!(fixture.read("a.txt"), "1\n2\n3\n");
}

#[test]
fn the_preview_of_a_failing_call_is_its_error() {
    let fixture = FileFixture::new();
    fixture.write("image", b"\x89PNG\r\n\x1a\n\0");
    let preview = |arguments| fixture.preview("fs_write", arguments).unwrap();
    assert!(
        preview(json!({"path": "image", "content": "x"})).starts_with(
            "Replaces image (1 line, 1 B), which is not shown: 9 B, probably a PNG image\n"
        )
    );
    assert_eq!(
        preview(json!({"path": "../x", "content": ""})),
        "This call will fail: `../x` is outside the workspace; only files inside it can be reached, pass a path inside \
         it\n"
    );
    assert!(
        preview(json!({"path": 1})).starts_with("This call will fail: the arguments do not fit")
    );
    assert_eq!(fixture.preview("fs_read", json!({"path": "image"})), None);
}

#[test]
fn a_folder_is_created_once_with_its_parents() {
    let fixture = FileFixture::new();
    let arguments = json!({"path": "a/b/"});
    assert_eq!(
        fixture.preview("fs_mkdir", arguments.clone()).unwrap(),
        "Creates the folder a/b\n"
    );
    assert_eq!(
        fixture.text("fs_mkdir", arguments.clone()),
        "created a/b/\n"
    );
    assert!(fixture.inside("a/b").is_dir());
    assert_eq!(
        fixture.preview("fs_mkdir", arguments.clone()).unwrap(),
        "Leaves the folder a/b unchanged\n"
    );
    assert_eq!(fixture.text("fs_mkdir", arguments), "a/b/ exists already\n");
    fixture.write("file", "");
    for path in ["file", "file/x"] {
        assert!(
            fixture.call("fs_mkdir", json!({"path": path})).is_err(),
            "{path}"
        );
    }
}

#[test]
fn a_long_change_can_be_previewed_in_full() {
    let fixture = FileFixture::new();
    let long_line = "y".repeat(1000);
    let content = format!("{}{long_line}\n", "x\n".repeat(40_000));
    let arguments = json!({"path": "a.txt", "content": content});
    let short = fixture.preview("fs_write", arguments.clone()).unwrap();
    assert!(short.ends_with("[39802 more lines not shown]\n"), "{short}");
    let whole = fixture
        .preview_of("fs_write", arguments, PreviewLength::Full)
        .unwrap();
    assert_eq!(whole.lines().filter(|line| *line == "+x").count(), 40_000);
    assert!(whole.contains(&format!("+{long_line}\n")));
}
