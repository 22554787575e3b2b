//! Rules that look at files: their names, sizes and content.

use super::Task;
use crate::offline::clause::{Clause, strip_any};
use crate::offline::extract::{address, is_path, leading_path, only_path};
use serde_json::json;

/// Things that can be listed and are no folders.
pub(super) const NOT_FOLDERS: &[&str] = &[
    "agents",
    "commands",
    "documents",
    "everyone",
    "facts",
    "memories",
    "memory",
    "models",
    "notes",
    "observations",
    "options",
    "people",
    "processes",
    "reflections",
    "secrets",
    "sessions",
    "skills",
    "steps",
    "team",
    "tools",
    "users",
];

/// Words after "read" that name no file.
const NOT_FILES: &[&str] = &[
    "again",
    "aloud",
    "everything",
    "it",
    "mail",
    "more",
    "news",
    "notes",
    "on",
    "something",
    "this",
    "them",
];

/// Names for the folder that lango works in.
const HERE: &[&str] = &[
    "here",
    "in here",
    "this folder",
    "the folder",
    "this directory",
    "the directory",
    "current folder",
    "current directory",
    "the current folder",
    "the current directory",
    "this project",
    "the project",
    "this repo",
    "this repository",
    "the repo",
    "the repository",
    "this codebase",
    "the codebase",
    "this code",
    "my code",
    "our code",
    "the source",
    "the source code",
    "the workspace",
    "this workspace",
    "my project",
    "all files",
    "the files",
    "my files",
    "these files",
    "every file",
    "all the files",
    "the code",
    "everything",
    "files",
];

pub(super) fn is_here(text: &str) -> bool {
    HERE.contains(&text.to_ascii_lowercase().as_str())
}

pub(super) fn list(clause: &Clause<'_>) -> Option<Task> {
    const ALONE: &[&str] = &[
        "ls",
        "dir",
        "list",
        "files",
        "list files",
        "list all",
        "list all files",
        "list my files",
        "list the files",
        "list all the files",
        "list files and folders",
        "list everything",
        "show files",
        "show me files",
        "show all files",
        "show the files",
        "show me the files",
        "show me all files",
        "show my files",
        "show me my files",
        "what is here",
        "what's here",
        "what is in here",
        "what's in here",
        "whats here",
        "whats in here",
        "show me what is here",
        "show me what's here",
        "what is there",
        "what do you see",
        "what files do you see",
        "what files are there",
        "which files are there",
        "which files do you see",
        "what files do i have",
        "which files do i have",
        "what files exist",
        "how many files are here",
        "how many files are there",
        "look around",
    ];
    const BEFORE_FOLDER: &[&str] = &[
        "list all the files in",
        "list all files in",
        "list the files in",
        "list the files of",
        "list the contents of",
        "list the content of",
        "list files in",
        "list everything in",
        "list what is in",
        "show me all files in",
        "show me the files in",
        "show me what is in",
        "show me what's in",
        "show all files in",
        "show the files in",
        "show files in",
        "show what is in",
        "show me the contents of",
        "show the contents of",
        "what files are in",
        "what files are",
        "which files are in",
        "which files are",
        "how many files are in",
        "what's inside",
        "what is inside",
        "what's in",
        "whats in",
        "what is in",
        "look in",
        "look into",
        "list",
        "ls",
        "dir",
    ];
    // "show me more" names no folder, "show me src/" does.
    const VAGUE: &[&str] = &["show me", "show", "open", "read", "cat"];
    if clause.is(ALONE) {
        return Task::call("fs_list", json!({ "path": "." }));
    }
    let sure = clause.after(BEFORE_FOLDER);
    if let Some(rest) = sure.or_else(|| clause.after(VAGUE)) {
        if is_here(without_ending(rest, &["here"])) {
            return Task::call("fs_list", json!({ "path": "." }));
        }
        let path = only_path(rest)?.path;
        let is_name = !NOT_FOLDERS.contains(&path.to_ascii_lowercase().as_str());
        let is_folder = path.ends_with('/') || path == "." || mentions_folder(rest);
        return (is_folder || (sure.is_some() && is_name))
            .then(|| Task::call("fs_list", json!({ "path": path })))
            .flatten();
    }
    asks_for_files(clause)
        .then(|| Task::call("fs_list", json!({ "path": "." })))
        .flatten()
}

/// Whether a short question is about the files here, in any words.
fn asks_for_files(clause: &Clause<'_>) -> bool {
    let asks = [
        "what",
        "which",
        "tell me",
        "give me",
        "let me see",
        "are there",
        "is there",
        "do i have",
    ];
    let topics = ["files", "file", "folder", "folders", "directory"];
    let is_short = clause.words().count() <= 9;
    let has_path = clause.text.split_whitespace().any(is_path);
    let is_about_content = [
        "contain", "contains", "mention", "with", "delete", "about", "largest", "biggest",
        "newest", "latest", "changed", "modified",
    ]
    .iter()
    .any(|word| clause.has_word(word));
    is_short
        && !has_path
        && !is_about_content
        && clause.starts(&asks)
        && topics.iter().any(|topic| clause.has_word(topic))
}

pub(super) fn read(clause: &Clause<'_>) -> Option<Task> {
    const VERBS: &[&str] = &[
        "what are the contents of",
        "what is the content of",
        "give me the contents of",
        "show me the contents of",
        "show me the content of",
        "show the contents of",
        "show me what is in",
        "print the contents of",
        "let me see",
        "show me",
        "show",
        "read me",
        "read out",
        "read",
        "cat",
        "open up",
        "open",
        "print",
        "display",
        "view",
        "what's in",
        "whats in",
        "what is in",
        "what is inside",
        "what does",
        "look at",
        "have a look at",
        "take a look at",
    ];
    let rest = clause.after(VERBS)?;
    if address(rest).is_some() {
        return None;
    }
    let (lines, rest) = match first_lines(rest) {
        Some((lines, rest)) => (Some(lines), rest),
        None => (None, rest),
    };
    let (mut path, after) = leading_path(rest)?;
    // What people call the readme is this file.
    if path.path == "readme" {
        path.path = "README.md".to_owned();
        path.is_certain = true;
    }
    let is_question = clause.starts(&["what does"]);
    let is_end = match only_path(rest) {
        Some(_) => !is_question,
        None => is_read_ending(after, is_question),
    };
    // "read src" says by its error that src is a folder; "show me more" names nothing.
    let is_word = clause.starts(&["read", "cat"]) && !NOT_FILES.contains(&path.path.as_str());
    let is_named = path.is_certain || path.path.starts_with(char::is_uppercase) || is_word;
    let is_folder = path.path.ends_with('/') || mentions_folder(rest);
    let is_file = is_end && is_named && !is_folder && path.path != ".";
    let arguments = match lines {
        Some(lines) => json!({ "path": path.path, "lines": lines }),
        None => json!({ "path": path.path }),
    };
    is_file.then(|| Task::call("fs_read", arguments)).flatten()
}

/// Returns the path of a request to read a file whose name seems to contain spaces, without quotation marks:
/// `read a b.txt`.
pub(in crate::offline) fn spaced_path<'a>(clause: &Clause<'a>) -> Option<&'a str> {
    const MAX_BYTES: usize = 60;
    let rest = clause.after(&[
        "read", "open", "show me", "show", "cat", "print", "display", "view",
    ])?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let [first, .., last] = words.as_slice() else {
        return None;
    };
    let is_word = |word: &&str| {
        let is_joint = ["and", "then", "of", "from"].contains(word);
        !is_joint
            && word
                .chars()
                .all(|c| c.is_alphanumeric() || "._-/".contains(c))
    };
    let is_article = ["the", "my", "our", "this", "that", "me", "file"].contains(first);
    let is_name = is_path(last) && !is_article && words.iter().all(is_word);
    let has_one_path = words.iter().filter(|word| is_path(word)).count() == 1;
    (is_name && has_one_path && rest.len() <= MAX_BYTES).then_some(rest)
}

/// Whether the words after a path only say to read it: `what does a.md say`, `open a.html and tell me the title`.
fn is_read_ending(after: &str, is_question: bool) -> bool {
    let after = after.trim_start_matches([' ', ',']);
    if is_question {
        let endings = ["say", "contain", "look like", "have in it"];
        return strip_any(after, &endings).is_some_and(|rest| rest.trim().is_empty());
    }
    strip_any(
        after,
        &["and tell me", "and show me", "and show it", "and print it"],
    )
    .is_some()
}

fn first_lines(rest: &str) -> Option<(u64, &str)> {
    let rest = strip_any(rest, &["the first", "first"])?;
    let (number, rest) = rest.split_once(' ')?;
    let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
    Some((
        number,
        strip_any(rest, &["lines of", "lines from", "lines in"])?,
    ))
}

fn mentions_folder(rest: &str) -> bool {
    let lower = rest.to_ascii_lowercase();
    ["folder", "directory"]
        .iter()
        .any(|kind| lower.split_whitespace().any(|word| word == *kind))
}

pub(super) fn stat(clause: &Clause<'_>) -> Option<Task> {
    const QUESTIONS: &[&str] = &[
        "how big is",
        "how large is",
        "how old is",
        "how long is",
        "what size is",
        "what is the size of",
        "what's the size of",
        "size of",
        "when was",
        "when did",
        "what kind of file is",
        "what type of file is",
        "what kind of thing is",
        "does",
        "is there a file called",
        "is there a file named",
        "is there a folder called",
        "is there",
        "stat",
        "file info of",
        "file info for",
        "show the size of",
        "show me the size of",
        "tell me the size of",
    ];
    let (path, after) = leading_path(clause.after(QUESTIONS)?)?;
    let is_short = after.split_whitespace().count() <= 3;
    let asks_existence = clause.starts(&["does"]);
    let fits = !asks_existence || after.trim_start().to_ascii_lowercase().starts_with("exist");
    (path.is_certain && is_short && fits)
        .then(|| Task::call("fs_stat", json!({ "path": path.path })))
        .flatten()
}

/// Removes one of these phrases from the end of a text; `None` if it does not end so, or nothing is left.
pub(super) fn strip_ending<'t>(text: &'t str, endings: &[&str]) -> Option<&'t str> {
    let lower = text.to_ascii_lowercase();
    endings.iter().find_map(|ending| {
        let rest = lower.strip_suffix(ending)?;
        rest.ends_with(' ').then(|| text[..rest.len()].trim_end())
    })
}

pub(super) fn without_ending<'t>(text: &'t str, endings: &[&str]) -> &'t str {
    strip_ending(text, endings).unwrap_or(text)
}
