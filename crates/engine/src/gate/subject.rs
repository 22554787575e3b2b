//! The text that stands for a call's arguments, where rules and people look at them, and which patterns fit it.
//!
//! A pattern that allows must not fit what a person would not expect of it. So in a line for the shell a wildcard stands for
//! nothing that begins another command, a path that goes up and a command in another folder fit only their very text, and in
//! JSON a wildcard stays inside of its string. A pattern that narrows is taken wider: it is tried on every spelling of a path,
//! on each command of a line, and on all the arguments.
//!
//! A grant comes from a pattern that lango offered, so it covers less than a rule: of commands the exact one, or the
//! listed options of a [harmless](super::harmless) one; of calls that run a content, such as a script, that content.

use super::grant::{self, grant_problem};
use super::harmless;
use super::pattern::{fits, literal};
use lango_core::{Inspection, Subject, Text, ToolSpec};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What a rule sees of a call.
pub(crate) struct SubjectText {
    text: String,
    kind: Kind,
    /// The words of a command, where they are certain.
    words: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// All arguments, as JSON.
    Json,
    Path,
    /// A path or a command that no wildcard may stand for a part of.
    Odd,
    /// Words that no shell will read again.
    Words,
    /// A line that a shell will read.
    ShellLine,
    /// A host.
    Site,
}

/// Characters with which a shell line becomes more than one command, or writes somewhere.
const SHELL_CONTROL: [char; 11] = ['\n', '\r', ';', '&', '|', '`', '$', '(', ')', '<', '>'];

impl SubjectText {
    pub fn of(spec: &ToolSpec, arguments: &Value, inspection: &Inspection) -> Self {
        let (text, kind) = match spec.subject {
            Subject::Site => match &inspection.site {
                Some(site) => (site.host.to_string(), Kind::Site),
                None => (canonical(arguments), Kind::Json),
            },
            Subject::Arguments => (canonical(arguments), Kind::Json),
            Subject::Path => match arguments["path"].as_str().map(tidy_path) {
                Some(path) if goes_up(&path) => (path, Kind::Odd),
                Some(path) => (path, Kind::Path),
                None => (canonical(arguments), Kind::Json),
            },
            Subject::Command => command(arguments),
        };
        let words = match kind {
            Kind::ShellLine => harmless::plain_words(&text),
            Kind::Words => argv(arguments),
            Kind::Json | Kind::Path | Kind::Odd | Kind::Site => None,
        };
        Self { text, kind, words }
    }

    /// Whether a pattern that allows fits.
    pub fn is_allowed_by(&self, pattern: &str) -> bool {
        if let (Kind::ShellLine | Kind::Words, Some(command)) = (self.kind, harmless::form(pattern))
        {
            let words = self.words.as_deref();
            return words.is_some_and(|words| harmless::is_harmless(command, words));
        }
        match self.kind {
            Kind::Json if pattern == "*" => true,
            Kind::Json => fits(pattern, &self.text, |letter| letter != '"'),
            Kind::Odd => fits(pattern, &self.text, |_| false),
            Kind::ShellLine => fits(pattern, &self.text, |letter| {
                !SHELL_CONTROL.contains(&letter)
            }),
            Kind::Path | Kind::Words | Kind::Site => fits(pattern, &self.text, |_| true),
        }
    }

    /// Whether a grant with this pattern covers the call, which would run this content.
    pub fn is_granted_by(&self, subject: Subject, pattern: &str, content: Option<&Text>) -> bool {
        let Some(pattern) = grant::unbound(pattern, content) else {
            return false;
        };
        grant_problem(subject, pattern).is_none() && self.is_allowed_by(pattern)
    }

    /// Whether a pattern that narrows fits: one of the spellings of the text, one command of the line, or the arguments as
    /// a whole. `folder` is what relative paths are relative to.
    pub fn is_narrowed_by(&self, pattern: &str, arguments: &Value, folder: &str) -> bool {
        // Narrowing, `git log …` stands for every `git log`.
        let wide = harmless::form(pattern).map(|command| format!("{command} *"));
        let pattern = wide.as_deref().unwrap_or(pattern);
        let any = |text: &str| fits(pattern, text, |_| true);
        let holds_all_below = |path: &str| {
            let below = pattern.strip_suffix("/*");
            below.is_some_and(|below| fits(below, path, |_| true))
        };
        if any(&self.text) || any(&canonical(arguments)) {
            return true;
        }
        if self.kind == Kind::Site {
            // A host is denied on all of its ports, and `*.example.com` with its parent.
            let host = self
                .text
                .rsplit_once(':')
                .map_or(&*self.text, |(host, _)| host);
            return any(host) || any(&format!(".{host}"));
        }
        match arguments["path"].as_str() {
            Some(path) => spellings(path, folder)
                .iter()
                .any(|path| any(path) || holds_all_below(path)),
            None => commands_in(&self.text).iter().any(|command| any(command)),
        }
    }

    /// The pattern that is offered for an answer which shall hold for longer.
    pub fn offered_pattern(&self, content: Option<&Text>) -> String {
        let exactly = || literal(&self.text);
        let pattern = match self.kind {
            Kind::Json | Kind::Odd | Kind::Site => exactly(),
            Kind::Path => match self.text.rsplit_once('/') {
                Some((folder, _)) if !folder.is_empty() => format!("{}/*", literal(folder)),
                _ => exactly(),
            },
            Kind::ShellLine | Kind::Words => {
                let words = self.words.as_deref();
                words.and_then(harmless::offered).unwrap_or_else(exactly)
            }
        };
        grant::bound(pattern, content)
    }
}

/// The words of `argv`, if all of them are text.
fn argv(arguments: &Value) -> Option<Vec<String>> {
    let words = arguments["argv"].as_array()?.iter();
    words.map(|word| word.as_str().map(str::to_owned)).collect()
}

/// A command and where it runs. In another folder the same words can mean another program.
fn command(arguments: &Value) -> (String, Kind) {
    let (text, kind) = match (&arguments["command"], &arguments["argv"]) {
        (Value::String(line), Value::Null) => (line.clone(), Kind::ShellLine),
        (Value::Null, Value::Array(words)) => {
            let words = words.iter().map(|word| word.as_str().unwrap_or_default());
            (words.map(quoted).collect::<Vec<_>>().join(" "), Kind::Words)
        }
        _ => return (canonical(arguments), Kind::Json),
    };
    match arguments["cwd"].as_str() {
        None | Some("" | ".") => (text, kind),
        Some(folder) => (format!("{text} (in {})", quoted(folder)), Kind::Odd),
    }
}

/// Every command that a line may hold, with its white space folded, and again without the words that may stand before it.
fn commands_in(line: &str) -> Vec<String> {
    const BEFORE: [&str; 16] = [
        "{", "!", "if", "then", "elif", "else", "while", "until", "do", "time", "exec", "nohup",
        "command", "builtin", "env", "sudo",
    ];
    let parts = line
        .split(SHELL_CONTROL)
        .flat_map(|part| part.split(['\'', '"']));
    let mut commands = Vec::new();
    for part in parts {
        let words: Vec<&str> = part.split_whitespace().collect();
        let is_before = |word: &str| BEFORE.contains(&word) || word.contains('=');
        let first = words.iter().position(|word| !is_before(word));
        commands.push(words.join(" "));
        commands.extend(first.map(|first| words[first..].join(" ")));
    }
    commands
}

/// The ways a path can be written: as it is, without what goes up, and relative to the folder.
fn spellings(path: &str, folder: &str) -> Vec<String> {
    let tidy = tidy_path(path);
    let folded = folded(&tidy);
    let relative = |path: &str| {
        let inside = path.strip_prefix(folder.trim_end_matches('/'))?;
        Some(tidy_path(inside.strip_prefix('/')?))
    };
    let inside = [relative(&tidy), relative(&folded)];
    let mut all: Vec<String> = inside.into_iter().flatten().collect();
    all.extend([tidy, folded]);
    all
}

/// A path in which `..` has taken what stood before it.
fn folded(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            ".." if parts
                .last()
                .is_some_and(|last| *last != ".." && !last.is_empty()) =>
            {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
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
        SubjectText::of(&spec, &arguments, &Inspection::default())
    }

    fn line(text: &str) -> SubjectText {
        subject(Subject::Command, json!({ "command": text }))
    }

    fn path(text: &str) -> SubjectText {
        subject(Subject::Path, json!({ "path": text }))
    }

    fn narrowed(kind: Subject, arguments: Value, pattern: &str) -> bool {
        subject(kind, arguments.clone()).is_narrowed_by(pattern, &arguments, "/home/ada/work")
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
    fn a_command_in_another_folder_is_another_command() {
        let elsewhere = subject(
            Subject::Command,
            json!({ "command": "./build.sh", "cwd": "downloads" }),
        );
        assert!(!elsewhere.is_allowed_by("./build.sh *") && !elsewhere.is_allowed_by("*"));
        assert!(elsewhere.is_allowed_by(&elsewhere.offered_pattern(None)));
    }

    #[test]
    fn a_pattern_that_denies_is_tried_on_each_command_however_it_is_written() {
        for command in [
            "true && rm -rf x",
            "rm\t-rf x",
            "{ rm -rf x; }",
            "if true; then rm -rf x; fi",
            "! rm -rf x",
            "x=1 rm -rf x",
            "for f in *; do rm -rf x; done",
            "sh -c 'rm -rf x'",
        ] {
            let arguments = json!({ "command": command });
            assert!(
                narrowed(Subject::Command, arguments.clone(), "rm *"),
                "{command}"
            );
            assert!(!narrowed(Subject::Command, arguments, "mv *"), "{command}");
        }
        let argv = json!({ "argv": ["sh", "-c", "true; rm x"] });
        assert!(narrowed(Subject::Command, argv, "rm *"));
    }

    #[test]
    fn a_pattern_that_denies_is_tried_on_every_spelling_of_a_path() {
        for path in [
            "secrets/key",
            "./secrets//key",
            "x/../secrets/key",
            "/home/ada/work/secrets/key",
            "/home/ada/work/x/../secrets/key",
            "secrets",
            "secrets/",
        ] {
            let arguments = json!({ "path": path });
            assert!(narrowed(Subject::Path, arguments, "secrets/*"), "{path}");
        }
        assert!(!narrowed(
            Subject::Path,
            json!({ "path": "secretsx" }),
            "secrets/*"
        ));
        let content = json!({ "path": "a", "content": "password" });
        assert!(narrowed(Subject::Path, content, "*password*"));
    }

    #[test]
    fn a_path_that_goes_up_is_allowed_by_no_wildcard() {
        assert!(path("./notes//a.md").is_allowed_by("notes/*"));
        assert!(!path("notes/../secret").is_allowed_by("notes/*"));
        assert!(!path("notes/../secret").is_allowed_by("*"));
    }

    #[test]
    fn in_json_a_wildcard_stays_inside_of_its_string() {
        let arguments = json!({ "file": "docs/a", "script": "evil.sh" });
        let subject = subject(Subject::Arguments, arguments);
        assert!(!subject.is_allowed_by(r#"{"file":"docs/*"}"#));
        assert!(subject.is_allowed_by(r#"{"file":"docs/*","script":"*"}"#));
        assert!(subject.is_allowed_by("*"));
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
        for (command, offered) in [
            ("git log --oneline -3", "git log …"),
            ("git log --output=Makefile", "git log --output=Makefile"),
            ("git log …", r"git log \…"),
            ("echo ...", r"echo \..."),
            ("cargo check", "cargo check"),
            ("git -C x log", "git -C x log"),
            ("npm run build", "npm run build"),
            ("ls -la", "ls …"),
            ("rm build", "rm build"),
            ("rm *", r"rm \*"),
            ("python3 -c 'x'", "python3 -c 'x'"),
            ("timeout 5 rm -rf x", "timeout 5 rm -rf x"),
            ("ls | wc", "ls | wc"),
            ("FOO=1 make *", r"FOO=1 make \*"),
        ] {
            assert_eq!(line(command).offered_pattern(None), offered);
        }
        assert_eq!(path("notes/a.md").offered_pattern(None), "notes/*");
        assert_eq!(path("a.md").offered_pattern(None), "a.md");
        assert_eq!(path("/data").offered_pattern(None), "/data");
        let plain = subject(Subject::Arguments, json!({ "b": "*", "a": 1 }));
        assert_eq!(plain.offered_pattern(None), r#"{"a":1,"b":"\*"}"#);
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let text = r#"{"b":{"d":1,"c":[{"z":1,"y":2}]},"a":2}"#;
        let one = serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(
            canonical(&one),
            r#"{"a":2,"b":{"c":[{"y":2,"z":1}],"d":1}}"#
        );
    }
}
