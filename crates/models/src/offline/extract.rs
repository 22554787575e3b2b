//! Extracts arguments from a request: paths, quoted text and URLs.

use super::clause::{strip_any, strip_phrase};

/// A path in a request.
#[derive(Debug, PartialEq)]
pub(super) struct NamedPath {
    pub path: String,
    /// Whether it is surely meant as a path: it is quoted, looks like one, or was called a file or folder.
    pub is_certain: bool,
}

/// Pairs of quotation marks.
const QUOTES: [(char, char); 5] = [('`', '`'), ('"', '"'), ('“', '”'), ('\'', '\''), ('‘', '’')];

/// Words before a path that say nothing about it.
const FILLERS: &[&str] = &[
    "the",
    "a",
    "an",
    "my",
    "our",
    "this",
    "that",
    "me",
    "new",
    "empty",
    "text",
    "whole",
    "entire",
    "content of",
    "contents of",
    "one",
];

/// Words before a path that say that it is one.
const KINDS: &[&str] = &["file", "folder", "directory", "called", "named", "path"];

/// Returns the text inside the quotation marks at the start, which may be empty, and the text after them.
pub(super) fn leading_quote(text: &str) -> Option<(&str, &str)> {
    let first = text.chars().next()?;
    let (_, closing) = QUOTES.iter().find(|(opening, _)| *opening == first)?;
    let rest = &text[first.len_utf8()..];
    // An apostrophe inside a word ends no quotation.
    let ends = |at: usize| !rest[at + closing.len_utf8()..].starts_with(char::is_alphanumeric);
    let (at, _) = rest
        .match_indices(*closing)
        .find(|(at, _)| *closing != '\'' || ends(*at))?;
    Some((&rest[..at], &rest[at + closing.len_utf8()..]))
}

/// Returns the text without quotation marks, if one pair encloses all of it.
pub(super) fn unquoted(text: &str) -> Option<&str> {
    let (inside, after) = leading_quote(text.trim())?;
    after.trim().is_empty().then_some(inside)
}

/// Returns for each byte of the text whether it is inside quotation marks. Single quotes count only at the start of a
/// word, so an apostrophe opens nothing.
pub(super) fn quoted_ranges(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut ranges = Vec::new();
    let mut at = 0;
    let mut previous = ' ';
    while let Some(c) = text[at..].chars().next() {
        let opens = QUOTES.iter().any(|(opening, _)| *opening == c) && !previous.is_alphanumeric();
        if opens && let Some((_, after)) = leading_quote(&text[at..]) {
            let end = text.len() - after.len();
            ranges.push(at..end);
            at = end;
            previous = '"';
            continue;
        }
        previous = c;
        at += c.len_utf8();
    }
    ranges
}

/// Splits a text at the last of these separators that is outside quotation marks and whose right side `accepts`.
pub(super) fn split_last<'t, T>(
    text: &'t str,
    separators: &[&str],
    accepts: impl Fn(&'t str) -> Option<T>,
) -> Option<(&'t str, T)> {
    let lower = text.to_ascii_lowercase();
    let quoted = quoted_ranges(text);
    let is_outside = |at: usize| !quoted.iter().any(|range| range.contains(&at));
    let mut places: Vec<(usize, usize)> = separators
        .iter()
        .flat_map(|separator| {
            lower
                .match_indices(separator)
                .map(|(at, found)| (at, at + found.len()))
        })
        .filter(|(at, _)| is_outside(*at))
        .collect();
    places.sort_unstable();
    places.into_iter().rev().find_map(|(at, end)| {
        let left = text[..at].trim();
        let right = accepts(text[end..].trim())?;
        (!left.is_empty()).then_some((left, right))
    })
}

/// Splits a text at the only one of these separators; `None` if there are none or several.
pub(super) fn split_only<'t>(text: &'t str, separators: &[&str]) -> Option<(&'t str, &'t str)> {
    let lower = text.to_ascii_lowercase();
    let mut places = separators.iter().flat_map(|separator| {
        lower
            .match_indices(separator)
            .map(|(at, found)| (at, at + found.len()))
    });
    let (at, end) = places.next()?;
    let is_only = places.next().is_none();
    let (left, right) = (text[..at].trim(), text[end..].trim());
    (is_only && !left.is_empty() && !right.is_empty()).then_some((left, right))
}

/// Returns the path at the start of a text, and the text after it.
pub(super) fn leading_path(text: &str) -> Option<(NamedPath, &str)> {
    let mut rest = text.trim();
    let mut is_certain = false;
    loop {
        if let Some(shorter) = strip_any(rest, KINDS) {
            rest = shorter;
            is_certain = true;
        } else if let Some(shorter) = strip_any(rest, FILLERS) {
            rest = shorter;
        } else {
            break;
        }
    }
    // In the chat, `@` starts the name of a file.
    if let Some(path) = rest.strip_prefix('@') {
        let word = path.split_whitespace().next().unwrap_or_default();
        let is_quoted = leading_quote(path).is_some();
        if is_quoted || is_path(word.trim_end_matches(['.', ',', ';', ':', '?', '!', ')'])) {
            rest = path;
        }
    }
    if let Some((inside, after)) = leading_quote(rest) {
        let path = inside.to_owned();
        let is_certain = true;
        return (!path.trim().is_empty()).then_some((NamedPath { path, is_certain }, after));
    }
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let word = rest[..end].trim_end_matches([',', ';', ':', '?', '!', ')']);
    let word = match word.strip_suffix('.') {
        Some(shorter) if shorter.chars().all(|c| c == '.' || c == '/') => word,
        Some(shorter) => shorter,
        None => word,
    };
    let is_plain = |c: char| c.is_alphanumeric() || "/._-~+@#".contains(c);
    if word.is_empty() || !word.chars().all(is_plain) {
        return None;
    }
    let path = NamedPath {
        path: word.to_owned(),
        is_certain: is_certain || is_path(word),
    };
    Some((path, &rest[word.len()..]))
}

/// Returns the path if the text is nothing else: `the file notes.md`, `the src folder`, `notes.md for me`.
pub(super) fn only_path(text: &str) -> Option<NamedPath> {
    let (path, after) = leading_path(text)?;
    let mut after = after.trim_start_matches([' ', ',', '.', '?', '!']);
    // "the old file" names no file, so a kind after the word makes nothing certain.
    while let Some(shorter) = strip_any(after, KINDS) {
        after = shorter;
    }
    let endings = ["please", "for me", "to me", "now", "again", "here"];
    while let Some(shorter) = strip_any(after, &endings) {
        after = shorter;
    }
    after.trim().is_empty().then_some(path)
}

/// Returns a path that is surely meant as one, and nothing else.
pub(super) fn certain_path(text: &str) -> Option<String> {
    only_path(text)
        .filter(|path| path.is_certain)
        .map(|path| path.path)
}

/// Returns whether a word looks like a path: it has an extension, a slash or a leading dot, or is a name like README.
pub(super) fn is_path(word: &str) -> bool {
    is_file(word)
        || (!word.contains("://") && word.len() > 1 && word.contains('/'))
        || matches!(word, "." | ".." | "~")
}

/// Returns whether a word looks like the path of a file: it has an extension, or is a name like README.
pub(super) fn is_file(word: &str) -> bool {
    const NAMES: [&str; 8] = [
        "README",
        "LICENSE",
        "CHANGELOG",
        "Makefile",
        "Dockerfile",
        "justfile",
        "NOTICE",
        "AUTHORS",
    ];
    !word.contains("://") && (has_extension(word) || NAMES.contains(&word))
}

fn has_extension(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    name.rsplit_once('.').is_some_and(|(_, extension)| {
        extension.starts_with(|c: char| c.is_ascii_alphabetic())
            && extension.len() <= 8
            && extension.chars().all(char::is_alphanumeric)
    })
}

/// Returns the first URL. A bare host such as `example.com` counts if its last part is a common domain.
pub(super) fn address(text: &str) -> Option<String> {
    const SIGNS: [char; 7] = ['`', '"', '\'', '(', ')', '<', '>'];
    const DOMAINS: [&str; 5] = [".com", ".org", ".net", ".dev", ".io"];
    let is_bare = |word: &str| {
        let host = word.split('/').next().unwrap_or(word);
        DOMAINS.iter().any(|domain| {
            host.strip_suffix(domain)
                .is_some_and(|name| name.starts_with(char::is_alphanumeric))
        })
    };
    text.split_whitespace().find_map(|word| {
        let word = word
            .trim_matches(SIGNS)
            .trim_end_matches(['.', ',', '?', '!', ';', ':'])
            .trim_end_matches(SIGNS);
        let has_scheme = ["https://", "http://"]
            .iter()
            .any(|scheme| word.starts_with(scheme) && word.len() > scheme.len());
        if has_scheme {
            Some(word.to_owned())
        } else {
            is_bare(word).then(|| format!("https://{word}"))
        }
    })
}

/// Removes `the word`, `the text` and the like from the start of a text.
pub(super) fn without_label(text: &str) -> &str {
    const LABELS: &[&str] = &[
        "the word",
        "the words",
        "the text",
        "the string",
        "the phrase",
        "the line",
        "the name",
    ];
    strip_any(text, LABELS).unwrap_or(text)
}

/// Returns whether a text describes content instead of being it, such as `a poem`: a rule cannot make it up.
pub(super) fn is_description(text: &str) -> bool {
    const STARTS: &[&str] = &[
        "a",
        "an",
        "the",
        "some",
        "my",
        "your",
        "our",
        "all",
        "every",
        "it",
        "this",
        "that",
        "these",
        "those",
        "them",
        "what",
        "how",
        "everything",
        "something",
    ];
    STARTS
        .iter()
        .any(|start| strip_phrase(text, start).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_with_and_without_its_kind() {
        for (text, path, is_certain) in [
            ("notes.md", "notes.md", true),
            ("the file notes", "notes", true),
            ("the src folder please", "src", false),
            ("src", "src", false),
            ("a folder called `x y`", "x y", true),
            ("\"odd name\"", "odd name", true),
            ("README.", "README", true),
            (".", ".", true),
            ("../up/", "../up/", true),
            ("a.md", "a.md", true),
            ("grüße.txt", "grüße.txt", true),
        ] {
            let path = NamedPath {
                path: path.to_owned(),
                is_certain,
            };
            assert_eq!(only_path(text), Some(path), "{text}");
        }
        for text in [
            "",
            "the",
            "x y",
            "notes.md and more",
            "*.md",
            "x|y",
            "a;b",
            "$HOME",
        ] {
            assert_eq!(only_path(text), None, "{text}");
        }
    }

    #[test]
    fn quotation_marks_enclose_text_and_apostrophes_do_not() {
        assert_eq!(leading_quote("\"a b\" c"), Some(("a b", " c")));
        assert_eq!(leading_quote("“a” b"), Some(("a", " b")));
        assert_eq!(leading_quote("'don't' x"), Some(("don't", " x")));
        assert_eq!(leading_quote("\"\" x"), Some(("", " x")));
        assert_eq!(leading_quote("a \"b\""), None);
        assert_eq!(quoted_ranges("don't say \"x\" or 'y'"), [10..13, 17..20]);
        assert_eq!(quoted_ranges("it's fine"), []);
    }

    #[test]
    fn addresses_have_a_scheme_or_a_common_domain() {
        let of = |text: &str| address(text);
        assert_eq!(
            of("read https://a.b/c.html?d=e.").unwrap(),
            "https://a.b/c.html?d=e"
        );
        assert_eq!(of("open (http://a.b)").unwrap(), "http://a.b");
        assert_eq!(of("open example.com/x").unwrap(), "https://example.com/x");
        assert_eq!(of("read notes.md and https:// and .com"), None);
    }
}
