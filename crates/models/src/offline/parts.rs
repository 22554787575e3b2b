//! Splits a message into requests, where it is certain that a new one starts. Text between quotation marks is never
//! split.

use super::clause::{Clause, words};
use super::extract::quoted_ranges;
use super::rules::{self, Task};
use std::ops::Range;

/// A message in which a text without quotation marks could also be another request.
#[derive(Debug, PartialEq)]
pub(super) struct Ambiguous;

/// More joints than this are no list of requests but a longer text, which is not split.
const MAX_JOINTS: usize = 40;

/// A place where a new request may start.
struct Joint {
    /// The text between the requests.
    range: Range<usize>,
    kind: JointKind,
}

#[derive(Clone, Copy, PartialEq)]
enum JointKind {
    /// `a and b`, `a, b`
    Weak,
    /// `a. b`
    Sentence,
    /// `a; b`, `a, and b`, or a line break
    Strong,
}

/// Splits a message into requests. `is_request` says whether a text without a rule is one.
pub(super) fn parts(text: &str, is_request: impl Fn(&str) -> bool) -> Result<Vec<&str>, Ambiguous> {
    let joints = joints(text);
    if joints.is_empty() || joints.len() > MAX_JOINTS {
        return Ok(vec![text.trim()]);
    }
    let mut parts = Vec::new();
    let mut start = 0;
    let mut indivisible = rules::length_of_loop(text).unwrap_or(0);
    for (at, joint) in joints.iter().enumerate() {
        if joint.range.start < indivisible {
            continue;
        }
        let end = joints
            .get(at + 1)
            .map_or(text.len(), |next| next.range.start);
        let left = &text[start..joint.range.start];
        let right = &text[joint.range.end..end];
        let separator = &text[joint.range.clone()];
        if is_split(left, right, (separator, joint.kind), &is_request)? {
            parts.push(left.trim());
            start = joint.range.end;
            indivisible = start + rules::length_of_loop(&text[start..]).unwrap_or(0);
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|part| !part.is_empty());
    Ok(parts)
}

fn is_split(
    left: &str,
    right: &str,
    (separator, joint): (&str, JointKind),
    is_request: impl Fn(&str) -> bool,
) -> Result<bool, Ambiguous> {
    let before = rules::find_any(left);
    let is_sentence = before.as_ref().is_some_and(|task| task.is_open) && joint == JointKind::Weak;
    let after = if is_sentence {
        rules::find_in_sentence(right)
    } else {
        rules::find_any(right)
    };
    let reads_on = || reads_like_request(right) && (is_request(right) || names_skill(right));
    if before.as_ref().is_some_and(Task::is_open_command) {
        let is_shell = [";", "&"].contains(&separator.trim());
        return Ok(match joint {
            _ if is_shell => after.is_some() && !rules::starts_with_program(right),
            JointKind::Sentence | JointKind::Strong => true,
            JointKind::Weak => after.is_some() || reads_on(),
        });
    }
    if let (Some(before), Some(after)) = (&before, &after) {
        return if is_ambiguous(before, after, joint) {
            Err(Ambiguous)
        } else {
            Ok(true)
        };
    }
    if before.as_ref().is_some_and(|task| task.is_open) {
        return Ok(false);
    }
    let is_before = before.is_some() || is_request(left);
    Ok(match joint {
        JointKind::Sentence | JointKind::Strong => true,
        JointKind::Weak => {
            is_before
                && reads_like_request(right)
                && (after.is_some() || is_request(right) || names_skill(right))
        }
    })
}

/// Whether the second request could also be text of the first, so that one of them would do harm.
fn is_ambiguous(before: &Task, after: &Task, joint: JointKind) -> bool {
    let does_harm = match joint {
        JointKind::Weak => before.has_effect() || after.has_effect(),
        JointKind::Sentence => before.has_effect(),
        JointKind::Strong => false,
    };
    before.is_open && does_harm
}

/// Whether a text starts like a question or an order.
fn reads_like_request(text: &str) -> bool {
    const STARTS: [&str; 26] = [
        "is", "are", "was", "were", "does", "do", "did", "will", "can", "could", "what", "what's",
        "which", "who", "how", "when", "where", "why", "tell", "ask", "give", "get", "check",
        "make", "look", "find",
    ];
    let clause = Clause::read(text);
    let first = clause.words().next().unwrap_or_default();
    STARTS.contains(&first) || names_skill(text)
}

/// Whether a text starts with something that people ask models for, and that no rule can do.
fn names_skill(text: &str) -> bool {
    const SKILLS: [&str; 24] = [
        "summarize",
        "summarise",
        "explain",
        "fix",
        "translate",
        "analyse",
        "analyze",
        "review",
        "improve",
        "describe",
        "compare",
        "send",
        "email",
        "count",
        "sort",
        "convert",
        "refactor",
        "rewrite",
        "commit",
        "push",
        "deploy",
        "install",
        "download",
        "draw",
    ];
    let clause = Clause::read(text);
    let first = clause.words().next().unwrap_or_default();
    SKILLS.contains(&first)
}

fn joints(text: &str) -> Vec<Joint> {
    const SEPARATORS: [(&str, JointKind); 12] = [
        (", and then ", JointKind::Strong),
        (" and then ", JointKind::Strong),
        (", and also ", JointKind::Strong),
        (" and also ", JointKind::Strong),
        (", then ", JointKind::Strong),
        (", and ", JointKind::Strong),
        ("; ", JointKind::Strong),
        ("\n", JointKind::Strong),
        (" and ", JointKind::Weak),
        (" then ", JointKind::Weak),
        (" & ", JointKind::Weak),
        (", ", JointKind::Weak),
    ];
    // Most messages are one short request.
    if !text.contains([',', ';', '\n', '&', '.', '?', '!']) && words(text).count() < 4 {
        return Vec::new();
    }
    let quoted = quoted_ranges(text);
    let mut joints: Vec<Joint> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if let Some(range) = quoted.iter().find(|range| range.contains(&at)) {
            at = range.end;
            continue;
        }
        let rest = &text[at..];
        let found = SEPARATORS.iter().find(|(separator, _)| {
            rest.get(..separator.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(separator))
        });
        let is_end = rest.starts_with(['.', '?', '!'])
            && rest[1..].starts_with(char::is_whitespace)
            && !is_folder(&text[..=at]);
        let (length, kind) = match found {
            Some((separator, kind)) => (separator.len(), *kind),
            None if is_end => (1, JointKind::Sentence),
            None => {
                at += rest.chars().next().map_or(1, char::len_utf8);
                continue;
            }
        };
        joints.push(Joint {
            range: at..at + length,
            kind,
        });
        at += length;
        if joints.len() > MAX_JOINTS {
            break;
        }
    }
    joints
}

/// Whether a text ends with dots that are a path: `git add .`, `go test ./...`
fn is_folder(text: &str) -> bool {
    let word = text.rsplit(char::is_whitespace).next().unwrap_or(text);
    let before_dots = word.trim_end_matches('.');
    word.ends_with('.') && (before_dots.is_empty() || before_dots.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<&str> {
        parts(text, |_| false).unwrap()
    }

    #[test]
    fn a_message_is_split_where_both_sides_are_requests() {
        for (text, expected) in [
            ("list files and folders", &["list files and folders"][..]),
            (
                "list files, and plan my day",
                &["list files", "plan my day"],
            ),
            (
                "list src, remember that I like tea, and plan a party.",
                &["list src", "remember that I like tea", "plan a party."],
            ),
            (
                "read notes.md. Then list src",
                &["read notes.md", "Then list src"],
            ),
            ("search for milk and bread", &["search for milk and bread"]),
            (
                "write a.md with the text \"x and list files\"",
                &["write a.md with the text \"x and list files\""],
            ),
            ("read a.md and summarize it", &["read a.md", "summarize it"]),
            (
                "plan a release and write the notes",
                &["plan a release and write the notes"],
            ),
            (
                "create a.md with the word hi and list files",
                &["create a.md with the word hi", "list files"],
            ),
        ] {
            assert_eq!(split(text), expected, "{text}");
        }
    }

    #[test]
    fn open_text_takes_what_follows_it() {
        for text in [
            "remember that I like tea. My cat, too",
            "write a.md with the text Hello. How are you?",
            "write a.md with the text milk, bread and butter",
            "remember that I like to go out and find mushrooms",
        ] {
            assert_eq!(split(text), [text], "{text}");
        }
    }

    #[test]
    fn a_request_that_may_be_part_of_a_text_is_ambiguous() {
        for text in [
            "write a.md with the text buy milk and delete b.md",
            "write a.md with the text buy milk. Delete b.md",
            "write a.md with the text buy milk and list files",
            "remember that I like tea and delete b.md",
            "note that we deploy on Monday and run `make`",
        ] {
            assert_eq!(parts(text, |_| false), Err(Ambiguous), "{text}");
        }
        for text in [
            "remember that I like tea, and delete b.md",
            "remember that I like tea and list files",
            "write a.md with the text \"buy milk\" and delete b.md",
        ] {
            assert_eq!(split(text).len(), 2, "{text}");
        }
    }
}
