//! Rules that run a command in the sandbox.

use super::Task;
use crate::offline::clause::{Clause, strip_any};
use crate::offline::extract::{certain_path, leading_quote, split_last};
use serde_json::json;

/// Programs with which a line of the shell often starts, and that are no request in English.
const PROGRAMS: &[&str] = &[
    "awk",
    "basename",
    "bash",
    "cal",
    "cargo",
    "cat",
    "cd",
    "chmod",
    "cmake",
    "cp",
    "curl",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "docker",
    "du",
    "echo",
    "env",
    "false",
    "free",
    "gcc",
    "git",
    "go",
    "grep",
    "hostname",
    "id",
    "java",
    "jq",
    "kill",
    "ls",
    "lscpu",
    "mkdir",
    "mv",
    "mvn",
    "node",
    "nproc",
    "npm",
    "npx",
    "pip",
    "pnpm",
    "ps",
    "pwd",
    "pytest",
    "python",
    "python3",
    "rg",
    "rm",
    "ruby",
    "rustc",
    "sed",
    "seq",
    "sh",
    "sha256sum",
    "sleep",
    "sort",
    "stat",
    "tail",
    "touch",
    "tree",
    "true",
    "tsc",
    "uname",
    "uniq",
    "uptime",
    "uv",
    "wc",
    "which",
    "whoami",
    "yarn",
];

/// Subcommands with which `git …` alone is a command.
const GIT: &[&str] = &[
    "status", "log", "diff", "branch", "show", "remote", "tag", "blame",
];

/// Words after "run" and "execute" that start no command: `run the tests`, `run it again`, `run away`.
const ENGLISH: &[&str] = &[
    "a",
    "again",
    "all",
    "an",
    "and",
    "another",
    "any",
    "anything",
    "around",
    "as",
    "at",
    "away",
    "both",
    "by",
    "code",
    "each",
    "every",
    "everything",
    "fast",
    "faster",
    "from",
    "her",
    "him",
    "his",
    "in",
    "integration",
    "into",
    "it",
    "its",
    "late",
    "like",
    "me",
    "my",
    "of",
    "off",
    "on",
    "one",
    "or",
    "our",
    "out",
    "over",
    "some",
    "something",
    "tests",
    "that",
    "the",
    "their",
    "them",
    "these",
    "they",
    "this",
    "those",
    "through",
    "to",
    "unit",
    "us",
    "what",
    "whatever",
    "with",
    "your",
];

/// Programs whose names are English verbs, so that `make a plan` is no command.
const VERBS: &[&str] = &[
    "cut", "file", "find", "go", "just", "kill", "make", "open", "sort", "split", "test", "time",
    "touch", "watch",
];

/// Words that start a command only if a semicolon follows, and the words that end it.
const KEYWORDS: &[(&str, &str)] = &[
    ("for", "done"),
    ("while", "done"),
    ("until", "done"),
    ("if", "fi"),
];

const RUN: &[&str] = &["run", "execute", "$"];

/// What follows a command and asks for nothing else.
const COMMAND_ENDINGS: &[&str] = &[
    "please",
    "for me",
    "now",
    "and show me the output",
    "and tell me what it says",
];

pub(super) fn run(clause: &Clause<'_>) -> Option<Task> {
    let (command, is_open) = match clause.after(RUN) {
        Some(rest) => match leading_quote(without_label(rest)) {
            Some((command, after)) => (quoted_command(command, after)?, false),
            None => {
                let (command, after) = open_command(clause)?;
                (Some(command).filter(|_| after.is_empty())?, true)
            }
        },
        None => {
            let is_git = clause.after(&["git"]).is_some_and(|rest| {
                let subcommand = rest.split_whitespace().next();
                subcommand.is_some_and(|subcommand| GIT.contains(&subcommand))
            });
            // `grep TODO` is a search, but the file tools know no options.
            let is_grep = clause
                .after(&["grep", "rg"])
                .is_some_and(|rest| rest.starts_with('-'));
            (Some(clause.text).filter(|_| is_git || is_grep)?, false)
        }
    };
    let mut task = Task::call("exec", json!({ "command": command }))?;
    task.is_open = is_open;
    Some(task)
}

/// Returns the command without quotation marks that a request starts with, even if another request follows it.
pub(in crate::offline) fn command_of<'a>(clause: &Clause<'a>) -> Option<&'a str> {
    open_command(clause).map(|(command, _)| command)
}

/// Returns a message that looks like a line of the shell. It is good enough to suggest, not to run: `python is slow`
/// starts in the same way.
pub(in crate::offline) fn bare_command<'a>(clause: &Clause<'a>) -> Option<&'a str> {
    const MAX_WORDS: usize = 5;
    const TOOLS: &[&str] = &[
        "cargo", "docker", "git", "grep", "head", "npm", "npx", "pip", "pnpm", "pytest", "python",
        "python3", "rg", "tail", "tree", "uv", "wc", "yarn",
    ];
    const VERBS: &[&str] = &["is", "are", "was", "has", "does", "can", "should"];
    let mut words = clause.text.split_whitespace();
    let is_tool = TOOLS.contains(&words.next()?);
    let second = words.next().unwrap_or_default();
    let is_english = VERBS.contains(&second) || ENGLISH.contains(&second);
    (is_tool && !is_english && words.count() + 2 <= MAX_WORDS).then_some(clause.text)
}

/// Returns whether a request to run something names no command: `run the tests`.
pub(in crate::offline) fn names_no_command(clause: &Clause<'_>) -> bool {
    let is_unquoted = |rest| leading_quote(without_label(rest)).is_none();
    clause.after(RUN).is_some_and(is_unquoted) && open_command(clause).is_none()
}

/// Returns whether a text starts with the name of a program, so that it may continue a line of the shell.
pub(in crate::offline) fn starts_with_program(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    PROGRAMS.contains(&first) || first.starts_with("./")
}

/// Returns the length of the loop or condition of the shell that a request runs: `run for f in *; do wc $f; done`.
pub(in crate::offline) fn length_of_loop(text: &str) -> Option<usize> {
    let clause = Clause::read(text);
    let rest = without_label(strip_any(clause.with_end, RUN)?).trim_start();
    let start = text.rfind(rest)?;
    let first = rest.split_whitespace().next()?;
    let (_, end) = KEYWORDS.iter().find(|(start, _)| *start == first)?;
    let is_end = |at: &usize| {
        let before = rest[..*at].trim_end();
        let after = rest[*at + end.len()..].chars().next();
        before.ends_with(';') && after.is_none_or(|letter| !letter.is_alphanumeric())
    };
    let ends = rest.match_indices(end).map(|(at, _)| at);
    let last = ends.filter(is_end).last()?;
    Some(start + last + end.len())
}

fn without_label(rest: &str) -> &str {
    let labels = [
        "the shell command",
        "the command",
        "a command",
        "this command",
        "command",
    ];
    // `command -v ls` is a command itself.
    let shorter = strip_any(rest, &labels).filter(|rest| !rest.starts_with('-'));
    shorter.unwrap_or(rest)
}

fn quoted_command<'t>(command: &'t str, after: &str) -> Option<&'t str> {
    let after = after.trim();
    let is_end = after.is_empty() || strip_any(after, COMMAND_ENDINGS).is_some_and(str::is_empty);
    (is_end && !command.trim().is_empty()).then_some(command)
}

/// Reads a command without quotation marks, as it was typed, and a request for something else after it. `None` if it is
/// English.
fn open_command<'a>(clause: &Clause<'a>) -> Option<(&'a str, &'a str)> {
    let rest = without_label(strip_any(clause.with_end, RUN)?).trim();
    let (command, after) = split_request(rest);
    let command = without_end(command, clause.is_question);
    let mut words = command.split_whitespace();
    let first = words.next()?.to_ascii_lowercase();
    let second = words.next().unwrap_or_default();
    let is_sentence = VERBS.contains(&first.as_str()) && ENGLISH.contains(&second);
    let names_nothing = first.starts_with(['-', '"', '\'', '`', '?', '!', '#']);
    let is_keyword = KEYWORDS.iter().any(|(start, _)| *start == first);
    let is_phrase = is_keyword && !command.contains(';');
    let is_english = ENGLISH.contains(&first.as_str()) || is_sentence || is_phrase || names_nothing;
    (!is_english && !command.contains('\n')).then_some((command, after))
}

/// Splits off a request that follows a command: `ls and tell me what it says`.
fn split_request(text: &str) -> (&str, &str) {
    const JOINTS: &[&str] = &[" and then ", ", then ", ", and ", " and ", " then ", ", "];
    const REQUESTS: &[&str] = &[
        "tell",
        "show",
        "explain",
        "summarize",
        "summarise",
        "give me",
        "describe",
        "fix",
        "report",
        "let me",
        "send",
        "analyze",
        "analyse",
        "translate",
        "save the output",
        "write the output",
    ];
    let is_request = |rest| strip_any(rest, REQUESTS).map(|_| rest);
    match split_last(text, JOINTS, is_request) {
        Some((command, "show me the output" | "tell me what it says")) => (command, ""),
        Some(split) => split,
        None => (text, ""),
    }
}

/// Removes courtesy and a full stop that are not part of a command.
fn without_end(command: &str, is_question: bool) -> &str {
    let command = command.trim();
    let asked = command.trim_end_matches(['.', '!', '?']);
    let endings = [", please", " please", ", thanks", ", thank you", " for me"];
    let lower = asked.to_ascii_lowercase();
    if let Some(ending) = endings.iter().find(|ending| lower.ends_with(**ending)) {
        return &asked[..asked.len() - ending.len()];
    }
    let is_word = !command.contains(char::is_whitespace);
    let shorter = match command.strip_suffix('.') {
        Some(shorter) => Some(shorter),
        None if is_word => command.strip_suffix(['?', '!']),
        None if is_question => command.strip_suffix('?'),
        None => None,
    };
    let shorter = shorter.filter(|shorter| shorter.ends_with(char::is_alphanumeric));
    shorter.unwrap_or(command)
}

/// A file is hashed by a command; `crypto_hash` hashes text.
pub(super) fn hash_file(clause: &Clause<'_>) -> Option<Task> {
    let path = certain_path(hashed(clause)?)?;
    Task::call("exec", json!({ "argv": ["sha256sum", "--", path] }))
}

/// Returns what a request wants to hash.
pub(super) fn hashed<'a>(clause: &Clause<'a>) -> Option<&'a str> {
    clause.after(&[
        "what is the sha256 hash of",
        "what is the sha256 of",
        "what is the hash of",
        "what's the hash of",
        "what is the checksum of",
        "compute the hash of",
        "calculate the hash of",
        "show me the hash of",
        "show the hash of",
        "give me the hash of",
        "the hash of",
        "hash of",
        "checksum of",
        "sha256 of",
        "checksum",
        "sha256sum",
        "sha256",
        "hash",
    ])
}
