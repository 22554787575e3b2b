//! A command to run and its display form: the user sees exactly the command that runs.

use lango_core::PathResolution;
use lango_net::HostPattern;
use lango_sandbox::Policy;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum number of characters of a command's short form.
const SHORT_CHARACTERS: usize = 200;

/// A command with everything needed to run it.
#[derive(Debug, Clone)]
pub(crate) struct CommandRequest {
    pub(crate) command_line: CommandLine,
    /// The folder to run in, without links.
    pub(crate) cwd: PathBuf,
    /// Where the argument `cwd` leads, if its text does not tell.
    pub(crate) cwd_resolution: Option<PathResolution>,
    pub(crate) policy: Policy,
    /// The only hosts that the command may contact, if it has a proxy.
    pub(crate) hosts: Vec<HostPattern>,
    pub(crate) time: Duration,
}

/// The command line to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandLine {
    /// A line for a shell.
    Shell(String),
    /// A program and its arguments.
    Argv(Vec<String>),
}

impl CommandLine {
    /// Returns the program to start and its arguments.
    pub(crate) fn argv(&self) -> Vec<OsString> {
        match self {
            Self::Shell(line) => vec!["/bin/sh".into(), "-c".into(), line.into()],
            Self::Argv(argv) => argv.iter().map(Into::into).collect(),
        }
    }

    /// Formats the whole command in shell syntax, with invisible characters escaped.
    pub(crate) fn display(&self) -> String {
        let line = match self {
            Self::Shell(line) => line.clone(),
            Self::Argv(argv) => {
                let words: Vec<_> = argv.iter().map(|word| quoted(word)).collect();
                words.join(" ")
            }
        };
        format!("$ {}", visible(&line, "\n> "))
    }

    /// Formats the start of the command on one line.
    pub(crate) fn summary(&self) -> String {
        let shown = self.display().replace("\n> ", "");
        match shown.char_indices().nth(SHORT_CHARACTERS) {
            Some((end, _)) => format!("{}…", &shown[..end]),
            None => shown,
        }
    }
}

/// Quotes a word for a shell if necessary.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Makes every character visible: line breaks and control characters become symbols (`␊`, `␛`), zero-width characters
/// and changes of the writing direction become escapes. Adds `line_break` after each line break.
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
            c if is_invisible(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// Whether a character is invisible or changes the order in which the following text is displayed.
fn is_invisible(c: char) -> bool {
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

    fn argv(words: &[&str]) -> CommandLine {
        CommandLine::Argv(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn arguments_are_displayed_in_shell_syntax() {
        assert_eq!(
            argv(&["ls", "-la", "a/b.txt"]).display(),
            "$ ls -la a/b.txt"
        );
        assert_eq!(
            argv(&["echo", "a b", "$HOME", ""]).display(),
            "$ echo 'a b' '$HOME' ''"
        );
        assert_eq!(argv(&["it's"]).display(), r"$ 'it'\''s'");
    }

    #[test]
    fn invisible_characters_are_displayed_as_symbols_or_escapes() {
        let line = |text: &str| CommandLine::Shell(text.into()).display();
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
        let short = CommandLine::Shell(format!("a\nb {}", "x".repeat(500))).summary();
        assert!(
            short.starts_with("$ a␊b xxx") && short.ends_with("x…"),
            "{short}"
        );
        assert_eq!(short.chars().count(), SHORT_CHARACTERS + 1);
    }
}
