//! The subject of a call: the text that rules match and users see instead of the raw arguments.
//!
//! A pattern that allows must not match more than a user would expect. So in a shell line, a wildcard does not match
//! characters that start another command. A path with `..` and a command in another folder match only literally. In
//! JSON, a wildcard stays inside its string. A pattern that asks or denies matches more widely: it is tried on every
//! spelling of a path, on every path that links lead to, on each command of a line, and on all arguments.
//!
//! A grant comes from a pattern that lango offered, so it covers less than a rule: see [`grant`](super::grant).

use super::grant::{self, grant_problem};
use super::harmless;
use super::pattern::{fits, literal};
use lango_core::{Inspection, PathResolution, RuleSubject, Text};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The subject of a call.
pub(crate) struct SubjectText {
    text: String,
    kind: Kind,
    /// The words of a command, if they are unambiguous.
    words: Option<Vec<String>>,
    /// Where the path leads, if its text does not tell.
    resolution: Option<PathResolution>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// All arguments, as JSON.
    Json,
    Path,
    /// A path or a command that wildcards must not match.
    LiteralOnly,
    /// Words that are passed to the program without a shell.
    Words,
    /// A line that a shell interprets.
    ShellLine,
    Site,
}

/// Characters that can start another command in a shell line, or redirect its output.
const SHELL_CONTROL: [char; 11] = ['\n', '\r', ';', '&', '|', '`', '$', '(', ')', '<', '>'];

impl SubjectText {
    pub(crate) fn of(subject: RuleSubject, arguments: &Value, inspection: &Inspection) -> Self {
        let (text, kind) = match subject {
            RuleSubject::Site => match &inspection.site {
                Some(site) => (site.host.to_string(), Kind::Site),
                None => (canonical(arguments), Kind::Json),
            },
            RuleSubject::Arguments => (canonical(arguments), Kind::Json),
            RuleSubject::Path => match arguments["path"].as_str().map(normalize_path) {
                Some(path) if has_parent_part(&path) => (path, Kind::LiteralOnly),
                Some(path) => (path, Kind::Path),
                None => (canonical(arguments), Kind::Json),
            },
            RuleSubject::Command => command(arguments),
        };
        let words = match kind {
            Kind::ShellLine => harmless::plain_words(&text),
            Kind::Words => argv(arguments),
            Kind::Json | Kind::Path | Kind::LiteralOnly | Kind::Site => None,
        };
        Self {
            text,
            kind,
            words,
            resolution: inspection.path.clone(),
        }
    }

    /// Whether the path passes through symbolic links.
    pub(crate) fn follows_links(&self) -> bool {
        let resolution = self.resolution.as_ref();
        resolution.is_some_and(|resolution| !resolution.links.is_empty())
    }

    /// Whether a pattern that allows matches the text and, behind links, also the path that they lead to.
    pub(crate) fn is_allowed_by(&self, pattern: &str) -> bool {
        let fits_target =
            |path: &PathResolution| path.links.is_empty() || fits(pattern, &path.target, |_| true);
        self.is_text_allowed_by(pattern) && self.resolution.as_ref().is_none_or(fits_target)
    }

    fn is_text_allowed_by(&self, pattern: &str) -> bool {
        if let (Kind::ShellLine | Kind::Words, Some(command)) =
            (self.kind, harmless::marked_command(pattern))
        {
            let words = self.words.as_deref();
            return words.is_some_and(|words| harmless::is_harmless(command, words));
        }
        match self.kind {
            Kind::Json if pattern == "*" => true,
            Kind::Json => fits(pattern, &self.text, |letter| letter != '"'),
            Kind::LiteralOnly => fits(pattern, &self.text, |_| false),
            Kind::ShellLine => fits(pattern, &self.text, |letter| {
                !SHELL_CONTROL.contains(&letter)
            }),
            Kind::Path | Kind::Words | Kind::Site => fits(pattern, &self.text, |_| true),
        }
    }

    /// Whether a grant with this pattern covers the call, which would run `content`.
    pub(crate) fn is_granted_by(
        &self,
        subject: RuleSubject,
        pattern: &str,
        content: Option<&Text>,
    ) -> bool {
        let Some(pattern) = grant::unbound(pattern, content) else {
            return false;
        };
        grant_problem(subject, pattern).is_none() && self.is_allowed_by(pattern)
    }

    /// Whether a pattern that asks or denies matches a spelling of the text, a command of the line, or the arguments as
    /// a whole. Relative paths are relative to `folder`.
    pub(crate) fn is_narrowed_by(&self, pattern: &str, arguments: &Value, folder: &str) -> bool {
        // Here, `git log …` matches every `git log`.
        let wide = harmless::marked_command(pattern).map(|command| format!("{command} *"));
        let pattern = wide.as_deref().unwrap_or(pattern);
        let any = |text: &str| fits(pattern, text, |_| true);
        let covers_all_below = |path: &str| {
            let below = pattern.strip_suffix("/*");
            below.is_some_and(|below| fits(below, path, |_| true))
        };
        if any(&self.text) || any(&canonical(arguments)) {
            return true;
        }
        if self.kind == Kind::Site {
            // Denying a host covers all of its ports, and denying `*.example.com` covers `example.com`, too.
            let host = self
                .text
                .rsplit_once(':')
                .map_or(&*self.text, |(host, _)| host);
            return any(host) || any(&format!(".{host}"));
        }
        match arguments["path"].as_str() {
            Some(path) => {
                let resolution = self.resolution.iter();
                let resolved = resolution.flat_map(|path| path.links.iter().chain([&path.target]));
                let mut paths = std::iter::once(path).chain(resolved.map(|path| &**path));
                paths.any(|path| {
                    let mut spellings = spellings(path, folder).into_iter();
                    spellings.any(|path| any(&path) || covers_all_below(&path))
                })
            }
            None => commands_in(&self.text).iter().any(|command| any(command)),
        }
    }

    /// Returns the pattern to offer if the user wants an answer to cover later calls too.
    pub(crate) fn offered_pattern(&self, content: Option<&Text>) -> String {
        let exactly = || literal(&self.text);
        let pattern = match self.kind {
            Kind::Json | Kind::LiteralOnly | Kind::Site => exactly(),
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

    /// Returns the pattern that matches only this text.
    pub(crate) fn exact_pattern(&self, content: Option<&Text>) -> String {
        grant::bound(literal(&self.text), content)
    }
}

/// Returns the words of `argv`, if all of them are strings.
fn argv(arguments: &Value) -> Option<Vec<String>> {
    let words = arguments["argv"].as_array()?.iter();
    words.map(|word| word.as_str().map(str::to_owned)).collect()
}

/// Returns the text of a command and how patterns match it. A command in another folder matches only literally, because
/// the same words can run another program there. So does one that ends like the text of such a command: with its own
/// folder at the end, it cannot be taken for the other one.
fn command(arguments: &Value) -> (String, Kind) {
    let (text, kind) = match (&arguments["command"], &arguments["argv"]) {
        (Value::String(line), Value::Null) => (line.clone(), Kind::ShellLine),
        (Value::Null, Value::Array(words)) => {
            let words = words.iter().map(|word| word.as_str().unwrap_or_default());
            (words.map(quoted).collect::<Vec<_>>().join(" "), Kind::Words)
        }
        _ => return (canonical(arguments), Kind::Json),
    };
    let folder = match arguments["cwd"].as_str() {
        None | Some("" | ".") if text.ends_with(')') && text.contains(" (in ") => ".",
        None | Some("" | ".") => return (text, kind),
        Some(folder) => folder,
    };
    (format!("{text} (in {})", quoted(folder)), Kind::LiteralOnly)
}

/// Returns every command that a shell line may contain, with normalized whitespace. Each also appears without words
/// that may precede a command, such as `sudo`.
fn commands_in(line: &str) -> Vec<String> {
    const PRECEDING: [&str; 16] = [
        "{", "!", "if", "then", "elif", "else", "while", "until", "do", "time", "exec", "nohup",
        "command", "builtin", "env", "sudo",
    ];
    let parts = line
        .split(SHELL_CONTROL)
        .flat_map(|part| part.split(['\'', '"']));
    let mut commands = Vec::new();
    for part in parts {
        let words: Vec<&str> = part.split_whitespace().collect();
        let may_precede = |word: &str| PRECEDING.contains(&word) || word.contains('=');
        let first = words.iter().position(|word| !may_precede(word));
        commands.push(words.join(" "));
        commands.extend(first.map(|first| words[first..].join(" ")));
    }
    commands
}

/// Returns the ways to write a path: as it is, with `..` resolved, and relative to the folder.
fn spellings(path: &str, folder: &str) -> Vec<String> {
    let tidy = normalize_path(path);
    let resolved = resolve_parents(&tidy);
    let relative = |path: &str| {
        let inside = path.strip_prefix(folder.trim_end_matches('/'))?;
        Some(normalize_path(inside.strip_prefix('/')?))
    };
    let inside = [relative(&tidy), relative(&resolved)];
    let mut all: Vec<String> = inside.into_iter().flatten().collect();
    all.extend([tidy, resolved]);
    all
}

/// Resolves `..` in a path textually.
fn resolve_parents(path: &str) -> String {
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

/// Returns JSON with sorted keys, so that equal arguments have equal text.
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

/// Removes redundant parts of a path: `./notes//a` becomes `notes/a`.
fn normalize_path(path: &str) -> String {
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let tidy = parts.join("/");
    if path.starts_with('/') {
        format!("/{tidy}")
    } else if tidy.is_empty() {
        ".".to_owned()
    } else {
        tidy
    }
}

fn has_parent_part(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// Quotes a word for a shell, if necessary.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@%+,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''")).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn subject(subject: RuleSubject, arguments: Value) -> SubjectText {
        SubjectText::of(subject, &arguments, &Inspection::default())
    }

    fn line(text: &str) -> SubjectText {
        subject(RuleSubject::Command, json!({ "command": text }))
    }

    fn path(text: &str) -> SubjectText {
        subject(RuleSubject::Path, json!({ "path": text }))
    }

    fn narrowed(kind: RuleSubject, arguments: Value, pattern: &str) -> bool {
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
        let other_folder = subject(
            RuleSubject::Command,
            json!({ "command": "./build.sh", "cwd": "downloads" }),
        );
        assert!(!other_folder.is_allowed_by("./build.sh *") && !other_folder.is_allowed_by("*"));
        assert!(other_folder.is_allowed_by(&other_folder.offered_pattern(None)));
    }

    #[test]
    fn a_pattern_that_denies_is_tried_on_each_command_of_a_line() {
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
                narrowed(RuleSubject::Command, arguments.clone(), "rm *"),
                "{command}"
            );
            assert!(
                !narrowed(RuleSubject::Command, arguments, "mv *"),
                "{command}"
            );
        }
        let argv = json!({ "argv": ["sh", "-c", "true; rm x"] });
        assert!(narrowed(RuleSubject::Command, argv, "rm *"));
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
            assert!(
                narrowed(RuleSubject::Path, arguments, "secrets/*"),
                "{path}"
            );
        }
        assert!(!narrowed(
            RuleSubject::Path,
            json!({ "path": "secretsx" }),
            "secrets/*"
        ));
        let content = json!({ "path": "a", "content": "password" });
        assert!(narrowed(RuleSubject::Path, content, "*password*"));
    }

    #[test]
    fn no_wildcard_allows_a_path_with_parent_parts() {
        assert!(path("./notes//a.md").is_allowed_by("notes/*"));
        assert!(!path("notes/../secret").is_allowed_by("notes/*"));
        assert!(!path("notes/../secret").is_allowed_by("*"));
    }

    #[test]
    fn in_json_a_wildcard_stays_inside_its_string() {
        let arguments = json!({ "file": "docs/a", "script": "evil.sh" });
        let subject = subject(RuleSubject::Arguments, arguments);
        assert!(!subject.is_allowed_by(r#"{"file":"docs/*"}"#));
        assert!(subject.is_allowed_by(r#"{"file":"docs/*","script":"*"}"#));
        assert!(subject.is_allowed_by("*"));
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        let words = subject(
            RuleSubject::Command,
            json!({ "argv": ["echo", "a b", "it's", ""] }),
        );
        assert_eq!(words.text, r"echo 'a b' 'it'\''s' ''");
        assert!(words.is_allowed_by("echo *"));
    }

    #[test]
    fn the_offered_pattern_is_no_wider_than_a_user_would_expect() {
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
        let plain = subject(RuleSubject::Arguments, json!({ "b": "*", "a": 1 }));
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
