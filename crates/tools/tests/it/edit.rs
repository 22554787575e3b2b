//! Tests of `fs_edit`.

use crate::support::FileFixture;
use serde_json::json;

#[test]
fn a_passage_is_replaced_and_the_diff_is_shown() {
    let fixture = FileFixture::new();
    fixture.write("a.rs", "fn a() {\n    1\n}\nfn b() {}\n");
    let arguments = json!({"path": "a.rs", "old": "    1\n", "new": "    2\n"});
    let difference = "@@ -1,4 +1,4 @@\n fn a() {\n-    1\n+    2\n }\n fn b() {}\n";
    assert_eq!(
        fixture.preview("fs_edit", arguments.clone()).unwrap(),
        format!("Edits a.rs\n{difference}")
    );
    assert_eq!(fixture.read("a.rs"), "fn a() {\n    1\n}\nfn b() {}\n");
    assert_eq!(
        fixture.text("fs_edit", arguments),
        format!("edited a.rs +1 −1\n{difference}")
    );
    assert_eq!(fixture.read("a.rs"), "fn a() {\n    2\n}\nfn b() {}\n");
}

#[test]
fn a_passage_that_does_not_occur_exactly_once_changes_nothing() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "x\ny\nx\n");
    let edit = |old: &str, new: &str| {
        fixture.error("fs_edit", json!({"path": "a.txt", "old": old, "new": new}))
    };
    assert_eq!(
        edit("x", "z"),
        "`a.txt` contains the text in `old` 2 times, at lines 1 and 3; pass a longer `old` with more surrounding lines"
    );
    assert_eq!(
        edit("w", "z"),
        "`a.txt` does not contain the text in `old`; read the exact text with `fs_read`"
    );
    assert!(edit("", "z").contains("`old` is empty"));
    assert!(edit("y", "y").contains("the same"));
    assert_eq!(fixture.read("a.txt"), "x\ny\nx\n");
}

#[test]
fn the_line_ends_of_the_file_are_preserved() {
    let fixture = FileFixture::new();
    fixture.write("dos.txt", "a\r\nb\r\nc\r\n");
    fixture.text(
        "fs_edit",
        json!({"path": "dos.txt", "old": "a\nb\n", "new": "x\n"}),
    );
    assert_eq!(fixture.read("dos.txt"), "x\r\nc\r\n");
}

#[test]
fn a_file_that_is_not_text_is_not_edited() {
    let fixture = FileFixture::new();
    fixture.write("src/binary", b"a\0b");
    fixture.link("broken", "nowhere");
    let edit = |path: &str| fixture.error("fs_edit", json!({"path": path, "old": "a", "new": "b"}));
    assert_eq!(
        edit("src/binary"),
        "`src/binary` is not text that can be edited: 3 B, probably binary data; leave it unchanged"
    );
    assert_eq!(
        edit("src"),
        "`src` is a folder; list its entries with `fs_list`"
    );
    assert_eq!(
        edit("nowhere"),
        "`nowhere` does not exist; list the folder with `fs_list`"
    );
    assert_eq!(
        edit("broken"),
        "`broken` is a link to `nowhere`, which does not exist"
    );
}
