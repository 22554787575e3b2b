//! Rules that run a command in the sandbox.

use super::Task;
use crate::offline::clause::{Clause, strip_any};
use crate::offline::extract::{certain_path, leading_quote};
use serde_json::json;

/// Programs that may be named without backticks. None of them deletes or moves files by itself: such a command must be
/// quoted, so that nothing is read as a command by mistake.
const PROGRAMS: &[&str] = &[
    "awk",
    "basename",
    "cal",
    "cargo",
    "cat",
    "cmake",
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
    "file",
    "free",
    "gcc",
    "git",
    "go",
    "grep",
    "head",
    "hostname",
    "id",
    "java",
    "jq",
    "just",
    "ls",
    "lscpu",
    "make",
    "man",
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
    "ruby",
    "rustc",
    "sed",
    "seq",
    "sha256sum",
    "sort",
    "stat",
    "tail",
    "tree",
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

pub(super) fn run(clause: &Clause<'_>) -> Option<Task> {
    let command = match clause.after(&["run", "execute", "$"]) {
        Some(rest) => command_in(rest)?,
        None => {
            let subcommand = clause.after(&["git"])?.split_whitespace().next()?;
            Some(clause.text).filter(|_| GIT.contains(&subcommand))?
        }
    };
    Task::call("exec", json!({ "command": command }))
}

/// Reads the command: everything in backticks, or a known program with its arguments.
fn command_in(rest: &str) -> Option<&str> {
    let labels = [
        "the shell command",
        "the command",
        "a command",
        "this command",
        "command",
    ];
    let rest = strip_any(rest, &labels).unwrap_or(rest);
    if let Some((command, after)) = leading_quote(rest) {
        let endings = [
            "please",
            "for me",
            "now",
            "and show me the output",
            "and tell me what it says",
        ];
        let after = after.trim();
        let is_end = after.is_empty() || strip_any(after, &endings).is_some_and(str::is_empty);
        return (is_end && !command.trim().is_empty()).then_some(command);
    }
    let program = rest.split_whitespace().next()?;
    let is_script = program.starts_with("./") && program.len() > 2;
    let is_known = PROGRAMS.contains(&program) && reads_like_arguments(program, rest);
    ((is_script || is_known) && !rest.contains('\n')).then_some(rest)
}

/// Whether the words after a program's name are arguments and not a sentence, as in "run make a plan".
fn reads_like_arguments(program: &str, command: &str) -> bool {
    const SENTENCE: [&str; 14] = [
        "a", "an", "the", "my", "your", "our", "me", "please", "then", "for", "that", "this", "it",
        "them",
    ];
    let is_free = matches!(program, "echo" | "git");
    let mut words = command.split_whitespace().skip(1);
    is_free || !words.any(|word| SENTENCE.contains(&word))
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
