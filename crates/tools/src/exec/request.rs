//! What is to run, and how it is shown: a command that is shown is the command that runs.

use lango_net::HostPattern;
use lango_sandbox::Policy;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How much of a command is shown where it only has to be recognised.
const SHORT_CHARACTERS: usize = 200;

/// A command with all that it takes to run it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) words: Words,
    pub(crate) cwd: PathBuf,
    pub(crate) policy: Policy,
    /// The only hosts that it may contact, if its network is a proxy.
    pub(crate) hosts: Vec<HostPattern>,
    pub(crate) time: Duration,
}

/// The command itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Words {
    /// A line for the shell.
    Line(String),
    /// A program and its arguments.
    Argv(Vec<String>),
}

impl Words {
    /// What is started.
    pub(crate) fn argv(&self) -> Vec<OsString> {
        match self {
            Self::Line(line) => vec!["/bin/sh".into(), "-c".into(), line.into()],
            Self::Argv(argv) => argv.iter().map(Into::into).collect(),
        }
    }

    /// The whole of it, as a shell would take it, with nothing that is not seen.
    pub(crate) fn shown(&self) -> String {
        let line = match self {
            Self::Line(line) => line.clone(),
            Self::Argv(argv) => {
                let words: Vec<_> = argv.iter().map(|word| quoted(word)).collect();
                words.join(" ")
            }
        };
        format!("$ {}", visible(&line, "\n> "))
    }

    /// The start of it on one line.
    pub(crate) fn short(&self) -> String {
        let shown = self.shown().replace("\n> ", "");
        match shown.char_indices().nth(SHORT_CHARACTERS) {
            Some((end, _)) => format!("{}…", &shown[..end]),
            None => shown,
        }
    }
}

/// A word as a shell would have to be given it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A text in which everything is seen: line breaks and control characters have their signs (`␊`, `␛`), characters that
/// take no room or turn the direction of what follows have their numbers. A line break is followed by `line_break`.
pub(crate) fn visible(text: &str, line_break: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => {
                shown.push('␊');
                shown.push_str(line_break);
            }
            '\u{7f}' => shown.push('␡'),
            '\0'..='\u{1f}' => shown.extend(char::from_u32(0x2400 + u32::from(c))),
            c if is_unseen(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// Whether a reader cannot see this character, or sees what follows in another order because of it.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{1680}'
        | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}'
        | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' | '\u{2800}' | '\u{3000}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(words: &[&str]) -> Words {
        Words::Argv(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn words_are_shown_as_a_shell_would_take_them() {
        assert_eq!(argv(&["ls", "-la", "a/b.txt"]).shown(), "$ ls -la a/b.txt");
        assert_eq!(
            argv(&["echo", "a b", "$HOME", ""]).shown(),
            "$ echo 'a b' '$HOME' ''"
        );
        assert_eq!(argv(&["it's"]).shown(), r"$ 'it'\''s'");
    }

    #[test]
    fn what_would_not_be_seen_is_shown_by_its_sign_or_number() {
        let line = |text: &str| Words::Line(text.into()).shown();
        assert_eq!(line("a\nrm b"), "$ a␊\n> rm b");
        assert_eq!(line("a\r\u{1b}[2K\tb"), "$ a␍␛[2K␉b");
        assert_eq!(
            line("a\u{202e}b\u{200b}c\u{a0}d"),
            r"$ a\u{202e}b\u{200b}c\u{a0}d"
        );
        assert_eq!(line("größe €"), "$ größe €");
    }

    #[test]
    fn a_short_form_is_one_line() {
        let short = Words::Line(format!("a\nb {}", "x".repeat(500))).short();
        assert!(
            short.starts_with("$ a␊b xxx") && short.ends_with("x…"),
            "{short}"
        );
        assert_eq!(short.chars().count(), SHORT_CHARACTERS + 1);
    }
}
