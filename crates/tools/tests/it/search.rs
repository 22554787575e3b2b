//! `fs_search`.

use crate::support::{Bench, SECRET, prepared};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

#[test]
fn lines_that_match_come_with_their_path_and_number() {
    let bench = Bench::new();
    bench.write("src/a.rs", "fn one() {}\nfn two() {}\n");
    bench.write("b.txt", "no\r\nfn three\r\n");
    let expected = "b.txt:2: fn three\nsrc/a.rs:1: fn one() {}\nsrc/a.rs:2: fn two() {}\n";
    let arguments = json!({"pattern": r"fn \w+"});
    assert_eq!(bench.text("fs_search", arguments), expected);
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
            bench.text("fs_search", arguments.clone()),
            expected,
            "{arguments}"
        );
    }
    let none = bench.text("fs_search", json!({"pattern": "four"}));
    assert_eq!(none, "[no match in .; 2 files looked at]\n");
}

#[test]
fn lines_around_a_match_are_shown_and_parted() {
    let bench = Bench::new();
    bench.write("a", "1\n2\nx\n4\n5\n6\n7\nx\n9\n");
    assert_eq!(
        bench.text("fs_search", json!({"pattern": "x", "context": 1})),
        "a-2- 2\na:3: x\na-4- 4\n--\na-7- 7\na:8: x\na-9- 9\n"
    );
    assert_eq!(
        bench.text(
            "fs_search",
            json!({"pattern": "x", "context": 1, "skip": 1})
        ),
        "a-7- 7\na:8: x\na-9- 9\n"
    );
}

#[test]
fn a_search_with_many_matches_is_cut_and_says_how_to_go_on() {
    let bench = Bench::new();
    bench.write("a.txt", "match\n".repeat(150));
    bench.write("b.txt", "match\n".repeat(150));
    let mut lines = Vec::new();
    let mut arguments = json!({"pattern": "match"});
    loop {
        let text = bench.text("fs_search", arguments);
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
    let past = bench.text("fs_search", json!({"pattern": "match", "skip": 300}));
    assert_eq!(past, "[no more matches in .; pass a smaller `skip`]\n");
}

#[test]
fn long_lines_are_shown_around_their_match_and_all_of_it_is_bounded() {
    let bench = Bench::new();
    let line = format!("{}needle{}", "a".repeat(5000), "b".repeat(5000));
    bench.write("min.js", &line);
    let text = bench.text("fs_search", json!({"pattern": "needle"}));
    assert!(
        text.starts_with("min.js:1: …aaa") && text.contains("aneedleb"),
        "{text}"
    );
    assert!(text.chars().count() < 330, "{text}");
    bench.write("many", format!("{line}\n").repeat(1000));
    let text = bench.text("fs_search", json!({"pattern": "needle", "limit": 1000}));
    assert!(text.len() < 40_000, "{} bytes", text.len());
    assert!(text.contains(" matches shown, there are more; "), "{text}");
}

#[test]
fn what_gitignore_names_is_left_out() {
    let bench = Bench::new();
    bench.write(".gitignore", "target/\n*.log\n!keep.log\n");
    bench.write("target/x", "word");
    bench.write("src/a.log", "word");
    bench.write("src/keep.log", "word");
    bench.write("src/.gitignore", "/local\n");
    bench.write("src/local", "word");
    bench.write("other/local", "word");
    bench.write(".git/config", "word");
    bench.write("vendored/.git/HEAD", "");
    bench.write("vendored/b.log", "word");
    let text = bench.text("fs_search", json!({"pattern": "word"}));
    assert_eq!(
        text,
        "other/local:1: word\nsrc/keep.log:1: word\nvendored/b.log:1: word\n[left out: 3 named by .gitignore]\n"
    );
    let below = bench.text("fs_search", json!({"pattern": "word", "path": "src"}));
    assert_eq!(
        below,
        "src/keep.log:1: word\n[left out: 2 named by .gitignore]\n"
    );
    for path in ["target", ".git"] {
        let text = bench.text("fs_search", json!({"pattern": "word", "path": path}));
        assert!(text.contains(":1: word\n"), "{path}: {text}");
    }
}

#[test]
fn binary_files_and_special_files_are_left_out() {
    let bench = Bench::new();
    bench.write("binary", b"word\n\0word\n");
    bench.write("text", b"caf\xe9 word\n");
    bench.write("escape", "word \u{1b}[2J\n");
    assert!(prepared("mkfifo", &[], &bench.inside("pipe")));
    std::fs::write(bench.inside("").join(OsStr::from_bytes(b"caf\xe9")), "word").unwrap();
    assert_eq!(
        bench.text("fs_search", json!({"pattern": "word"})),
        "caf\u{fffd}:1: word\nescape:1: word \\u{1b}[2J\ntext:1: caf\u{fffd} word\n[left out: 1 not text]\n"
    );
    let pipe = bench.error("fs_search", json!({"pattern": "word", "path": "pipe"}));
    assert_eq!(
        pipe,
        "`pipe` is a named pipe; only regular files can be read"
    );
}

#[test]
fn links_are_not_followed_and_hidden_things_not_found() {
    let bench = Bench::with_policy(|policy, folder| {
        policy.hidden = vec![folder.join("workspace/db")];
    });
    bench.write("db/rows", SECRET);
    bench.write("real/a.txt", "the text inside");
    bench.link("door", bench.outside(""));
    bench.link("file", bench.outside("secret.txt"));
    bench.link("up", "..");
    bench.link("again", "real");
    bench.link(".gitignore", bench.outside("secret.txt"));
    let text = bench.text("fs_search", json!({"pattern": "the"}));
    assert_eq!(text, "real/a.txt:1: the text inside\n");
    assert_eq!(
        bench.text("fs_search", json!({"glob": "*"})),
        "real/a.txt\n"
    );
    let text = bench.text("fs_search", json!({"pattern": "the", "path": "again"}));
    assert_eq!(text, "real/a.txt:1: the text inside\n");
    for path in ["db", "db/rows", "door", "file", "up", "/"] {
        let error = bench.error("fs_search", json!({"pattern": "the", "path": path}));
        assert!(!error.contains(SECRET), "{path}: {error}");
    }
}

#[test]
fn a_pattern_that_is_none_is_refused_with_the_place() {
    let bench = Bench::new();
    let error = |arguments| bench.error("fs_search", arguments);
    assert_eq!(
        error(json!({"pattern": "ä(b"})),
        "the `pattern` cannot be used: unclosed group, at character 2 (`(b`); correct it, or pass `literal` for plain \
         text"
    );
    assert!(error(json!({"pattern": "a\nb"})).contains("one that fits within a line"));
    assert!(error(json!({"glob": "a[b"})).starts_with("the `glob` cannot be used: "));
    assert!(error(json!({})).contains("pass one of them"));
    assert!(error(json!({"pattern": "x", "path": "nowhere"})).contains("does not exist"));
    let huge = "a{1000}{1000}";
    assert!(error(json!({"pattern": huge})).starts_with("the `pattern` cannot be used: "));
}
