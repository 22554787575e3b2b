//! Commands that only read, with the options that keep them harmless. The list is data, in `harmless_commands.txt`.
//!
//! A pattern such as `git log …` covers all calls of `git log` with listed options. Each word of a call is checked
//! against the list: `git log --output=x` writes a file, and a wildcard could not distinguish it from `git log
//! --oneline`.

use std::sync::LazyLock;

/// The suffix of a pattern that covers the listed options: as offered, and as typed on a keyboard.
const MARKS: [&str; 2] = [" …", " ..."];

static COMMANDS: LazyLock<Vec<Command>> =
    LazyLock::new(|| parse(include_str!("harmless_commands.txt")));

#[derive(Debug, Default)]
struct Command {
    /// The program, followed by its subcommand if the subcommand decides what the program does.
    name: Vec<&'static str>,
    operands: Operands,
    flags: Vec<&'static str>,
    optional: Vec<&'static str>,
    valued: Vec<&'static str>,
    letters: &'static str,
    numbers: &'static str,
    has_count: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Operands {
    #[default]
    None,
    Any,
    /// Words that start with `+`.
    Format,
}

/// Returns the command of a pattern with the suffix: `git log` for `git log …`.
pub(super) fn marked_command(pattern: &str) -> Option<&str> {
    MARKS.iter().find_map(|mark| pattern.strip_suffix(mark))
}

/// Returns the pattern that covers all harmless calls of this command, if this call is harmless.
pub(super) fn offered(words: &[String]) -> Option<String> {
    let command = COMMANDS.iter().find(|command| command.fits(words))?;
    Some(format!("{}{}", command.name.join(" "), MARKS[0]))
}

/// Whether these words are a harmless call of the command `named`.
pub(super) fn is_harmless(named: &str, words: &[String]) -> bool {
    let mut commands = COMMANDS.iter();
    commands.any(|command| command.name.join(" ") == named && command.fits(words))
}

/// Returns the listed command that a text starts with: `git log` for `git log *`.
pub(super) fn listed_prefix(text: &str) -> Option<String> {
    let starts_with = |name: &str| {
        text.strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let names = COMMANDS.iter().map(|command| command.name.join(" "));
    names.into_iter().find(|name| starts_with(name))
}

/// Splits a shell line into words, if the line is plain enough for them to be unambiguous: no expansion, no control
/// character, and quotes only around whole words.
pub(super) fn plain_words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = line.trim_matches(' ');
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '\'' | '"' => {
                let (word, after) = rest[1..].split_once(first)?;
                let is_ambiguous =
                    |letter: char| letter.is_control() || first == '"' && "$`\\!".contains(letter);
                if word.contains(is_ambiguous) {
                    return None;
                }
                (word, after)
            }
            _ => {
                let end = rest.find(' ').unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                let is_plain = |letter: char| {
                    letter.is_ascii_alphanumeric() || "-_./:=@%+,^~".contains(letter)
                };
                if first == '~' || !word.chars().all(is_plain) {
                    return None;
                }
                (word, after)
            }
        };
        if !after.is_empty() && !after.starts_with(' ') {
            return None;
        }
        words.push(word.to_owned());
        rest = after.trim_start_matches(' ');
    }
    Some(words)
}

impl Command {
    fn fits(&self, words: &[String]) -> bool {
        let Some((name, given)) = words.split_at_checked(self.name.len()) else {
            return false;
        };
        let mut given = given.iter().map(String::as_str);
        let mut only_operands = false;
        if name != self.name {
            return false;
        }
        while let Some(word) = given.next() {
            let fits = if only_operands || !word.starts_with('-') || word == "-" {
                self.takes_operand(word)
            } else if word == "--" {
                only_operands = true;
                self.operands == Operands::Any
            } else {
                match self.match_option(word) {
                    OptionMatch::Whole => true,
                    // A word that looks like an option is not accepted as the value of another option.
                    OptionMatch::TextNext => {
                        given.next().is_some_and(|value| !value.starts_with('-'))
                    }
                    OptionMatch::NumberNext => given.next().is_some_and(is_number),
                    OptionMatch::NotListed => false,
                }
            };
            if !fits {
                return false;
            }
        }
        true
    }

    fn takes_operand(&self, word: &str) -> bool {
        match self.operands {
            Operands::None => false,
            Operands::Any => true,
            Operands::Format => word.starts_with('+'),
        }
    }

    fn match_option(&self, word: &str) -> OptionMatch {
        if self.flags.contains(&word) || self.optional.contains(&word) {
            return OptionMatch::Whole;
        }
        if self.valued.contains(&word) {
            return OptionMatch::TextNext;
        }
        if let Some((name, _)) = word.split_once('=')
            && name.starts_with("--")
        {
            let is_listed = self.valued.contains(&name) || self.optional.contains(&name);
            return if is_listed {
                OptionMatch::Whole
            } else {
                OptionMatch::NotListed
            };
        }
        let letters = word.strip_prefix('-').unwrap_or_default();
        if letters.starts_with('-') {
            return OptionMatch::NotListed;
        }
        let has_value = |option: &&str| option.len() == 2 && word.starts_with(*option);
        if self.valued.iter().any(has_value)
            || letters.chars().all(|letter| self.letters.contains(letter))
            || self.has_count && is_digits(letters)
        {
            return OptionMatch::Whole;
        }
        let mut rest = letters.chars();
        match rest.next() {
            Some(first) if self.numbers.contains(first) => match rest.as_str() {
                "" => OptionMatch::NumberNext,
                number if is_number(number) => OptionMatch::Whole,
                _ => OptionMatch::NotListed,
            },
            _ => OptionMatch::NotListed,
        }
    }
}

/// How a word matches the list of options.
enum OptionMatch {
    /// A listed option, including its value if it has one.
    Whole,
    /// A listed option whose value is the next word.
    TextNext,
    NumberNext,
    NotListed,
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the text is a number such as `5`, or `+5` as in `tail -n +5`.
fn is_number(text: &str) -> bool {
    is_digits(text.strip_prefix('+').unwrap_or(text))
}

/// Parses the list. Invalid lines are skipped, which only makes fewer commands harmless; a test detects them.
fn parse(text: &'static str) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    for line in text.lines() {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        if key == "command" {
            commands.push(Command {
                name: value.split(' ').collect(),
                ..Command::default()
            });
            continue;
        }
        let Some(command) = commands.last_mut() else {
            continue;
        };
        match (key, value) {
            ("operands", "any") => command.operands = Operands::Any,
            ("operands", "format") => command.operands = Operands::Format,
            ("letters", letters) => command.letters = letters,
            ("numbers", letters) => command.numbers = letters,
            ("count", "yes") => command.has_count = true,
            ("options", options) => {
                for option in options.split(' ') {
                    if let Some(option) = option.strip_suffix('=') {
                        command.valued.push(option);
                    } else if let Some(option) = option.strip_suffix('?') {
                        command.optional.push(option);
                    } else {
                        command.flags.push(option);
                    }
                }
            }
            _ => {}
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered_for(line: &str) -> Option<String> {
        offered(&plain_words(line)?)
    }

    #[test]
    fn every_line_of_the_list_is_parsed() {
        let known = [
            "command", "operands", "options", "letters", "numbers", "count",
        ];
        for line in include_str!("harmless_commands.txt").lines() {
            let key = line.split(' ').next().unwrap();
            assert!(
                line.is_empty() || line.starts_with('#') || known.contains(&key),
                "{line}"
            );
        }
        for command in COMMANDS.iter() {
            let options = command.flags.iter().chain(&command.valued);
            for option in options.chain(&command.optional) {
                assert!(option.starts_with('-') && option.len() > 1, "{option}");
            }
            assert!(command.name.len() <= 2, "{command:?}");
        }
    }

    #[test]
    fn commands_that_only_read_are_offered_with_their_listed_options() {
        for (line, pattern) in [
            ("git log", "git log …"),
            (
                "git log --oneline -3 -n 5 --since=yesterday -- src",
                "git log …",
            ),
            ("git diff --stat HEAD~3 src/main.rs", "git diff …"),
            ("git status -sb", "git status …"),
            ("git grep -n -e main", "git grep …"),
            ("ls -la src", "ls …"),
            ("tail -n +5 a.txt", "tail …"),
            ("grep -rn 'fn main' src", "grep …"),
            ("rg --glob '*.rs' -A3 \"a b\"", "rg …"),
            ("date +%F", "date …"),
            ("pwd", "pwd …"),
        ] {
            assert_eq!(offered_for(line).as_deref(), Some(pattern), "{line}");
        }
    }

    #[test]
    fn options_that_run_programs_or_write_files_are_not_harmless() {
        for line in [
            "git log --output=Makefile",
            "git log --outp=Makefile",
            "git log --output Makefile",
            "git log --ext-diff",
            "git log --textconv -p",
            "git -c alias.x=!sh x",
            "git -c core.pager=x log",
            "git --exec-path=x log",
            "git -p log",
            "git diff --output=x",
            "git diff --ext-diff",
            "git diff --no-index a b",
            "git grep -Osh x",
            "git grep -nOsh x",
            "git grep --open-files-in-pager=sh x",
            "git grep --open=sh x",
            "git branch new",
            "git tag v1",
            "git remote add x y",
            "git show --output=x",
            "git fetch",
            "git commit -m x",
            "rg --pre sh x",
            "rg --pre=sh x",
            "rg --hostname-bin=sh x",
            "rg -z x",
            "grep -f x y",
            "tree -o x",
            "tree -ao x",
            "tree -R -H x",
            "file -C -m x",
            "file -m x y",
            "file -z x",
            "date -s now",
            "date --set=now",
            "date -us now",
            "date 01010101",
            "diff -l a b",
            "diff --paginate a b",
            "find . -delete",
            "find . -exec rm x +",
            "find . -fprint x",
            "find . -name -exec",
            "find . -name x",
            "find -- . -delete",
            "tree -Io x FILE",
            "tail -f x",
            "du --files0-from=x",
            "wc --files0-from=x",
            "cargo check",
            "sort -o x y",
            "/bin/ls",
            "./ls",
        ] {
            assert_eq!(offered_for(line), None, "{line}");
        }
    }

    #[test]
    fn a_line_that_a_shell_would_expand_is_not_plain() {
        for line in [
            "git log; rm x",
            "git log | sh",
            "git log > x",
            "git log $(x)",
            "git log `x`",
            "git log \"$(x)\"",
            "git log $x",
            "git log *",
            "git log [a]",
            "git log {a,b}",
            "git log a\\ b",
            "git log\t--output=x",
            "git log\n--output=x",
            "git log '--output'=x",
            "git log 'a",
            "git log ~/x",
            "git log #x",
            "git log !x",
            "GIT_EXTERNAL_DIFF=x git diff",
            "'GIT_PAGER=x' git log",
            "git log 'a\nb'",
        ] {
            assert_eq!(offered_for(line), None, "{line}");
        }
        assert_eq!(offered_for("git log '--output=x'"), None);
        assert_eq!(offered_for("git log \"--outp=x\""), None);
    }
}
