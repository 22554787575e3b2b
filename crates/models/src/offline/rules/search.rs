//! Rules that search: for files by name, and for text in files.

use super::Task;
use super::files::{NOT_FOLDERS, is_here, strip_ending, without_ending};
use crate::offline::clause::{Clause, strip_any, strip_phrase};
use crate::offline::extract::{
    NamedPath, certain_path, is_description, only_path, split_last, unquoted, without_label,
};
use serde_json::json;

/// Finds files by name: `find all *.md files`, `where is notes.md`, `find files named test`.
pub(super) fn find_names(clause: &Clause<'_>) -> Option<Task> {
    const VERBS: &[&str] = &[
        "find me",
        "find",
        "locate",
        "where is",
        "where's",
        "where are",
        "search for",
        "look for",
        "list",
        "show me",
        "show",
        "are there any",
        "are there",
        "which",
        "what",
        "do i have any",
        "do i have",
    ];
    if clause.is(&[
        "list all files recursively",
        "list files recursively",
        "list everything recursively",
        "show all files recursively",
        "list all files in all folders",
    ]) {
        return Task::call("fs_search", json!({ "glob": "*" }));
    }
    let rest = clause.after(VERBS)?;
    let rest = without_ending(
        rest,
        &[
            "are there",
            "are here",
            "do i have",
            "here",
            "in this folder",
            "in this project",
        ],
    );
    let rest = strip_any(rest, &["all the", "all", "every", "any", "the", "my"]).unwrap_or(rest);
    let glob = if let Some(name) = strip_any(
        rest,
        &[
            "files named",
            "files called",
            "files with the name",
            "file named",
            "file called",
        ],
    ) {
        let name = unquoted(name).unwrap_or(name);
        let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
        is_name.then(|| name_glob(name))?
    } else if let Some(extension) = strip_any(
        rest,
        &[
            "files ending in",
            "files ending with",
            "files with the extension",
        ],
    ) {
        format!("*.{}", extension_of(extension.trim_start_matches('.'))?)
    } else if let Some(kind) = strip_ending(rest, &["files", "file"]) {
        match kind.trim() {
            glob if glob.starts_with('*') => glob.to_owned(),
            name if clause.starts(&["where is", "where's"]) && is_name_part(name) => {
                name_glob(name)
            }
            kind => format!("*.{}", extension_of(kind.trim_start_matches('.'))?),
        }
    } else if rest.starts_with("*.") && !rest.contains(char::is_whitespace) {
        rest.to_owned()
    } else {
        let searches = clause.starts(&["find", "locate", "where is", "where's"]);
        let path = certain_path(rest).filter(|path| searches && path != ".")?;
        name_glob(path.trim_start_matches("./"))
    };
    let is_glob = |c: char| c.is_alphanumeric() || "*?._-/{},".contains(c);
    glob.chars()
        .all(is_glob)
        .then(|| Task::call("fs_search", json!({ "glob": glob, "ignore_case": true })))
        .flatten()
}

/// Whether `where is the … file` with this word names the file: `config`, but not `old`.
fn is_name_part(word: &str) -> bool {
    const ADJECTIVES: &[&str] = &[
        "biggest", "first", "largest", "last", "latest", "new", "newest", "old", "oldest", "other",
        "right", "same", "smallest", "wrong",
    ];
    let is_word = word.chars().all(char::is_alphanumeric);
    is_word && extension_of(word).is_none() && !ADJECTIVES.contains(&word)
}

/// Returns the pattern for a file whose name contains this text; a name with an extension must be the whole name.
fn name_glob(name: &str) -> String {
    if name.contains(['*', '.', '/']) {
        name.to_owned()
    } else {
        format!("*{name}*")
    }
}

/// Searches for marks in code: `find all TODOs`, `list all TODO comments in src`.
pub(super) fn find_marks(clause: &Clause<'_>) -> Option<Task> {
    const VERBS: &[&str] = &[
        "find me",
        "find",
        "list",
        "show me",
        "show",
        "search for",
        "look for",
        "where can i find",
        "where do we have",
        "where do i have",
        "where is",
        "where's",
        "where are",
        "what are",
        "are there any",
        "are there",
        "is there",
        "which",
    ];
    let rest = clause.after(VERBS)?;
    let (rest, folder) = match split_last(rest, &[" in ", " inside ", " under "], scope) {
        Some((rest, folder)) => (rest, folder),
        None => (rest, None),
    };
    let rest = strip_any(
        rest,
        &["all the", "all my", "all", "every", "any", "the", "my", "a"],
    )
    .unwrap_or(rest);
    let kinds = ["comments", "comment", "marks", "items", "notes"];
    let word = without_ending(rest, &kinds);
    let mark = match word.to_ascii_lowercase().as_str() {
        "todo" | "todos" | "todo's" => "TODO",
        "fixme" | "fixmes" | "fixme's" => "FIXME",
        _ => return None,
    };
    // A folder or a file could have this name.
    let is_name = word == "todo" && rest == word && clause.starts(&["list", "show", "which"]);
    (!is_name).then(|| search_task(mark, folder)).flatten()
}

fn extension_of(kind: &str) -> Option<String> {
    let lower = kind.trim().to_ascii_lowercase();
    let extension = match lower.as_str() {
        "markdown" => "md",
        "text" => "txt",
        "rust" => "rs",
        "python" => "py",
        "javascript" => "js",
        "typescript" => "ts",
        "shell" => "sh",
        "yaml" => "yaml",
        "image" => "{png,jpg,jpeg,gif,webp,svg}",
        "md" | "txt" | "rs" | "py" | "js" | "ts" | "sh" | "yml" | "json" | "toml" | "html"
        | "css" | "csv" | "xml" | "go" | "java" | "c" | "h" | "cpp" | "rb" | "php" | "sql"
        | "pdf" | "png" | "jpg" | "svg" | "log" | "lock" => return Some(lower),
        _ => return None,
    };
    Some(extension.to_owned())
}

/// Searches the text of files: `search for TODO in src`, `grep milk`.
pub(super) fn search(clause: &Clause<'_>) -> Option<Task> {
    const ELSEWHERE: &[&str] = &[
        "the web",
        "the internet",
        "online",
        "my notes",
        "the notes",
        "notes",
        "my memory",
        "my memories",
        "the documents",
        "my documents",
        "documents",
        "the library",
        "the graph",
        "google",
        "web",
    ];
    let rest = clause.after(&["search", "grep", "look", "find"])?;
    // Options belong to a command.
    if rest.starts_with('-') {
        return None;
    }
    let needs_for = clause.starts(&["look", "search"]);
    if let Some(text) = strip_phrase(rest, "for").or((!needs_for).then_some(rest)) {
        let text = strip_any(text, &["me"]).unwrap_or(text);
        let (text, folder) =
            match split_last(text, &[" in ", " inside ", " under ", " within "], scope) {
                Some((text, folder)) => (text, folder),
                // "find" without a place is too vague, unless it is said to be a text.
                None if clause.starts(&["find"]) && !is_text(text) => return None,
                None => (text, None),
            };
        let is_elsewhere = split_last(text, &[" in ", " on "], |place| {
            ELSEWHERE
                .contains(&place.to_ascii_lowercase().as_str())
                .then_some(())
        });
        return is_elsewhere
            .is_none()
            .then(|| search_task(text, folder))
            .flatten();
    }
    // "search src for TODO", or "search TODO".
    let place = strip_any(rest, &["in", "inside", "through"]).unwrap_or(rest);
    if strip_any(place, ELSEWHERE).is_some() {
        return None;
    }
    match place.to_ascii_lowercase().find(" for ") {
        Some(at) => search_task(&place[at + " for ".len()..], scope(&place[..at])?),
        None => (clause.starts(&["search"]) && !is_description(rest))
            .then(|| search_task(rest, None))
            .flatten(),
    }
}

/// Whether a request calls this a text: with quotation marks, or `the word milk`.
fn is_text(text: &str) -> bool {
    let labelled = strip_any(text, &["the word", "the text", "the phrase"]);
    let is_word = |text: &str| !text.contains(char::is_whitespace);
    let is_exact = |text: &str| unquoted(text).is_some() || is_word(text);
    unquoted(text).is_some() || labelled.is_some_and(is_exact)
}

/// Searches for one word: `find invoice`, but not `find out`. It takes only what no other rule does.
pub(super) fn find_word(clause: &Clause<'_>) -> Option<Task> {
    const VAGUE: &[&str] = &[
        "files", "folders", "help", "her", "him", "me", "more", "out", "us", "you",
    ];
    let text = clause.after(&["find"])?;
    let is_word = text.chars().all(|c| c.is_alphanumeric() || c == '_') && !is_description(text);
    let lower = text.to_ascii_lowercase();
    let is_vague = [VAGUE, NOT_FOLDERS]
        .iter()
        .any(|words| words.contains(&&*lower));
    (is_word && !is_vague)
        .then(|| search_task(text, None))
        .flatten()
}

/// Reads where to search: everywhere (`Some(None)`), or in a file or folder. `None` if it is no place.
pub(super) fn scope(text: &str) -> Option<Option<String>> {
    if is_here(text) {
        return Some(None);
    }
    let is_word = |path: &NamedPath| {
        path.is_certain
            || (path.path.chars().all(|c| c.is_ascii_lowercase())
                && !NOT_FOLDERS.contains(&path.path.as_str())
                && !text.contains(' '))
    };
    only_path(text).filter(is_word).map(|path| Some(path.path))
}

pub(super) fn search_task(text: &str, folder: Option<String>) -> Option<Task> {
    let text = without_label(text.trim());
    let pattern = unquoted(text).unwrap_or(text);
    if pattern.is_empty() || pattern.contains('\n') {
        return None;
    }
    let mut arguments = json!({ "pattern": pattern, "literal": true, "ignore_case": true });
    if let Some(folder) = folder {
        arguments["path"] = folder.into();
    }
    Task::call("fs_search", arguments)
}
