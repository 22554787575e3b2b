//! Tests of `fs_read` on regular files.

use crate::support::FileFixture;
use serde_json::{Value, json};
use std::fs::File;

#[test]
fn a_small_file_is_returned_unchanged() {
    let fixture = FileFixture::new();
    for content in [
        "one\ntwo\n",
        "one\r\ntwo\r\n",
        "no newline at the end",
        "\n",
        "\u{feff}grüße\n",
    ] {
        fixture.write("a.txt", content);
        assert_eq!(fixture.text("fs_read", json!({"path": "a.txt"})), content);
    }
}

#[test]
fn an_empty_file_is_reported_as_empty() {
    let fixture = FileFixture::new();
    fixture.write("empty", "");
    assert_eq!(
        fixture.text("fs_read", json!({"path": "empty"})),
        "[empty is empty]\n"
    );
}

#[test]
fn a_part_of_a_file_has_a_note_on_how_to_continue() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "1\n2\n3\n4\n5");
    let arguments = json!({"path": "a.txt", "first_line": 2, "lines": 2});
    assert_eq!(
        fixture.text("fs_read", arguments),
        "2\n3\n[lines 2 to 3 of a.txt; 3 B more, continue with fs_read \
         {\"path\":\"a.txt\",\"first_line\":4,\"lines\":2}]\n"
    );
    assert_eq!(
        fixture.text(
            "fs_read",
            json!({"path": "a.txt", "first_line": 4, "lines": 2})
        ),
        "4\n5"
    );
    assert_eq!(
        fixture.text("fs_read", json!({"path": "a.txt", "first_line": 5})),
        "5"
    );
    assert_eq!(
        fixture.text("fs_read", json!({"path": "a.txt", "lines": u64::MAX})),
        "1\n2\n3\n4\n5"
    );
}

#[test]
fn a_line_after_the_last_is_refused_with_the_number_of_lines() {
    let fixture = FileFixture::new();
    for (content, lines) in [
        ("1\n2\n", "2 lines"),
        ("1\n2", "2 lines"),
        ("1", "1 line"),
        ("", "0 lines"),
    ] {
        fixture.write("a.txt", content);
        for line in [3, 4, u64::MAX] {
            let error = fixture.error("fs_read", json!({"path": "a.txt", "first_line": line}));
            assert_eq!(
                error,
                format!("`a.txt` has {lines}; pass a smaller `first_line`")
            );
        }
    }
}

#[test]
fn following_the_notes_reads_any_file_to_its_end_in_bounded_pages() {
    let fixture = FileFixture::new();
    let long_line = "ü€😀x".repeat(20_000);
    let contents = [
        (0..30_000)
            .map(|n| format!("line {n}\n"))
            .collect::<String>(),
        (0..30_000)
            .map(|n| format!("line {n}\r\n"))
            .collect::<String>(),
        long_line.clone(),
        format!("short\n{long_line}\nshort\n{long_line}"),
        "x".repeat(64 * 1024),
        "x".repeat(64 * 1024) + "\n",
        "x".repeat(64 * 1024 - 1) + "\ny",
        "x".repeat(64 * 1024 - 1) + "€",
        "\n".repeat(200_000),
    ];
    for content in contents {
        fixture.write("big.txt", &content);
        let mut read = String::new();
        let mut next = Some(json!({"path": "big.txt"}));
        while let Some(arguments) = next {
            let (page, following) = page(fixture.text("fs_read", arguments));
            assert!(
                !page.is_empty() && page.len() <= 64 * 1024,
                "a page of {} bytes",
                page.len()
            );
            read.push_str(&page);
            assert!(
                content.starts_with(&read),
                "wrong after {} bytes",
                read.len()
            );
            next = following;
        }
        assert!(
            read == content,
            "{} bytes read of {}",
            read.len(),
            content.len()
        );
    }
}

/// Splits a page from its note. A page that ends inside a line has an extra newline before the note.
fn page(output: String) -> (String, Option<Value>) {
    let note = output
        .rsplit_once('[')
        .filter(|(_, note)| note.contains("continue with"));
    let Some((page, note)) = note else {
        return (output, None);
    };
    let next = note
        .split_once("fs_read ")
        .unwrap()
        .1
        .trim_end()
        .trim_end_matches(']');
    let next: Value = serde_json::from_str(next).unwrap();
    let inside_line = next.get("skip_bytes").is_some();
    let page = if inside_line {
        page.strip_suffix('\n').unwrap()
    } else {
        page
    };
    (page.to_owned(), Some(next))
}

#[test]
fn a_start_inside_a_character_moves_to_the_next_one() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "ab€cd\n");
    assert_eq!(
        fixture.text("fs_read", json!({"path": "a.txt", "skip_bytes": 3})),
        "cd\n"
    );
    let past = fixture.error("fs_read", json!({"path": "a.txt", "skip_bytes": 8}));
    assert_eq!(
        past,
        "`a.txt` has fewer bytes in line 1; pass a smaller `skip_bytes`"
    );
}

#[test]
fn an_image_is_returned_unchanged_with_its_name() {
    let fixture = FileFixture::new();
    let image = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    fixture.write("shots/one.jpg", image);
    let output = fixture.output("fs_read", json!({"path": "shots/one.jpg"}));
    let output = output.unwrap();
    assert_eq!(output.text, "[shots/one.jpg is an image of 16 B]");
    let [file] = &output.files[..] else {
        panic!("{output:?}");
    };
    assert_eq!(
        (&*file.name, &*file.media_type),
        ("shots/one.jpg", "image/png")
    );
    assert_eq!(file.bytes[..], *image);
    assert!(
        fixture
            .output("fs_read", json!({"path": "../one.png"}))
            .is_err()
    );
}

#[test]
fn an_image_that_is_too_large_to_be_shown_is_refused_with_the_limit() {
    let fixture = FileFixture::new();
    let mut image = b"\x89PNG\r\n\x1a\n".to_vec();
    image.resize(5_000_001, 0);
    fixture.write("one.png", image);
    assert_eq!(
        fixture.error("fs_read", json!({"path": "one.png"})),
        "`one.png` is an image of 5.0 MB; only images of up to 5.0 MB can be read"
    );
}

#[test]
fn a_file_that_is_not_text_is_refused_with_its_size_and_probable_type() {
    let fixture = FileFixture::new();
    let cases: [(&[u8], &str); 5] = [
        (b"%PDF-1.5\n\0", "10 B, probably a PDF document"),
        (
            b"caf\xe9\n",
            "5 B, probably text in another encoding or binary data",
        ),
        (b"\xff\xfea\0b\0", "6 B, probably UTF-16 text"),
        (b"text\nthen a \0", "13 B, probably binary data"),
        (
            b"cut \xe2\x82",
            "6 B, probably text in another encoding or binary data",
        ),
    ];
    for (content, expected) in cases {
        fixture.write("file", content);
        let error = fixture.error("fs_read", json!({"path": "file"}));
        assert_eq!(
            error,
            format!("`file` is not UTF-8 text: {expected}; only text can be read")
        );
    }
}

#[test]
fn a_sparse_file_of_a_gigabyte_is_refused_immediately() {
    let fixture = FileFixture::new();
    File::create(fixture.inside("huge"))
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    for line in [1, 1_000_000] {
        let error = fixture.error("fs_read", json!({"path": "huge", "first_line": line}));
        assert!(error.contains("1.0 GB, probably binary data"), "{error}");
    }
}

#[test]
fn the_text_at_the_start_of_a_huge_file_is_read_without_the_rest() {
    let fixture = FileFixture::new();
    fixture.write("huge", "a line of text\n".repeat(10_000));
    File::options()
        .write(true)
        .open(fixture.inside("huge"))
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    let text = fixture.text("fs_read", json!({"path": "huge", "lines": 1}));
    assert!(
        text.starts_with("a line of text\n[line 1 of huge; 1.0 GB more, "),
        "{text}"
    );
}

#[test]
fn for_a_folder_or_a_missing_file_the_error_says_what_to_call_instead() {
    let fixture = FileFixture::new();
    fixture.write("src/a.txt", "");
    let folder = fixture.error("fs_read", json!({"path": "src"}));
    assert_eq!(folder, "`src` is a folder; list its entries with `fs_list`");
    let root = fixture.error("fs_read", json!({"path": ""}));
    assert_eq!(root, "`.` is a folder; list its entries with `fs_list`");
    let missing = fixture.error("fs_read", json!({"path": "src/b.txt"}));
    assert_eq!(
        missing,
        "`src/b.txt` does not exist; list the folder with `fs_list`"
    );
    let through_file = fixture.error("fs_read", json!({"path": "src/a.txt/b"}));
    assert!(
        through_file.starts_with("`src/a.txt/b`, or a parent of it, is not a folder"),
        "{through_file}"
    );
}

#[test]
fn an_invalid_path_is_refused_with_the_reason() {
    let fixture = FileFixture::new();
    for tool in ["fs_read", "fs_list", "fs_stat"] {
        let nul = fixture.error(tool, json!({"path": "a\0b"}));
        assert_eq!(nul, "the path is invalid: it contains a NUL character");
        let long_path = fixture.error(tool, json!({"path": "a/".repeat(5000)}));
        assert_eq!(
            long_path,
            "the path is invalid: it is longer than 4096 bytes"
        );
        let long_name = fixture.error(tool, json!({"path": "a".repeat(300)}));
        assert_eq!(long_name, "the path is invalid: a name in it is too long");
        let at_the_limit = fixture.error(tool, json!({"path": "a/".repeat(2048)}));
        assert!(at_the_limit.len() < 2000, "{at_the_limit}");
    }
}
