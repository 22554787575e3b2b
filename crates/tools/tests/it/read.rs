//! `fs_read` on regular files.

use crate::support::Bench;
use serde_json::{Value, json};
use std::fs::File;

#[test]
fn a_small_file_comes_back_exactly_as_it_is() {
    let bench = Bench::new();
    for content in [
        "one\ntwo\n",
        "one\r\ntwo\r\n",
        "no newline at the end",
        "\n",
        "\u{feff}grüße\n",
    ] {
        bench.write("a.txt", content);
        assert_eq!(bench.text("fs_read", json!({"path": "a.txt"})), content);
    }
}

#[test]
fn an_empty_file_says_so() {
    let bench = Bench::new();
    bench.write("empty", "");
    assert_eq!(
        bench.text("fs_read", json!({"path": "empty"})),
        "[empty is empty]\n"
    );
}

#[test]
fn some_lines_of_a_file_come_with_a_note_of_how_to_read_on() {
    let bench = Bench::new();
    bench.write("a.txt", "1\n2\n3\n4\n5");
    let arguments = json!({"path": "a.txt", "first_line": 2, "lines": 2});
    assert_eq!(
        bench.text("fs_read", arguments),
        "2\n3\n[lines 2 to 3 of a.txt; 3 B more follow, read on with fs_read \
         {\"path\":\"a.txt\",\"first_line\":4,\"lines\":2}]\n"
    );
    assert_eq!(
        bench.text(
            "fs_read",
            json!({"path": "a.txt", "first_line": 4, "lines": 2})
        ),
        "4\n5"
    );
    assert_eq!(
        bench.text("fs_read", json!({"path": "a.txt", "first_line": 5})),
        "5"
    );
    assert_eq!(
        bench.text("fs_read", json!({"path": "a.txt", "lines": u64::MAX})),
        "1\n2\n3\n4\n5"
    );
}

#[test]
fn a_line_after_the_last_is_refused_with_the_number_of_lines() {
    let bench = Bench::new();
    for (content, lines) in [
        ("1\n2\n", "2 lines"),
        ("1\n2", "2 lines"),
        ("1", "1 line"),
        ("", "0 lines"),
    ] {
        bench.write("a.txt", content);
        for line in [3, 4, u64::MAX] {
            let error = bench.error("fs_read", json!({"path": "a.txt", "first_line": line}));
            assert_eq!(
                error,
                format!("`a.txt` has {lines}; pass a smaller `first_line`")
            );
        }
    }
}

#[test]
fn following_the_notes_reads_any_file_to_its_end_in_bounded_pages() {
    let bench = Bench::new();
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
        bench.write("big.txt", &content);
        let mut read = String::new();
        let mut next = Some(json!({"path": "big.txt"}));
        while let Some(arguments) = next {
            let (page, following) = page(bench.text("fs_read", arguments));
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

/// Parts a page from its note. A page that ends inside a line has a newline more before the note.
fn page(output: String) -> (String, Option<Value>) {
    let note = output
        .rsplit_once('[')
        .filter(|(_, note)| note.contains("read on with"));
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
    let bench = Bench::new();
    bench.write("a.txt", "ab€cd\n");
    assert_eq!(
        bench.text("fs_read", json!({"path": "a.txt", "skip_bytes": 3})),
        "cd\n"
    );
    let past = bench.error("fs_read", json!({"path": "a.txt", "skip_bytes": 8}));
    assert_eq!(
        past,
        "`a.txt` has fewer bytes in line 1; pass a smaller `skip_bytes`"
    );
}

#[test]
fn an_image_comes_back_as_it_is_under_its_name() {
    let bench = Bench::new();
    let image = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    bench.write("shots/one.jpg", image);
    let output = bench.output("fs_read", json!({"path": "shots/one.jpg"}));
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
        bench
            .output("fs_read", json!({"path": "../one.png"}))
            .is_err()
    );
}

#[test]
fn an_image_that_is_too_large_to_be_shown_is_refused_with_the_limit() {
    let bench = Bench::new();
    let mut image = b"\x89PNG\r\n\x1a\n".to_vec();
    image.resize(5_000_001, 0);
    bench.write("one.png", image);
    assert_eq!(
        bench.error("fs_read", json!({"path": "one.png"})),
        "`one.png` is an image of 5.0 MB; only images of up to 5.0 MB can be read"
    );
}

#[test]
fn what_is_not_text_is_refused_with_its_size_and_a_guess() {
    let bench = Bench::new();
    let cases: [(&[u8], &str); 5] = [
        (b"%PDF-1.5\n\0", "10 B, by the look of it a PDF document"),
        (
            b"caf\xe9\n",
            "5 B, by the look of it text in another encoding or binary data",
        ),
        (b"\xff\xfea\0b\0", "6 B, by the look of it UTF-16 text"),
        (b"text\nthen a \0", "13 B, by the look of it binary data"),
        (
            b"cut \xe2\x82",
            "6 B, by the look of it text in another encoding or binary data",
        ),
    ];
    for (content, expected) in cases {
        bench.write("file", content);
        let error = bench.error("fs_read", json!({"path": "file"}));
        assert_eq!(
            error,
            format!("`file` is not UTF-8 text: {expected}; only text can be read")
        );
    }
}

#[test]
fn a_sparse_file_of_a_gigabyte_is_refused_at_once() {
    let bench = Bench::new();
    File::create(bench.inside("huge"))
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    for line in [1, 1_000_000] {
        let error = bench.error("fs_read", json!({"path": "huge", "first_line": line}));
        assert!(
            error.contains("1.0 GB, by the look of it binary data"),
            "{error}"
        );
    }
}

#[test]
fn the_text_at_the_start_of_a_huge_file_is_read_without_the_rest() {
    let bench = Bench::new();
    bench.write("huge", "a line of text\n".repeat(10_000));
    File::options()
        .write(true)
        .open(bench.inside("huge"))
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    let text = bench.text("fs_read", json!({"path": "huge", "lines": 1}));
    assert!(
        text.starts_with("a line of text\n[line 1 of huge; 1.0 GB more follow"),
        "{text}"
    );
}

#[test]
fn a_folder_or_a_missing_file_is_refused_with_what_to_call_instead() {
    let bench = Bench::new();
    bench.write("src/a.txt", "");
    let folder = bench.error("fs_read", json!({"path": "src"}));
    assert_eq!(folder, "`src` is a folder; see its entries with `fs_list`");
    let root = bench.error("fs_read", json!({"path": ""}));
    assert_eq!(root, "`.` is a folder; see its entries with `fs_list`");
    let missing = bench.error("fs_read", json!({"path": "src/b.txt"}));
    assert_eq!(
        missing,
        "`src/b.txt` does not exist; see what there is with `fs_list`"
    );
    let through_file = bench.error("fs_read", json!({"path": "src/a.txt/b"}));
    assert!(
        through_file.starts_with("`src/a.txt/b` is not a folder, or leads through"),
        "{through_file}"
    );
}

#[test]
fn an_unusable_path_is_refused_with_the_reason() {
    let bench = Bench::new();
    for tool in ["fs_read", "fs_list", "fs_stat"] {
        let nul = bench.error(tool, json!({"path": "a\0b"}));
        assert_eq!(nul, "the path is not usable: it contains a NUL character");
        let long_path = bench.error(tool, json!({"path": "a/".repeat(5000)}));
        assert_eq!(
            long_path,
            "the path is not usable: it is longer than 4096 bytes"
        );
        let long_name = bench.error(tool, json!({"path": "a".repeat(300)}));
        assert_eq!(
            long_name,
            "the path is not usable: a name in it is too long"
        );
        let at_the_limit = bench.error(tool, json!({"path": "a/".repeat(2048)}));
        assert!(at_the_limit.len() < 2000, "{at_the_limit}");
    }
}
