//! Patterns over the text that stands for a call: `*` is any run of characters, `?` is one, a backslash takes the next
//! character as it is. A pattern fits the whole text or not at all.

/// Whether the pattern fits, where `wild` says which characters a `*` or `?` may stand for.
///
/// ` *` at the end also fits when nothing follows: `git log *` fits `git log`.
pub(crate) fn fits(pattern: &str, text: &str, wild: impl Fn(char) -> bool) -> bool {
    let bare = pattern.strip_suffix(" *");
    if bare.is_some_and(|bare| literal_text(bare).as_deref() == Some(text)) {
        return true;
    }
    let pattern = parts(pattern);
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut seen) = (0, 0);
    // Where to go on when what follows the last `*` does not fit: behind it, with one more character given to it.
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
            Some((behind, given)) if wild(text[given]) => {
                retry = Some((behind, given + 1));
                (at, seen) = (behind, given + 1);
            }
            _ => return false,
        }
    }
    pattern[at..].iter().all(|part| *part == Part::Any)
}

/// The pattern that fits this text and no other.
pub(crate) fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '*' | '?' | '\\' | '…') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    // At the end of a pattern this stands for more than itself.
    match pattern.strip_suffix(" ...") {
        Some(start) => format!("{start} \\..."),
        None => pattern,
    }
}

/// Whether a pattern has no wildcard.
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

/// The one text that a pattern without wildcards fits.
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
    fn a_pattern_fits_the_whole_text() {
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
    fn a_backslash_takes_a_character_as_it_is() {
        for text in ["rm *", "what?", r"a\*b", "plain"] {
            assert!(any(&literal(text), text), "{text}");
        }
        assert!(!any(&literal("rm *"), "rm everything"));
    }

    #[test]
    fn a_wildcard_stands_only_for_what_it_may() {
        let tame = |letter: char| letter != ';';
        assert!(fits("git *", "git log", tame));
        assert!(!fits("git *", "git log; rm x", tame));
        assert!(!fits("git ?", "git ;", tame));
        assert!(fits("a; *", "a; b", tame));
    }

    #[test]
    fn many_stars_do_not_take_long() {
        let pattern = "*a".repeat(50);
        assert!(!any(&pattern, &"a".repeat(49)));
        assert!(!any(&format!("{pattern}b"), &"a".repeat(20_000)));
    }
}
