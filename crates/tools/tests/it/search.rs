//! Tests of `fs_search`.

use crate::support::{FileFixture, SECRET, create_special};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

#[test]
fn matching_lines_are_shown_with_path_and_line_number() {
    let fixture = FileFixture::new();
    fixture.write("src/a.rs", "fn one() {}\nfn two() {}\n");
    fixture.write("b.txt", "no\r\nfn three\r\n");
    let expected = "b.txt:2: fn three\nsrc/a.rs:1: fn one() {}\nsrc/a.rs:2: fn two() {}\n";
    let arguments = json!({"pattern": r"fn \w+"});
    assert_eq!(fixture.text("fs_search", arguments), expected);
    for (arguments, expected) in [
        (
            json!({"pattern": "fn", "path": "src", "limit": 5}),
            "src/a.rs:1: fn one() {}\nsrc/a.rs:2: fn two() {}\n",
        ),
        (
            json!({"pattern": "fn", "path": "b.txt"}),
            "b.txt:2: fn three\n",
        ),
        (
            json!({"pattern": "fn", "glob": "*.txt"}),
            "b.txt:2: fn three\n",
        ),
        (
            json!({"pattern": "FN TWO", "ignore_case": true}),
            "src/a.rs:2: fn two() {}\n",
        ),
        (
            json!({"pattern": "o()", "literal": true}),
            "src/a.rs:2: fn two() {}\n",
        ),
        (json!({"glob": "src/**"}), "src/a.rs\n"),
        (json!({"glob": "*.{rs,txt}"}), "b.txt\nsrc/a.rs\n"),
        (json!({"glob": "*.rs", "path": "src"}), "src/a.rs\n"),
    ] {
        assert_eq!(
            fixture.text("fs_search", arguments.clone()),
            expected,
            "{arguments}"
        );
    }
    let none = fixture.text("fs_search", json!({"pattern": "four"}));
    assert_eq!(none, "[no match in .; searched 2 files]\n");
}

#[test]
fn context_lines_are_shown_and_separated() {
    let fixture = FileFixture::new();
    fixture.write("a", "1\n2\nx\n4\n5\n6\n7\nx\n9\n");
    assert_eq!(
        fixture.text("fs_search", json!({"pattern": "x", "context": 1})),
        "a-2- 2\na:3: x\na-4- 4\n--\na-7- 7\na:8: x\na-9- 9\n"
    );
    assert_eq!(
        fixture.text(
            "fs_search",
            json!({"pattern": "x", "context": 1, "skip": 1})
        ),
        "a-7- 7\na:8: x\na-9- 9\n"
    );
}

#[test]
fn a_search_with_many_matches_is_paged() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "match\n".repeat(150));
    fixture.write("b.txt", "match\n".repeat(150));
    let mut lines = Vec::new();
    let mut arguments = json!({"pattern": "match"});
    loop {
        let text = fixture.text("fs_search", arguments);
        let (notes, found): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with('['));
        assert!(found.len() <= 100);
        lines.extend(found.into_iter().map(str::to_owned));
        let Some(note) = notes.first() else { break };
        assert!(note.starts_with("[100 matches shown, there are more; see them with fs_search {"));
        let next = note.split_once("fs_search ").unwrap().1;
        arguments = serde_json::from_str::<Value>(next.trim_end_matches(']')).unwrap();
    }
    assert_eq!(lines.len(), 300);
    assert_eq!(lines[150], "b.txt:1: match");
    lines.dedup();
    assert_eq!(lines.len(), 300);
    let past = fixture.text("fs_search", json!({"pattern": "match", "skip": 300}));
    assert_eq!(past, "[no more matches in .; pass a smaller `skip`]\n");
}

#[test]
fn long_lines_are_truncated_around_their_match_and_the_result_is_limited() {
    let fixture = FileFixture::new();
    let line = format!("{}needle{}", "a".repeat(5000), "b".repeat(5000));
    fixture.write("min.js", &line);
    let text = fixture.text("fs_search", json!({"pattern": "needle"}));
    assert!(
        text.starts_with("min.js:1: …aaa") && text.contains("aneedleb"),
        "{text}"
    );
    assert!(text.chars().count() < 330, "{text}");
    fixture.write("many", format!("{line}\n").repeat(1000));
    let text = fixture.text("fs_search", json!({"pattern": "needle", "limit": 1000}));
    assert!(text.len() < 40_000, "{} bytes", text.len());
    assert!(text.contains(" matches shown, there are more; "), "{text}");
}

#[test]
fn files_that_gitignore_excludes_are_skipped() {
    let fixture = FileFixture::new();
    fixture.write(".gitignore", "target/\n*.log\n!keep.log\n");
    fixture.write("target/x", "word");
    fixture.write("src/a.log", "word");
    fixture.write("src/keep.log", "word");
    fixture.write("src/.gitignore", "/local\n");
    fixture.write("src/local", "word");
    fixture.write("other/local", "word");
    fixture.write(".git/config", "word");
    fixture.write("vendored/.git/HEAD", "");
    fixture.write("vendored/b.log", "word");
    let text = fixture.text("fs_search", json!({"pattern": "word"}));
    assert_eq!(
        text,
        "other/local:1: word\nsrc/keep.log:1: word\nvendored/b.log:1: word\n[skipped: 3 excluded by .gitignore]\n"
    );
    let below = fixture.text("fs_search", json!({"pattern": "word", "path": "src"}));
    assert_eq!(
        below,
        "src/keep.log:1: word\n[skipped: 2 excluded by .gitignore]\n"
    );
    for path in ["target", ".git"] {
        let text = fixture.text("fs_search", json!({"pattern": "word", "path": path}));
        assert!(text.contains(":1: word\n"), "{path}: {text}");
    }
}

#[test]
fn binary_files_and_special_files_are_skipped() {
    let fixture = FileFixture::new();
    fixture.write("binary", b"word\n\0word\n");
    fixture.write("text", b"caf\xe9 word\n");
    fixture.write("escape", "word \u{1b}[2J\n");
    assert!(create_special("mkfifo", &[], &fixture.inside("pipe")));
    std::fs::write(
        fixture.inside("").join(OsStr::from_bytes(b"caf\xe9")),
        "word",
    )
    .unwrap();
    assert_eq!(
        fixture.text("fs_search", json!({"pattern": "word"})),
        "caf\u{fffd}:1: word\nescape:1: word \\u{1b}[2J\ntext:1: caf\u{fffd} word\n[skipped: 1 not text]\n"
    );
    let pipe = fixture.error("fs_search", json!({"pattern": "word", "path": "pipe"}));
    assert_eq!(
        pipe,
        "`pipe` is a named pipe; only regular files can be read"
    );
}

#[test]
fn links_are_not_followed_and_hidden_files_not_found() {
    let fixture = FileFixture::with_policy(|policy, folder| {
        policy.hidden = vec![folder.join("workspace/db")];
    });
    fixture.write("db/rows", SECRET);
    fixture.write("real/a.txt", "the text inside");
    fixture.link("door", fixture.outside(""));
    fixture.link("file", fixture.outside("secret.txt"));
    fixture.link("up", "..");
    fixture.link("again", "real");
    fixture.link(".gitignore", fixture.outside("secret.txt"));
    let text = fixture.text("fs_search", json!({"pattern": "the"}));
    assert_eq!(text, "real/a.txt:1: the text inside\n");
    assert_eq!(
        fixture.text("fs_search", json!({"glob": "*"})),
        "real/a.txt\n"
    );
    let text = fixture.text("fs_search", json!({"pattern": "the", "path": "again"}));
    assert_eq!(text, "real/a.txt:1: the text inside\n");
    for path in ["db", "db/rows", "door", "file", "up", "/"] {
        let error = fixture.error("fs_search", json!({"pattern": "the", "path": path}));
        assert!(!error.contains(SECRET), "{path}: {error}");
    }
}

#[test]
fn an_invalid_pattern_is_refused_with_the_position() {
    let fixture = FileFixture::new();
    let error = |arguments| fixture.error("fs_search", arguments);
    assert_eq!(
        error(json!({"pattern": "ä(b"})),
        "`pattern` is invalid: unclosed group, at character 2 (`(b`); correct it, or pass `literal` for plain text"
    );
    assert!(error(json!({"pattern": "a\nb"})).contains("matches within one line"));
    assert!(error(json!({"glob": "a[b"})).starts_with("`glob` is invalid: "));
    assert!(error(json!({})).contains("pass at least one of them"));
    assert!(error(json!({"pattern": "x", "path": "nowhere"})).contains("does not exist"));
    let huge = "a{1000}{1000}";
    assert!(error(json!({"pattern": huge})).starts_with("`pattern` is invalid: "));
}
