//! `fs_edit`: one passage of a text file replaced by another.
//!
//! The passage is given as it is and must be there exactly once, so that what is changed is what was meant.

use super::text::Current;
use super::{Change, changing_tool, preview_lines};
use crate::Workspace;
use crate::diff::{self, RESULT_LINES};
use crate::file_error::FileError;
use crate::guard::expect_inspected;
use crate::spot::Spot;
use lango_core::{Effect, Extent, GuardedTarget, Inspection, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use std::sync::Arc;

const DESCRIPTION: &str = "Replaces one passage of a text file of the workspace: the exact text `old`, which must be \
    there exactly once, by `new`. Take `old` from fs_read, with as many lines around it as make it unique.";

/// How many places of a passage are counted and how many named.
const COUNTED: usize = 1000;
const NAMED: usize = 10;

pub(super) fn tool(workspace: &Workspace) -> Arc<dyn Tool> {
    changing_tool(
        workspace.clone(),
        ("fs_edit", Effect::Effect),
        DESCRIPTION,
        Change {
            run: edit,
            preview,
            guarded,
        },
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditArguments {
    /// The file, relative to the workspace.
    path: String,
    /// The text to replace, exactly as it is in the file, line breaks and indentation included.
    old: String,
    /// The text that takes its place; empty to remove it.
    new: String,
}

fn edit(
    workspace: &Workspace,
    arguments: EditArguments,
    inspection: &Inspection,
) -> Result<String, FileError> {
    let mut edit = Edit::find(workspace, &arguments)?;
    expect_inspected(edit.spot.guarded().as_ref(), inspection)?;
    edit.spot.replace(edit.after.as_bytes())?;
    let difference = diff::unified(&edit.before, &edit.after, RESULT_LINES);
    Ok(format!("edited {}\n{difference}", edit.spot.shown()))
}

fn guarded(
    workspace: &Workspace,
    arguments: EditArguments,
) -> Result<Option<GuardedTarget>, FileError> {
    let place = workspace.locate(&arguments.path)?;
    Ok(place.file_destination()?.guarded())
}

fn preview(
    workspace: &Workspace,
    arguments: EditArguments,
    extent: Extent,
) -> Result<String, FileError> {
    let edit = Edit::find(workspace, &arguments)?;
    let difference = diff::unified(&edit.before, &edit.after, preview_lines(extent));
    Ok(format!("Edits {}\n{difference}", edit.spot.shown()))
}

/// A file, and how it becomes.
struct Edit<'a> {
    spot: Spot<'a>,
    before: String,
    after: String,
}

impl<'a> Edit<'a> {
    fn find(workspace: &'a Workspace, arguments: &EditArguments) -> Result<Self, FileError> {
        let place = workspace.locate(&arguments.path)?;
        place.target()?.metadata()?;
        let spot = place.file_destination()?;
        let path = || spot.shown().to_owned();
        let before = match Current::at(&spot)? {
            Current::Text(text) => text,
            Current::Nothing => return Err(FileError::Missing { path: path() }),
            Current::Other(what) => {
                return Err(FileError::NotEdited {
                    path: path(),
                    problem: format!("is not text that can be edited: {what}"),
                    way_out: "leave it as it is",
                });
            }
        };
        let after = replace_once(&before, &arguments.old, &arguments.new).map_err(|refusal| {
            FileError::NotEdited {
                path: path(),
                problem: refusal.problem,
                way_out: refusal.way_out,
            }
        })?;
        Ok(Self {
            spot,
            before,
            after,
        })
    }
}

#[derive(Debug)]
struct Refusal {
    problem: String,
    way_out: &'static str,
}

/// The text with the one `old` in it replaced. In a text whose lines end with CR LF, line feeds alone stand for those.
fn replace_once(text: &str, old: &str, new: &str) -> Result<String, Refusal> {
    let refuse = |problem: String, way_out| Err(Refusal { problem, way_out });
    if old.is_empty() {
        return refuse(
            "is not edited: `old` is empty".to_owned(),
            "pass the text to replace, or write the whole file with `fs_write`",
        );
    }
    if old == new {
        return refuse(
            "is not edited: `old` and `new` are the same".to_owned(),
            "pass a different `new`, or nothing needs to be done",
        );
    }
    let (mut old, mut new) = (Cow::Borrowed(old), Cow::Borrowed(new));
    let mut places = places_of(text, &old);
    if places.is_empty() && text.contains("\r\n") && !old.contains('\r') {
        old = with_carriage_returns(&old);
        new = with_carriage_returns(&new);
        places = places_of(text, &old);
    }
    match places.as_slice() {
        [at] => {
            let (before, after) = (&text[..*at], &text[at + old.len()..]);
            Ok([before, &new, after].concat())
        }
        [] => refuse(
            format!(
                "does not contain the text in `old`{}",
                similar_place(text, &old)
            ),
            "see the exact text with `fs_read`",
        ),
        _ => refuse(
            format!(
                "contains the text in `old` {}",
                number_and_lines(text, &places)
            ),
            "pass a longer `old` with more of the lines around it",
        ),
    }
}

/// Where `passage` begins in `text`, overlapping ones too.
fn places_of(text: &str, passage: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(passage) {
        places.push(from + at);
        if places.len() > COUNTED {
            break;
        }
        let step = text[from + at..].chars().next().map_or(1, char::len_utf8);
        from += at + step;
    }
    places
}

fn with_carriage_returns(text: &str) -> Cow<'static, str> {
    Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\r\n"))
}

/// `3 times, at lines 4, 9 and 12`.
fn number_and_lines(text: &str, places: &[usize]) -> String {
    let number = match places.len() > COUNTED {
        true => format!("more than {COUNTED} times"),
        false => format!("{} times", places.len()),
    };
    let lines: Vec<_> = places
        .iter()
        .take(NAMED)
        .map(|at| line_at(text, *at).to_string())
        .collect();
    let (last, others) = match lines.split_last() {
        Some((last, others)) if places.len() <= NAMED => (format!(" and {last}"), others),
        _ => (" and so on".to_owned(), &lines[..]),
    };
    format!("{number}, at lines {}{last}", others.join(", "))
}

/// Where a line is that is like the first of the passage but for spaces, if there is one.
fn similar_place(text: &str, passage: &str) -> String {
    let wanted = passage.lines().map(str::trim).find(|line| !line.is_empty());
    let like = |wanted: &str| text.lines().position(|line| line.trim() == wanted);
    match wanted.and_then(like) {
        Some(at) => format!(", but its first line is like line {}", at + 1),
        None => String::new(),
    }
}

fn line_at(text: &str, at: usize) -> usize {
    text.as_bytes()[..at]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str, old: &str, new: &str) -> String {
        replace_once(text, old, new).unwrap_err().problem
    }

    #[test]
    fn a_passage_that_is_there_once_is_replaced() {
        assert_eq!(replace_once("a b c", "b", "").unwrap(), "a  c");
        assert_eq!(replace_once("ä\nb", "ä", "ö").unwrap(), "ö\nb");
    }

    #[test]
    fn passages_that_overlap_count_each() {
        assert_eq!(
            problem("aaa", "aa", "b"),
            "contains the text in `old` 2 times, at lines 1 and 1"
        );
        let many = "x\n".repeat(20);
        assert_eq!(
            problem(&many, "x", "y"),
            "contains the text in `old` 20 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and so on"
        );
        assert!(problem(&"x".repeat(5000), "x", "y").contains("more than 1000 times"));
    }

    #[test]
    fn line_feeds_stand_for_the_line_ends_of_the_file() {
        assert_eq!(
            replace_once("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n").unwrap(),
            "x\r\ny\r\nc\r\n"
        );
        assert_eq!(replace_once("a\r\nb\nc", "b\nc", "d").unwrap(), "a\r\nd");
    }

    #[test]
    fn a_line_that_differs_in_spaces_is_pointed_at() {
        assert_eq!(
            problem("x\n\tif a {\n", "    if a {\n", "y"),
            "does not contain the text in `old`, but its first line is like line 2"
        );
        assert_eq!(problem("x", "y", "z"), "does not contain the text in `old`");
    }
}
