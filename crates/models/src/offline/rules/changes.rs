//! Rules that change files. Each accepts only requests that leave no doubt about the file and the text, because a wrong
//! guess would destroy something.

use super::{Action, Task};
use crate::offline::clause::{Clause, non_empty, strip_any, strip_phrase};
use crate::offline::extract::{
    certain_path, is_description, leading_path, leading_quote, split_last, split_only, unquoted,
    without_label,
};
use serde_json::json;

pub(super) fn make_folder(clause: &Clause<'_>) -> Option<Task> {
    let rest = clause.after(&["mkdir", "make", "create", "add"])?;
    let is_folder = clause.starts(&["mkdir"]) || {
        let rest = strip_any(rest, &["a", "the", "me a"]).unwrap_or(rest);
        let rest = strip_any(rest, &["new", "empty"]).unwrap_or(rest);
        strip_any(rest, &["folder", "directory"]).is_some()
    };
    let rest = strip_phrase(rest, "me").unwrap_or(rest);
    let path = crate::offline::extract::only_path(rest)
        .filter(|_| is_folder)?
        .path;
    Task::call("fs_mkdir", json!({ "path": path }))
}

pub(super) fn delete(clause: &Clause<'_>) -> Option<Task> {
    let rest = clause.after(&["delete", "remove", "trash", "rm", "erase"])?;
    // In `delete a b.txt`, the name could be `a b.txt`.
    if strip_any(rest, &["a", "an", "one", "new", "text", "empty"]).is_some() {
        return None;
    }
    let path = certain_path(rest)?;
    let is_one_entry = !path.chars().all(|c| "./~".contains(c));
    is_one_entry
        .then(|| Task::call("fs_delete", json!({ "path": path })))
        .flatten()
}

/// `change "a" to "b" in FILE`, `in FILE replace a with b`, `edit FILE: change a to b`, `remove "a" from FILE`.
pub(super) fn edit(clause: &Clause<'_>) -> Option<Task> {
    let (path, old, new) = removal(clause).or_else(|| {
        let file_last = split_last(clause.text, &[" in "], certain_path);
        let file_last = file_last.map(|(change, path)| (path, change));
        let mut forms = file_last.into_iter().chain(file_first(clause));
        forms.find_map(|(path, change)| {
            let (old, new) = replacement(change)?;
            Some((path, old, new))
        })
    })?;
    Task::call("fs_edit", json!({ "path": path, "old": old, "new": new }))
}

/// Reads a request that names the file first, and returns the file and the change.
fn file_first<'a>(clause: &Clause<'a>) -> Option<(String, &'a str)> {
    let rest = clause.after(&["in", "inside", "edit", "update", "modify", "change", "open"])?;
    let (path, rest) = leading_path(rest).filter(|(path, _)| path.is_certain)?;
    let rest = rest.trim_start_matches([',', ':', ';', ' ']);
    let rest = strip_any(rest, &["and", "by", "please", "to"]).unwrap_or(rest);
    Some((path.path, rest))
}

/// Reads `change OLD to NEW` or `replace OLD with NEW`. Without quotation marks, the separator must be the only one.
fn replacement(text: &str) -> Option<(&str, &str)> {
    let (body, separators) = match strip_any(text, &["change", "changing", "edit", "update"]) {
        Some(body) => (body, &["to", "into"][..]),
        None => (
            strip_any(text, &["replace", "replacing", "substitute", "swap"])?,
            &["with", "by"][..],
        ),
    };
    let body = without_label(body);
    let (old, new) = match leading_quote(body) {
        Some((old, rest)) => (old, strip_any(rest.trim_start(), separators)?),
        None => {
            let spaced: Vec<String> = separators.iter().map(|word| format!(" {word} ")).collect();
            let spaced: Vec<&str> = spaced.iter().map(String::as_str).collect();
            split_only(body, &spaced).filter(|(old, _)| !is_description(old))?
        }
    };
    let new = without_label(new);
    let new = match leading_quote(new) {
        Some(_) => unquoted(new)?,
        None => Some(new).filter(|new| !is_description(new) && !new.is_empty())?,
    };
    (!old.is_empty() && old != new).then_some((old, new))
}

/// Reads `remove "TEXT" from FILE`. The quotation marks are required.
fn removal<'a>(clause: &Clause<'a>) -> Option<(String, &'a str, &'a str)> {
    let rest = without_label(clause.after(&["remove", "delete"])?);
    let (old, rest) = leading_quote(rest).filter(|(old, _)| !old.is_empty())?;
    let path = certain_path(strip_any(rest.trim_start(), &["from", "in"])?)?;
    Some((path, old, ""))
}

/// `add a line "…" to FILE`, `append … to FILE`, `add a line to FILE: …`.
pub(super) fn append(clause: &Clause<'_>) -> Option<Task> {
    const ENDS: &[&str] = &[
        " to the end of ",
        " at the end of ",
        " to the bottom of ",
        " at the bottom of ",
        " onto ",
        " into ",
        " to ",
        " in ",
    ];
    let rest = clause.after(&["add", "append", "put", "insert"])?;
    let after_article = strip_any(rest, &["a", "the", "another"]).unwrap_or(rest);
    let after_article = strip_phrase(after_article, "new").unwrap_or(after_article);
    let kinds = ["line", "text", "words", "word", "item", "sentence", "entry"];
    let labelled = strip_any(after_article, &kinds);
    if let Some(place) =
        labelled.and_then(|rest| strip_any(rest, &["to the end of", "at the end of", "to", "in"]))
    {
        return append_after_file(place);
    }
    let is_explicit = labelled.is_some() || clause.starts(&["append"]);
    let body = labelled.unwrap_or(rest);
    let body = strip_any(body, &["saying", "that says", "with the text"]).unwrap_or(body);
    let (line, path) = split_last(body, ENDS, certain_path)?;
    let line = match unquoted(line) {
        Some(line) => line,
        None => {
            let is_prose = [".md", ".txt"].iter().any(|end| path.ends_with(end));
            Some(line).filter(|line| !is_description(line) && (is_explicit || is_prose))?
        }
    };
    append_task(path, line)
}

/// Reads `FILE: LINE` or `FILE saying LINE`.
fn append_after_file(place: &str) -> Option<Task> {
    let (path, rest) = leading_path(place).filter(|(path, _)| path.is_certain)?;
    let rest = rest.trim_start();
    let line = match rest.strip_prefix(':') {
        Some(line) => line,
        None => strip_any(
            rest,
            &["saying", "that says", "with the text", "which says"],
        )?,
    };
    let line = non_empty(line)?;
    let quoted = unquoted(line);
    let mut task = append_task(path.path, quoted.unwrap_or(line))?;
    task.is_open = quoted.is_none();
    Some(task)
}

fn append_task(path: String, line: &str) -> Option<Task> {
    let line = line.to_owned();
    (!line.is_empty()).then_some(Task {
        action: Action::Append { path, line },
        is_open: false,
    })
}

/// Phrases between a file and its content. After the explicit ones, any text is the content.
const EXPLICIT: &[&str] = &[
    "with the following text",
    "with the following content",
    "with the words",
    "with the text",
    "with the contents",
    "with the content",
    "with the line",
    "with text",
    "with content",
    "containing the text",
    "containing the words",
    "that says",
    "which says",
    "saying",
];
const VAGUE: &[&str] = &["with", "that contains", "which contains", "containing"];

/// `write FILE with the text …`, `create a file called FILE containing …`, `save "…" to FILE`.
pub(super) fn write(clause: &Clause<'_>) -> Option<Task> {
    let rest = clause.after(&["write", "create", "make", "save"])?;
    let rest = strip_any(rest, &["me", "to", "into"]).unwrap_or(rest);
    let file_first = leading_path(rest)
        .filter(|(path, _)| path.is_certain)
        .and_then(|(path, after)| Some((path.path, content_after(after.trim_start())?)));
    match file_first {
        Some((path, (content, is_open))) => write_task(path, &content, is_open),
        None => {
            let is_write = clause.starts(&["write", "save"]);
            let places = [" to ", " into ", " in "];
            let (content, path) = split_last(rest, &places, certain_path).filter(|_| is_write)?;
            let content = without_label(content);
            let content = match unquoted(content) {
                Some(content) => content,
                None => Some(content).filter(|content| !is_description(content))?,
            };
            write_task(path, content, false)
        }
    }
}

/// Reads what follows the file: the content, and whether it has no quotation marks.
fn content_after(after: &str) -> Option<(String, bool)> {
    // One word; what follows it is another request.
    if let Some(rest) = strip_phrase(after, "with the word") {
        let word = match unquoted(rest) {
            Some(word) => word,
            None => {
                Some(rest).filter(|word| !word.is_empty() && !word.contains(char::is_whitespace))?
            }
        };
        return Some((word.to_owned(), false));
    }
    let after_colon = after.strip_prefix(':').map(str::trim_start);
    let (content, is_vague) = match strip_any(after, EXPLICIT).or(after_colon) {
        Some(content) => (content, false),
        None => (strip_any(after, VAGUE)?, true),
    };
    if let Some(inside) = unquoted(content) {
        return Some((inside.to_owned(), false));
    }
    let lower = content.to_ascii_lowercase();
    let names_next_step = [" and then ", ", then "]
        .iter()
        .any(|mark| lower.contains(mark));
    let is_quoted_in_part = leading_quote(content).is_some();
    let is_text = !content.is_empty() && !names_next_step && !is_quoted_in_part;
    (is_text && !(is_vague && is_description(content))).then(|| (content.to_owned(), true))
}

fn write_task(path: String, content: &str, is_open: bool) -> Option<Task> {
    let content = format!("{content}\n");
    let mut task = Task::call("fs_write", json!({ "path": path, "content": content }))?;
    task.is_open = is_open;
    Some(task)
}

/// `create an empty file called FILE`, `touch FILE`.
pub(super) fn create(clause: &Clause<'_>) -> Option<Task> {
    let rest = clause.after(&["create", "make", "touch", "add", "new"])?;
    let rest = strip_phrase(rest, "me").unwrap_or(rest);
    let path = certain_path(rest).filter(|path| !path.ends_with('/') && path != ".")?;
    Some(Task {
        action: Action::Create { path },
        is_open: false,
    })
}
