//! Reads the project's files: where they are, and the string literals of Rust sources.

use std::path::{Path, PathBuf};

/// The project's folder.
pub fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    crates.parent().unwrap().to_owned()
}

/// The folders of all crates, in the order of their names.
pub fn crates() -> Vec<PathBuf> {
    let mut folders = entries(&root().join("crates"));
    folders.retain(|folder| folder.join("Cargo.toml").is_file());
    assert!(folders.len() >= 6, "{folders:?}");
    folders
}

/// The name of a file or folder without its path.
pub fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap()
}

/// What a folder holds, sorted; nothing if it is not there.
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// All files below a folder with one of these extensions.
pub fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(folder) {
        if path.is_dir() {
            found.extend(files(&path, extensions));
        } else if path
            .extension()
            .is_some_and(|is| extensions.iter().any(|wanted| is == *wanted))
        {
            found.push(path);
        }
    }
    found
}

pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A path as it is written in messages.
pub fn shown(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}

/// A string literal with the line on which it begins. Escapes stay as they are written, white space becomes one space.
#[derive(Debug, PartialEq)]
pub struct Literal {
    pub line: usize,
    pub text: String,
}

/// The string literals of a Rust source, without those in comments.
pub fn literals(source: &str) -> Vec<Literal> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if rest.starts_with('\'') {
            char_literal(rest)
        } else if let Some((open, body, length)) = string(rest) {
            let line = 1 + source[..source.len() - rest.len() + open]
                .matches('\n')
                .count();
            let text = body.replace("\\\n", " ");
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            found.push(Literal { line, text });
            length
        } else if first.is_alphanumeric() || first == '_' {
            // A whole word at once, so that the `r` of `for"` is not taken for the start of a raw string.
            rest.find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        rest = &rest[skipped..];
    }
    found
}

/// The length of a block comment, which may hold others.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let here = &text[at..];
        if here.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if here.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of a character literal, or of the tick of a lifetime.
fn char_literal(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => text[3..].find('\'').map_or(1, |end| end + 4),
        Some((_, _)) => match chars.next() {
            Some((end, '\'')) => end + 1,
            _ => 1,
        },
        None => 1,
    }
}

/// If a string begins here: where its body begins, the body, and the length of it all.
fn string(text: &str) -> Option<(usize, &str, usize)> {
    let marks = text.len() - text.trim_start_matches(['b', 'c']).len();
    let after_marks = &text[marks.min(1)..];
    let marks = marks.min(1);
    if let Some(raw) = after_marks.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let body = raw[hashes..].strip_prefix('"')?;
        let end = body.find(&format!("\"{}", "#".repeat(hashes)))?;
        let open = marks + 1 + hashes + 1;
        return Some((open, &body[..end], open + end + 1 + hashes));
    }
    let body = after_marks.strip_prefix('"')?;
    let mut escaped = false;
    let end = body.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    })?;
    Some((marks + 1, &body[..end], marks + 1 + end + 1))
}

#[test]
fn literals_are_found_and_comments_are_not() {
    let source = r####"
        //! "not this"
        fn f<'a>(x: &'a str) -> char { /* "nor /* this" */ */ '"' }
        const A: &str = "one \"quoted\" \
                         two";
        const B: &str = r#"raw "text" \"#; const C: char = '\''; const D: &[u8] = b"bytes";
        for"x" in r"" {}
    "####;
    let texts: Vec<(usize, String)> = literals(source)
        .into_iter()
        .map(|found| (found.line, found.text))
        .collect();
    let expected = [
        (4, r#"one \"quoted\" two"#),
        (6, r#"raw "text" \"#),
        (6, "bytes"),
        (7, "x"),
        (7, ""),
    ];
    assert_eq!(texts, expected.map(|(line, text)| (line, text.to_owned())));
}
