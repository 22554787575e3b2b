//! The table of rules: which words call for which tool, and where its arguments come from. One row a rule.

use super::words::{has_phrase, words};
use serde_json::{Value, json};

/// Words that call for a tool.
pub(super) struct Rule {
    pub tool: &'static str,
    /// Any of these phrases calls for it.
    phrases: &'static [&'static str],
    /// Reads the arguments out of the request; none if they are not there.
    arguments: fn(&str) -> Option<Value>,
}

/// The first row that fits and whose tool is offered wins.
const RULES: &[Rule] = &[
    Rule {
        tool: "exec",
        phrases: &["run", "execute"],
        arguments: |text| Some(json!({ "command": between(text, '`')? })),
    },
    Rule {
        tool: "fs_write",
        phrases: &["create", "write"],
        arguments: |text| {
            let (before, content) = with_the_words(text)?;
            Some(json!({ "path": path(before)?, "content": content }))
        },
    },
    Rule {
        tool: "fs_mkdir",
        phrases: &[
            "create the folder",
            "create a folder",
            "make a folder",
            "make the folder",
        ],
        arguments: |text| Some(json!({ "path": path(text)? })),
    },
    Rule {
        tool: "fs_delete",
        phrases: &["delete", "remove"],
        arguments: |text| {
            let named = || after(text, &["delete", "remove"]).map(str::to_owned);
            Some(json!({ "path": path(text).or_else(named)? }))
        },
    },
    Rule {
        tool: "fs_search",
        phrases: &["search for", "search"],
        arguments: |text| Some(json!({ "pattern": wanted(text)?, "literal": true })),
    },
    Rule {
        tool: "fs_stat",
        phrases: &[
            "how big",
            "how large",
            "size",
            "when was",
            "modified",
            "changed",
            "kind of file",
        ],
        arguments: |text| Some(json!({ "path": path(text)? })),
    },
    Rule {
        tool: "fs_read",
        phrases: &[
            "read",
            "show",
            "print",
            "open",
            "content",
            "what does",
            "what is in",
            "what's in",
            "say",
        ],
        arguments: |text| Some(json!({ "path": file(text)? })),
    },
    Rule {
        tool: "fs_list",
        phrases: &[
            "list",
            "file",
            "folder",
            "directory",
            "what is in",
            "what's in",
            "what is here",
            "show",
        ],
        arguments: |text| Some(json!({ "path": path(text).unwrap_or_else(|| ".".to_owned()) })),
    },
];

/// The rule for a request, among the tools that are offered, with its arguments.
pub(super) fn find(text: &str, offers: impl Fn(&str) -> bool) -> Option<(&'static Rule, Value)> {
    let heard = words(text);
    let fitting = RULES.iter().filter(|rule| offers(rule.tool));
    let mut fitting =
        fitting.filter(|rule| rule.phrases.iter().any(|phrase| has_phrase(&heard, phrase)));
    fitting.find_map(|rule| Some((rule, (rule.arguments)(text)?)))
}

/// Something that looks like a file: quoted, or with an extension.
fn file(text: &str) -> Option<String> {
    let with_extension = || {
        tokens(text)
            .find(|token| has_extension(token))
            .map(str::to_owned)
    };
    quoted(text)
        .or_else(with_extension)
        .or_else(|| after_verb(text))
}

/// The one word after "read", "print" or "show", such as README.
fn after_verb(text: &str) -> Option<String> {
    let words: Vec<&str> = tokens(text).collect();
    let verb = words
        .iter()
        .position(|word| ["read", "print", "show"].contains(&word.to_lowercase().as_str()))?;
    let rest: Vec<&&str> = words[verb + 1..]
        .iter()
        .filter(|word| !["me", "the", "file"].contains(&word.to_lowercase().as_str()))
        .collect();
    match rest.as_slice() {
        [name] if name.chars().any(char::is_uppercase) => Some((**name).to_owned()),
        _ => None,
    }
}

/// Something that looks like a path: a file, a token with a slash, or the word after "in" or "folder".
fn path(text: &str) -> Option<String> {
    let with_slash = || {
        tokens(text)
            .find(|token| token.contains('/'))
            .map(str::to_owned)
    };
    file(text)
        .or_else(with_slash)
        .or_else(|| named_folder(text))
}

/// The only word after one of these.
fn after<'a>(text: &'a str, verbs: &[&str]) -> Option<&'a str> {
    let words: Vec<&str> = tokens(text).collect();
    let verb = words
        .iter()
        .position(|word| verbs.contains(&word.to_lowercase().as_str()))?;
    let rest = words[verb + 1..].iter();
    let mut rest =
        rest.filter(|word| !["the", "file", "folder"].contains(&word.to_lowercase().as_str()));
    match (rest.next(), rest.next()) {
        (Some(name), None) => Some(name),
        _ => None,
    }
}

fn quoted(text: &str) -> Option<String> {
    ['`', '"', '\'']
        .into_iter()
        .find_map(|mark| between(text, mark))
}

fn between(text: &str, mark: char) -> Option<String> {
    let (_, rest) = text.split_once(mark)?;
    let (inside, _) = rest.split_once(mark)?;
    (!inside.is_empty()).then(|| inside.to_owned())
}

/// What comes before "with the words", and the words, which end a line.
fn with_the_words(text: &str) -> Option<(&str, String)> {
    const MARKS: [&str; 6] = [
        " with the words ",
        " with the word ",
        " with the text ",
        " with the content ",
        " containing ",
        " saying ",
    ];
    let (before, words) = MARKS.iter().find_map(|mark| text.split_once(mark))?;
    let words = words.trim();
    let words = quoted(words)
        .filter(|inside| inside.len() + 2 == words.len())
        .unwrap_or_else(|| words.to_owned());
    (!words.is_empty()).then(|| (before, format!("{words}\n")))
}

/// What to search for: quoted, or all that follows.
fn wanted(text: &str) -> Option<String> {
    let start = text.to_lowercase().find("search")?;
    let rest = text.get(start + "search".len()..)?.trim();
    let rest = rest.strip_prefix("for ").unwrap_or(rest).trim();
    let rest = rest.trim_end_matches(['?', '!', '.']);
    quoted(text).or_else(|| (!rest.is_empty()).then(|| rest.to_owned()))
}

fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().map(|token| {
        token
            .trim_matches([',', '?', '!', ';', ':', '(', ')'])
            .trim_end_matches('.')
    })
}

fn has_extension(token: &str) -> bool {
    let name = token.rsplit('/').next().unwrap_or(token);
    name.rsplit_once('.').is_some_and(|(_, extension)| {
        !extension.is_empty()
            && extension.len() <= 8
            && extension.chars().all(char::is_alphanumeric)
    })
}

fn named_folder(text: &str) -> Option<String> {
    const NOT_NAMES: [&str; 13] = [
        "this",
        "the",
        "here",
        "a",
        "my",
        "your",
        "it",
        "that",
        "there",
        "folder",
        "directory",
        "our",
        "which",
    ];
    let tokens: Vec<&str> = tokens(text).collect();
    let after = |word: &str| {
        tokens
            .iter()
            .position(|token| token.eq_ignore_ascii_case(word))
            .map(|at| at + 1)
    };
    ["in", "inside", "folder", "directory", "under"]
        .into_iter()
        .find_map(|word| {
            let mut rest = tokens.get(after(word)?..)?.iter();
            let name = rest.find(|token| {
                !["the", "folder", "directory"].contains(&token.to_lowercase().as_str())
            })?;
            let plain = !name.is_empty() && !NOT_NAMES.contains(&name.to_lowercase().as_str());
            plain.then(|| (*name).to_owned())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<String> {
        find(text, |_| true).map(|(rule, arguments)| {
            let shown = ["path", "command", "pattern"]
                .iter()
                .find_map(|name| arguments[name].as_str());
            let content = arguments["content"].as_str().unwrap_or_default();
            format!("{} {}{content:?}", rule.tool, shown.unwrap()).replace("\"\"", "")
        })
    }

    #[test]
    fn requests_call_for_their_tool_and_arguments() {
        assert_eq!(found("what files are here?").as_deref(), Some("fs_list ."));
        assert_eq!(found("list the folder src").as_deref(), Some("fs_list src"));
        assert_eq!(
            found("what is in crates/core/").as_deref(),
            Some("fs_list crates/core/")
        );
        assert_eq!(
            found("please read README.md.").as_deref(),
            Some("fs_read README.md")
        );
        assert_eq!(
            found("show me `odd name`").as_deref(),
            Some("fs_read odd name")
        );
        assert_eq!(
            found("how big is Cargo.toml?").as_deref(),
            Some("fs_stat Cargo.toml")
        );
        assert_eq!(found("read README").as_deref(), Some("fs_read README"));
        assert_eq!(found("sing a song"), None);
        assert_eq!(
            found("run `git log; git status`").as_deref(),
            Some("exec git log; git status")
        );
        assert_eq!(
            found("create notes/a.md with the word hi").as_deref(),
            Some("fs_write notes/a.md\"hi\\n\"")
        );
        assert_eq!(
            found("create todo.txt with the words \"milk and bread\"").as_deref(),
            Some("fs_write todo.txt\"milk and bread\\n\"")
        );
        assert_eq!(
            found("delete notes/a.md").as_deref(),
            Some("fs_delete notes/a.md")
        );
        assert_eq!(found("search for TODO").as_deref(), Some("fs_search TODO"));
        assert_eq!(
            found("make a folder called `x y`").as_deref(),
            Some("fs_mkdir x y")
        );
        assert_eq!(found("run away"), None);
    }

    #[test]
    fn only_offered_tools_are_called() {
        assert!(
            find("read a.txt", |tool| tool == "fs_list")
                .is_none_or(|(rule, _)| rule.tool == "fs_list")
        );
        assert!(find("read a.txt", |_| false).is_none());
    }
}
