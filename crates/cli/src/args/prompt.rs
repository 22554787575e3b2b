//! Parses the command line: a first argument with white space in it is a question, as if `run` came before it.

use super::{Arguments, Command, command};
use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;

/// Parses the command line.
pub fn read(typed: Vec<OsString>) -> Result<Arguments, clap::Error> {
    parse(typed.clone()).or_else(|error| match as_run(&typed) {
        Some((words, arguments)) if words[0].contains(char::is_whitespace) => Ok(arguments),
        _ if is_question(&error) => Err(parse(with_run(&typed)).err().unwrap_or(error)),
        _ => as_list(&typed).ok_or(error),
    })
}

/// Whether the parser took a question for a command, which hides what is wrong with the flags before it.
fn is_question(error: &clap::Error) -> bool {
    error.kind() == ErrorKind::InvalidSubcommand
        && matches!(
            error.get(ContextKind::InvalidSubcommand),
            Some(ContextValue::String(word)) if word.contains(char::is_whitespace)
        )
}

/// Parses flags after a command that manages a list, such as `lango sessions --limit 4`, as those of its action `list`.
fn as_list(typed: &[OsString]) -> Option<Arguments> {
    let root = command();
    let at = typed.iter().skip(1).position(|word| {
        let group = word.to_str().and_then(|word| root.find_subcommand(word));
        group.is_some_and(|group| group.find_subcommand("list").is_some())
    })?;
    let mut with_list = typed.to_vec();
    with_list.insert(at + 2, "list".into());
    parse(with_list).ok()
}

/// Parses the command line as the arguments of `lango run`. Returns the words of its question as well, at least one.
pub(super) fn as_run(typed: &[OsString]) -> Option<(Vec<String>, Arguments)> {
    let arguments = parse(with_run(typed)).ok()?;
    let words = match &arguments.command {
        Some(Command::Run(run)) if !run.prompt.is_empty() => run.prompt.clone(),
        _ => return None,
    };
    Some((words, arguments))
}

fn with_run(typed: &[OsString]) -> Vec<OsString> {
    let mut with_run = typed.to_vec();
    with_run.insert(1.min(typed.len()), "run".into());
    with_run
}

pub(super) fn parse(typed: Vec<OsString>) -> Result<Arguments, clap::Error> {
    let mut command = command();
    let mut matches = command.try_get_matches_from_mut(typed)?;
    Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(words: &[&str]) -> Vec<OsString> {
        let lango = std::iter::once(&"lango");
        lango.chain(words).map(OsString::from).collect()
    }

    fn question(words: &[&str]) -> Option<Vec<String>> {
        match read(typed(words)).ok()?.command {
            Some(Command::Run(run)) => Some(run.prompt),
            _ => None,
        }
    }

    #[test]
    fn a_first_argument_with_white_space_is_a_question_with_the_flags_of_run() {
        let words = ["what is here?"];
        for before in [
            &[][..],
            &["--json"],
            &["-m", "a/b", "--quiet"],
            &["--attach", "a b.png"],
            &["--continue"],
            &["--"],
        ] {
            let found = question(&[before, &words].concat());
            assert_eq!(
                found.as_deref(),
                Some(&words.map(str::to_owned)[..]),
                "{before:?}"
            );
        }
        assert_eq!(question(&["a b", "c"]).unwrap(), ["a b", "c"]);
        assert_eq!(question(&["sessions list"]).unwrap(), ["sessions list"]);
    }

    #[test]
    fn a_wrong_value_before_a_question_is_reported_as_such() {
        for flag in ["--mode", "--log-format"] {
            let error = read(typed(&[flag, "foo", "hi there"])).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidValue, "{error}");
            let shown = error.to_string();
            assert!(shown.contains(flag) && shown.contains("foo"), "{shown}");
        }
    }

    #[test]
    fn flags_of_a_list_need_no_action() {
        let listed = |words: &[&str]| {
            let read = read(typed(words)).ok()?.command?;
            Some(format!("{read:?}"))
        };
        for (words, flags) in [
            (&["sessions", "--limit", "4"][..], &["--limit", "4"][..]),
            (&["-m", "a/b", "tokens", "--json"], &["--json"]),
            (&["memory", "--json"], &["--json"]),
        ] {
            let group = words.iter().position(|word| flags.contains(word)).unwrap() - 1;
            let full = [&words[..=group], &["list"], flags].concat();
            assert_eq!(listed(words), listed(&full), "{words:?}");
            assert!(listed(words).is_some(), "{words:?}");
        }
        assert!(listed(&["sessions", "--nothing"]).is_none());
        assert!(listed(&["sessions", "nothing"]).is_none());
    }

    #[test]
    fn other_words_are_not_a_question() {
        for words in [
            &["hello"][..],
            &["hello", "big world"],
            &["--json"],
            &["sessions"],
        ] {
            assert_eq!(question(words), None, "{words:?}");
        }
    }
}
