//! Parses the command line: a first argument with white space in it is a question, as if `run` came before it.

use super::{Arguments, Command, command};
use clap::FromArgMatches;
use std::ffi::OsString;

/// Parses the command line.
pub fn read(typed: Vec<OsString>) -> Result<Arguments, clap::Error> {
    parse(typed.clone()).or_else(|error| match as_run(&typed) {
        Some((words, arguments)) if words[0].contains(char::is_whitespace) => Ok(arguments),
        _ => Err(error),
    })
}

/// Parses the command line as the arguments of `lango run`. Returns the words of its question as well, at least one.
pub(super) fn as_run(typed: &[OsString]) -> Option<(Vec<String>, Arguments)> {
    let mut with_run = typed.to_vec();
    with_run.insert(1.min(typed.len()), "run".into());
    let arguments = parse(with_run).ok()?;
    let words = match &arguments.command {
        Some(Command::Run(run)) if !run.prompt.is_empty() => run.prompt.clone(),
        _ => return None,
    };
    Some((words, arguments))
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
