//! Patterns for the subject of a call: `*` matches any characters, `?` matches one, and a backslash escapes the next
//! character. A pattern must match the whole text.

/// Whether the pattern matches. `wild` decides which characters a `*` or `?` may match.
///
/// A final ` *` also matches nothing: `git log *` matches `git log`.
pub(crate) fn fits(pattern: &str, text: &str, wild: impl Fn(char) -> bool) -> bool {
    let bare = pattern.strip_suffix(" *");
    if bare.is_some_and(|bare| literal_text(bare).as_deref() == Some(text)) {
        return true;
    }
    let pattern = parts(pattern);
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut seen) = (0, 0);
    // Where to continue if the part after the last `*` does not match: after the `*`, which matches one more character.
    let mut retry: Option<(usize, usize)> = None;
    while seen < text.len() {
        let fits_here = match pattern.get(at) {
            Some(Part::Exactly(letter)) => *letter == text[seen],
            Some(Part::One) => wild(text[seen]),
            Some(Part::Any) => {
                at += 1;
                retry = Some((at, seen));
                continue;
            }
            None => false,
        };
        if fits_here {
            (at, seen) = (at + 1, seen + 1);
            continue;
        }
        match retry {
            Some((next_part, matched)) if wild(text[matched]) => {
                retry = Some((next_part, matched + 1));
                (at, seen) = (next_part, matched + 1);
            }
            _ => return false,
        }
    }
    pattern[at..].iter().all(|part| *part == Part::Any)
}

/// Returns the pattern that matches only this text.
pub(crate) fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '*' | '?' | '\\' | '…') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    // A final ` ...` has a special meaning in patterns.
    match pattern.strip_suffix(" ...") {
        Some(start) => format!("{start} \\..."),
        None => pattern,
    }
}

pub(crate) fn is_literal(pattern: &str) -> bool {
    literal_text(pattern).is_some()
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    Exactly(char),
    One,
    Any,
}

fn parts(pattern: &str) -> Vec<Part> {
    let mut letters = pattern.chars();
    let mut parts = Vec::with_capacity(pattern.len());
    while let Some(letter) = letters.next() {
        parts.push(match letter {
            '*' => Part::Any,
            '?' => Part::One,
            '\\' => Part::Exactly(letters.next().unwrap_or('\\')),
            letter => Part::Exactly(letter),
        });
    }
    parts
}

/// Returns the only text that a pattern without wildcards matches; `None` if it has wildcards.
pub(crate) fn literal_text(pattern: &str) -> Option<String> {
    let exactly = |part: &Part| match part {
        Part::Exactly(letter) => Some(*letter),
        Part::One | Part::Any => None,
    };
    parts(pattern).iter().map(exactly).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any(pattern: &str, text: &str) -> bool {
        fits(pattern, text, |_| true)
    }

    #[test]
    fn a_pattern_must_match_the_whole_text() {
        assert!(any("notes/*", "notes/a.md"));
        assert!(any("*", ""));
        assert!(any("a*b*c", "a-b-b-c"));
        assert!(any("?.md", "a.md"));
        assert!(!any("notes/*", "other/notes/a.md"));
        assert!(!any("a*b", "a-b-c"));
        assert!(!any("", "a"));
        assert!(any("git log *", "git log"));
        assert!(any("git log *", "git log -3"));
        assert!(!any("git log *", "git logs"));
    }

    #[test]
    fn a_backslash_escapes_a_character() {
        for text in ["rm *", "what?", r"a\*b", "plain"] {
            assert!(any(&literal(text), text), "{text}");
        }
        assert!(!any(&literal("rm *"), "rm everything"));
    }

    #[test]
    fn a_wildcard_matches_only_allowed_characters() {
        let tame = |letter: char| letter != ';';
        assert!(fits("git *", "git log", tame));
        assert!(!fits("git *", "git log; rm x", tame));
        assert!(!fits("git ?", "git ;", tame));
        assert!(fits("a; *", "a; b", tame));
    }

    #[test]
    fn many_wildcards_are_matched_quickly() {
        let pattern = "*a".repeat(50);
        assert!(!any(&pattern, &"a".repeat(49)));
        assert!(!any(&format!("{pattern}b"), &"a".repeat(20_000)));
    }
}
