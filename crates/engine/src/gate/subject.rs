//! The text that stands for a call's arguments, where rules and people look at them, and which patterns fit it.
//!
//! A pattern that allows must never fit more than it seems to. So in a line for the shell a wildcard stands for nothing
//! that begins another command, and a path that goes up fits no pattern. A pattern that denies is taken wider: it is
//! tried on each command of a line, and on all the arguments.

use super::pattern::{fits, literal};
use lango_core::{Subject, ToolSpec};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What a rule sees of a call.
pub(crate) struct SubjectText {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Path,
    /// Words that no shell will read again.
    Words,
    /// A line that a shell will read.
    ShellLine,
}

/// Characters with which a shell line becomes more than one command, or writes somewhere.
const SHELL_CONTROL: [char; 11] = ['\n', '\r', ';', '&', '|', '`', '$', '(', ')', '<', '>'];

/// Programs that run whatever their arguments say: for those no pattern is offered, only the very command.
const INTERPRETERS: [&str; 19] = [
    "sh", "bash", "dash", "zsh", "fish", "env", "sudo", "su", "doas", "xargs", "find", "python",
    "perl", "ruby", "node", "deno", "php", "awk", "eval",
];

impl SubjectText {
    pub fn of(spec: &ToolSpec, arguments: &Value) -> Self {
        let plain = || (canonical(arguments), Kind::Plain);
        let (text, kind) = match spec.subject {
            Subject::Arguments => plain(),
            Subject::Path => match arguments["path"].as_str() {
                Some(path) => (tidy_path(path), Kind::Path),
                None => plain(),
            },
            Subject::Command => match (&arguments["command"], &arguments["argv"]) {
                (Value::String(line), Value::Null) => (line.clone(), Kind::ShellLine),
                (Value::Null, Value::Array(words)) => {
                    let words = words.iter().map(|word| word.as_str().unwrap_or_default());
                    (words.map(quoted).collect::<Vec<_>>().join(" "), Kind::Words)
                }
                _ => plain(),
            },
        };
        Self { text, kind }
    }

    /// Whether a pattern that allows fits.
    pub fn is_allowed_by(&self, pattern: &str) -> bool {
        match self.kind {
            Kind::Path if goes_up(&self.text) => false,
            Kind::ShellLine => fits(pattern, &self.text, |letter| {
                !SHELL_CONTROL.contains(&letter)
            }),
            Kind::Plain | Kind::Path | Kind::Words => fits(pattern, &self.text, |_| true),
        }
    }

    /// Whether a pattern that narrows fits: the text, one command of the line, or the arguments as a whole.
    pub fn is_narrowed_by(&self, pattern: &str, arguments: &Value) -> bool {
        let any = |text: &str| fits(pattern, text, |_| true);
        let commands = || self.text.split(SHELL_CONTROL).map(str::trim);
        any(&self.text)
            || self.kind == Kind::ShellLine && commands().any(any)
            || any(&canonical(arguments))
    }

    /// The pattern that is offered for an answer which shall hold for longer.
    pub fn offered_pattern(&self) -> String {
        let exactly = || literal(&self.text);
        match self.kind {
            Kind::Plain => exactly(),
            Kind::Path if goes_up(&self.text) => exactly(),
            Kind::Path => match self.text.rsplit_once('/') {
                Some((folder, _)) => format!("{}/*", literal(folder)),
                None => exactly(),
            },
            Kind::ShellLine if self.text.contains(SHELL_CONTROL) => exactly(),
            Kind::ShellLine | Kind::Words => self.command_pattern().unwrap_or_else(exactly),
        }
    }

    /// The program, and its sub-command if there seems to be one, with any arguments.
    fn command_pattern(&self) -> Option<String> {
        let mut words = self.text.split_whitespace();
        let program = words.next()?;
        let name = program.rsplit('/').next().unwrap_or(program);
        let is_word = |word: &&str| {
            word.chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "-_./".contains(letter))
        };
        let unversioned =
            name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        if INTERPRETERS.contains(&unversioned) || !is_word(&program) {
            return None;
        }
        let sub_command = words.next().filter(|word| {
            word.chars()
                .all(|letter| letter.is_ascii_lowercase() || letter == '-')
                && !word.starts_with('-')
        });
        Some(match sub_command {
            Some(sub_command) => format!("{program} {sub_command} *"),
            None => format!("{program} *"),
        })
    }
}

/// The text that stands for a call's arguments in rules and on the screen.
pub fn subject_of(spec: &ToolSpec, arguments: &Value) -> String {
    SubjectText::of(spec, arguments).text
}

/// JSON with sorted keys, so that the same arguments are the same text.
pub(crate) fn canonical(value: &Value) -> String {
    sorted(value).to_string()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<&String, Value> = fields
                .iter()
                .map(|(key, value)| (key, sorted(value)))
                .collect();
            fields
                .into_iter()
                .map(|(key, value)| (key.clone(), value))
                .collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// A path without what changes nothing: `./notes//a` is `notes/a`.
fn tidy_path(path: &str) -> String {
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let tidy = parts.join("/");
    match path.starts_with('/') {
        true => format!("/{tidy}"),
        false if tidy.is_empty() => ".".to_owned(),
        false => tidy,
    }
}

fn goes_up(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// A word as a shell would have to be given it.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@%+,".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn subject(subject: Subject, arguments: Value) -> SubjectText {
        let mut spec = lango_testkit::tool::spec("x");
        spec.subject = subject;
        SubjectText::of(&spec, &arguments)
    }

    fn line(text: &str) -> SubjectText {
        subject(Subject::Command, json!({ "command": text }))
    }

    fn path(text: &str) -> SubjectText {
        subject(Subject::Path, json!({ "path": text }))
    }

    #[test]
    fn a_pattern_for_a_command_never_allows_a_second_one() {
        assert!(line("git log -3").is_allowed_by("git *"));
        for more in [
            "git log; rm x",
            "git log && rm x",
            "git log | sh",
            "git log `rm x`",
            "git log $(rm x)",
            "git log $HOME",
            "git log > .bashrc",
            "git log\nrm x",
            "git log &",
        ] {
            assert!(!line(more).is_allowed_by("git *"), "{more}");
            assert!(line(more).is_allowed_by(&literal(more)), "{more}");
        }
    }

    #[test]
    fn a_pattern_that_denies_is_tried_on_each_command_and_on_all_arguments() {
        let arguments = json!({ "command": "true && rm -rf x" });
        let subject = subject(Subject::Command, arguments.clone());
        assert!(subject.is_narrowed_by("rm *", &arguments));
        assert!(subject.is_narrowed_by("*rm -rf*", &arguments));
        assert!(!subject.is_narrowed_by("mv *", &arguments));
    }

    #[test]
    fn a_path_that_goes_up_is_allowed_by_no_pattern() {
        assert!(path("./notes//a.md").is_allowed_by("notes/*"));
        assert!(!path("notes/../secret").is_allowed_by("notes/*"));
        assert!(!path("notes/../secret").is_allowed_by("*"));
    }

    #[test]
    fn words_are_shown_as_a_shell_would_need_them() {
        let words = subject(
            Subject::Command,
            json!({ "argv": ["echo", "a b", "it's", ""] }),
        );
        assert_eq!(words.text, r"echo 'a b' 'it'\''s' ''");
        assert!(words.is_allowed_by("echo *"));
    }

    #[test]
    fn the_offered_pattern_is_no_wider_than_a_person_would_guess() {
        assert_eq!(line("git log --oneline -3").offered_pattern(), "git log *");
        assert_eq!(line("ls -la").offered_pattern(), "ls *");
        assert_eq!(line("rm *").offered_pattern(), "rm *");
        assert_eq!(line("python3 -c 'x'").offered_pattern(), "python3 -c 'x'");
        assert_eq!(line("python3.11 x.py").offered_pattern(), "python3.11 x.py");
        assert_eq!(line("ls | wc").offered_pattern(), "ls | wc");
        assert_eq!(line("FOO=1 make *").offered_pattern(), r"FOO=1 make \*");
        assert_eq!(path("notes/a.md").offered_pattern(), "notes/*");
        assert_eq!(path("a.md").offered_pattern(), "a.md");
        let plain = subject(Subject::Arguments, json!({ "b": "*", "a": 1 }));
        assert_eq!(plain.offered_pattern(), r#"{"a":1,"b":"\*"}"#);
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let one =
            serde_json::from_str::<Value>(r#"{"b":{"d":1,"c":[{"z":1,"y":2}]},"a":2}"#).unwrap();
        assert_eq!(
            canonical(&one),
            r#"{"a":2,"b":{"c":[{"y":2,"z":1}],"d":1}}"#
        );
    }
}
