//! Explains mistakes on the command line for which the parser has no good message: commands that do not exist, and a
//! program without `--` before it.

use super::command;
use super::prompt::{as_run, parse};
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;

/// The shortest word that is suggested as the beginning of a command.
const MIN_PREFIX: usize = 3;

/// Returns the problem and the next step; `None` if the message of the parser is good enough.
pub fn explained(typed: &[OsString], error: &clap::Error) -> Option<String> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let words: Vec<&str> = typed
        .iter()
        .skip(1)
        .filter_map(|word| word.to_str())
        .collect();
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            unknown_command(typed, &words, context(ContextKind::InvalidSubcommand)?)
        }
        ErrorKind::UnknownArgument if words.starts_with(&["mcp", "add"]) => {
            program_without_dashes(&words, context(ContextKind::InvalidArg)?)
        }
        _ => None,
    }
}

fn unknown_command(typed: &[OsString], words: &[&str], unknown: &str) -> Option<String> {
    let root = command();
    let at = words.iter().position(|word| *word == unknown)?;
    let path: Vec<&Command> = words[..at]
        .iter()
        .scan(&root, |above, word| {
            let below = above.find_subcommand(word);
            *above = below.unwrap_or(above);
            Some(below)
        })
        .flatten()
        .collect();
    let Some(group) = path.last() else {
        return Some(unknown_top_command(typed, words, unknown));
    };
    let names: Vec<&str> = path.iter().map(|command| command.get_name()).collect();
    let names = names.join(" ");
    let known: Vec<&str> = group.get_subcommands().map(Command::get_name).collect();
    let hint = nearest(group, unknown)
        .map(|name| format!("; did you mean `lango {names} {name}`?"))
        .unwrap_or_default();
    let next = if known.is_empty() {
        format!("run `lango {names} --help`")
    } else {
        format!(
            "use one of {}; `lango {names} --help` explains them",
            known.join(", ")
        )
    };
    Some(format!(
        "there is no command `{names} {unknown}`{hint}\n  next: {next}"
    ))
}

/// Explains a first word that is no command. It may be the first word of a question.
fn unknown_top_command(typed: &[OsString], words: &[&str], unknown: &str) -> String {
    // Without quotation marks, a question is several words. A suggestion makes sense only if the rest fits it.
    let corrects = |name: &&str| {
        let corrected = typed.iter().map(|word| {
            if *word == *unknown {
                (*name).into()
            } else {
                word.clone()
            }
        });
        parse(corrected.collect()).is_ok() || words.last() == Some(&unknown)
    };
    let hint = nearest(&command(), unknown)
        .as_deref()
        .filter(corrects)
        .map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default();
    let run = match as_run(typed) {
        Some((words, _)) if words.len() > 1 => format!("lango \"{}\"", words.join(" ")),
        _ => format!("lango run {unknown}"),
    };
    format!(
        "there is no command `{unknown}`{hint}\n  next: run `lango --help` to list the commands, or `{run}` to send this to a model"
    )
}

/// Returns the command whose name was probably meant: one that starts with the word, or differs in one or two letters.
fn nearest(group: &Command, word: &str) -> Option<String> {
    let most = if word.len() > 4 { 2 } else { 1 };
    let names = group.get_subcommands().map(Command::get_name);
    let near = names.filter_map(|name| {
        let is_prefix = word.len() >= MIN_PREFIX && name.starts_with(word);
        let distance = if is_prefix {
            0
        } else {
            strsim::osa_distance(word, name)
        };
        (distance <= most).then_some((distance, name))
    });
    near.min().map(|(_, name)| name.to_owned())
}

/// Explains `lango mcp add NAME PROGRAM …`.
fn program_without_dashes(words: &[&str], argument: &str) -> Option<String> {
    let at = words.iter().position(|word| *word == argument)?;
    if argument.starts_with('-') {
        return None;
    }
    Some(format!(
        "the program and its arguments come after `--`\n  next: lango {} -- {}",
        words[..at].join(" "),
        words[at..].join(" ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::read;

    fn problem(words: &[&str]) -> Option<String> {
        let typed: Vec<OsString> = [&["lango"], words]
            .concat()
            .iter()
            .map(OsString::from)
            .collect();
        explained(&typed, &read(typed.clone()).unwrap_err())
    }

    #[test]
    fn only_near_names_are_suggested_for_an_unknown_command() {
        for (words, suggestion) in [
            (&["sesions", "list"][..], Some("`sessions`")),
            (&["sesions"], Some("`sessions`")),
            (&["conf", "show"], Some("`config`")),
            (&["help", "sesions"], Some("`sessions`")),
            (&["sessions", "lst"], Some("`lango sessions list`")),
            (&["help", "config", "shwo"], Some("`lango config show`")),
            (&["update"], None),
            (&["qqqqq"], None),
            (&["what", "files"], None),
            (&["config", "list"], None),
        ] {
            let text = problem(words).unwrap();
            let suggested = suggestion.map(|name| format!("; did you mean {name}?\n"));
            match suggested {
                Some(suggested) => assert!(text.contains(&suggested), "{text}"),
                None => assert!(!text.contains("did you mean"), "{text}"),
            }
        }
        assert_eq!(problem(&["--nothing"]), None);
    }

    #[test]
    fn words_that_are_no_command_can_be_sent_to_a_model() {
        let text = problem(&["what", "files"]).unwrap();
        assert!(text.contains("`lango \"what files\"`"), "{text}");
        // One word alone is taken for a command.
        let text = problem(&["qqqqq"]).unwrap();
        assert!(text.starts_with("there is no command `qqqqq`\n"), "{text}");
        assert!(text.contains("`lango run qqqqq`"), "{text}");
        let text = problem(&["config", "list"]).unwrap();
        assert!(text.contains("next: use one of show, "), "{text}");
    }

    #[test]
    fn a_program_of_an_mcp_server_comes_after_dashes() {
        let text = problem(&["mcp", "add", "greeter", "python3", "x.py"]).unwrap();
        assert!(
            text.ends_with("next: lango mcp add greeter -- python3 x.py"),
            "{text}"
        );
        assert_eq!(problem(&["mcp", "add", "greeter", "--nothing"]), None);
    }
}
