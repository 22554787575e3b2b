//! Helpers that find the project's files and parse the string literals of Rust sources.

use std::path::{Path, PathBuf};

/// Returns the root folder of the project.
pub(crate) fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    crates.parent().unwrap().to_owned()
}

/// Returns the folders of all crates, sorted by name.
pub(crate) fn crates() -> Vec<PathBuf> {
    let mut folders = entries(&root().join("crates"));
    folders.retain(|folder| folder.join("Cargo.toml").is_file());
    assert!(folders.len() >= 6, "{folders:?}");
    folders
}

/// Returns the name of a file or folder without its path.
pub(crate) fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap()
}

/// Returns the entries of a folder, sorted. A missing folder has none.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Returns all files below a folder that have one of these extensions.
pub(crate) fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(folder) {
        if path.is_dir() {
            found.extend(files(&path, extensions));
        } else if path
            .extension()
            .is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted))
        {
            found.push(path);
        }
    }
    found
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns a path relative to the project, for messages.
pub(crate) fn display_path(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}

/// A string literal and the line on which it starts. Escapes are not decoded; runs of white space become one space.
#[derive(Debug, PartialEq)]
pub(crate) struct Literal {
    pub line: usize,
    pub text: String,
}

/// Returns the string literals of a Rust source, without those in comments.
pub(crate) fn literals(source: &str) -> Vec<Literal> {
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
            // Skip the whole word, so that the `r` of `for"` is not read as the start of a raw string.
            rest.find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        rest = &rest[skipped..];
    }
    found
}

/// Returns the length of a block comment, which may contain nested ones.
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

/// Returns the length of a character literal, or of the tick of a lifetime.
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

/// Parses a string literal at the start of a text. Returns the offset of its body, the body, and the literal's length.
fn string(text: &str) -> Option<(usize, &str, usize)> {
    let prefix = text.len() - text.trim_start_matches(['b', 'c']).len();
    let after_prefix = &text[prefix.min(1)..];
    let prefix = prefix.min(1);
    if let Some(raw) = after_prefix.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let body = raw[hashes..].strip_prefix('"')?;
        let end = body.find(&format!("\"{}", "#".repeat(hashes)))?;
        let open = prefix + 1 + hashes + 1;
        return Some((open, &body[..end], open + end + 1 + hashes));
    }
    let body = after_prefix.strip_prefix('"')?;
    let mut escaped = false;
    let end = body.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    })?;
    Some((prefix + 1, &body[..end], prefix + 1 + end + 1))
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
