//! `fs_edit`: replaces one passage of a text file.
//!
//! The model passes the exact passage, which must occur exactly once, so that the edit changes the intended place.

use super::replace::replace;
use super::text::CurrentContent;
use super::{ChangeFunctions, FileContext, modifying_tool, preview_lines};
use crate::Workspace;
use crate::change::Change;
use crate::declaration::Call;
use crate::diff::{self, RESULT_LINES};
use crate::file_error::FileError;
use crate::target_path::TargetPath;
use crate::undo::{Original, UndoStore};
use lango_core::{Caller, Effect, PreviewRequest, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use std::sync::Arc;

const DESCRIPTION: &str = "Replaces one passage of a text file of the workspace: the exact text `old`, which must \
    occur exactly once, by `new`. Copy `old` from fs_read, with enough surrounding lines to make it unique.";

/// Maximum number of occurrences that are counted, and whose lines are listed.
const MAX_COUNTED: usize = 1000;
const MAX_LISTED: usize = 10;

pub(super) fn tool(context: &FileContext) -> Arc<dyn Tool> {
    modifying_tool(
        context,
        ("fs_edit", Effect::NonIdempotent),
        DESCRIPTION,
        ChangeFunctions {
            run: edit,
            preview,
            inspect,
        },
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditArguments {
    /// The file, relative to the workspace.
    path: String,
    /// The text to replace, exactly as it is in the file, including line breaks and indentation.
    old: String,
    /// The replacement; empty to remove the text.
    new: String,
}

fn edit(context: &FileContext, arguments: EditArguments, call: &Call) -> Result<String, FileError> {
    let recorder = context.recorder(call)?;
    let target = destination(&context.workspace, &arguments)?;
    // An error may quote the file, so this comes before the file is read.
    target.expect_same_path(&call.caller.inspection)?;
    // Read first, so that a change after this is noticed, whether the edit has seen it or not.
    let before = Original::read(&target);
    let mut edit = Edit::find(target, &arguments)?;
    let change = edit.change((context.undo.as_ref(), &call.caller));
    change.expect_inspected(&edit.target, &call.caller.inspection)?;
    let before = before?;
    if !before.has_content(edit.before.as_bytes()) {
        return Err(FileError::ChangedSinceQuestion {
            path: edit.target.display_path().to_owned(),
        });
    }
    let (after, bits) = (edit.after.as_bytes(), change.executable_bits());
    replace(&recorder, &mut edit.target, &before, after, bits)?;
    let difference = diff::unified(&edit.before, &edit.after, RESULT_LINES);
    Ok(format!(
        "edited {}{}\n{difference}",
        edit.target.display_path(),
        diff::counts(&edit.before, &edit.after)
    ))
}

fn inspect(
    context: &FileContext,
    arguments: EditArguments,
    caller: &Caller,
) -> Result<Change, FileError> {
    let requested = context.workspace.locate(&arguments.path)?;
    let target = requested.file_destination()?;
    // An edit that fails now may succeed after an earlier call of the same reply, so its path counts in any case.
    let edit = destination(&context.workspace, &arguments)
        .and_then(|target| Edit::find(target, &arguments));
    Ok(edit.map_or_else(
        |_| Change::of_file(&target, "").that_fails(),
        |edit| edit.change((context.undo.as_ref(), caller)),
    ))
}

fn preview(
    context: &FileContext,
    arguments: EditArguments,
    request: &PreviewRequest,
) -> Result<String, FileError> {
    let target = destination(&context.workspace, &arguments)?;
    let edit = Edit::find(target, &arguments)?;
    let replaced = differing_lines(&edit.before, &edit.after).as_bytes();
    Change::expect_shown(&edit.target, &request.inspection, Some(replaced))?;
    let lines = preview_lines(request.length);
    let difference = diff::preview(&edit.before, &edit.after, lines);
    Ok(format!(
        "Edits {}\n{difference}",
        edit.target.preview_path()
    ))
}

/// Resolves the path of the file, which must exist.
fn destination<'a>(
    workspace: &'a Workspace,
    arguments: &EditArguments,
) -> Result<TargetPath<'a>, FileError> {
    let requested = workspace.locate(&arguments.path)?;
    requested.target()?.metadata()?;
    requested.file_destination()
}

/// A file and its content before and after the edit.
struct Edit<'a> {
    target: TargetPath<'a>,
    before: String,
    after: String,
}

impl<'a> Edit<'a> {
    fn find(target: TargetPath<'a>, arguments: &EditArguments) -> Result<Self, FileError> {
        let path = || target.display_path().to_owned();
        let before = match CurrentContent::at(&target)? {
            CurrentContent::Text(text) => text,
            CurrentContent::Missing => return Err(FileError::Missing { path: path() }),
            CurrentContent::Other(what) => {
                return Err(FileError::NotEdited {
                    path: path(),
                    problem: format!("is not text that can be edited: {what}"),
                    hint: "leave it unchanged",
                });
            }
        };
        let after = replace_once(&before, &arguments.old, &arguments.new).map_err(|refusal| {
            FileError::NotEdited {
                path: path(),
                problem: refusal.problem,
                hint: refusal.hint,
            }
        })?;
        Ok(Self {
            target,
            before,
            after,
        })
    }

    /// Returns the change. It replaces the lines that differ; those around them may change before it is made.
    fn change(&self, undo: (Option<&UndoStore>, &Caller)) -> Change {
        let before = self.before.as_bytes();
        let change = Change::of_file(&self.target, &self.after);
        change
            .replacing(differing_lines(&self.before, &self.after).as_bytes())
            .with_undo_check(undo, &self.target, (before.len() as u64, Some(before)))
    }
}

/// Returns the lines of `before` from the first to the last that differs in `after`.
fn differing_lines<'a>(before: &'a str, after: &str) -> &'a str {
    let start = equal_bytes(lines(before).zip(lines(after)));
    let (before, after) = (&before[start..], &after[start..]);
    let end = equal_bytes(lines(before).rev().zip(lines(after).rev()));
    &before[..before.len() - end]
}

fn lines(text: &str) -> std::str::SplitInclusive<'_, char> {
    text.split_inclusive('\n')
}

/// Returns the length of the equal lines before the first two that differ.
fn equal_bytes<'a, 'b>(pairs: impl Iterator<Item = (&'a str, &'b str)>) -> usize {
    let equal = pairs.take_while(|(one, other)| one == other);
    equal.map(|(line, _)| line.len()).sum()
}

#[derive(Debug)]
struct Refusal {
    problem: String,
    hint: &'static str,
}

/// Replaces the only occurrence of `old`. If the lines of the text end with CR LF, a bare line feed in `old` and `new`
/// means CR LF.
fn replace_once(text: &str, old: &str, new: &str) -> Result<String, Refusal> {
    let refuse = |problem: String, hint| Err(Refusal { problem, hint });
    if old.is_empty() {
        return refuse(
            "was not edited: `old` is empty".to_owned(),
            "pass the text to replace, or write the whole file with `fs_write`",
        );
    }
    if old == new {
        return refuse(
            "was not edited: `old` and `new` are the same".to_owned(),
            "pass a different `new`, or skip this edit",
        );
    }
    let (mut old, mut new) = (Cow::Borrowed(old), Cow::Borrowed(new));
    let mut places = find_all(text, &old);
    if places.is_empty() && text.contains("\r\n") && !old.contains('\r') {
        old = with_carriage_returns(&old);
        new = with_carriage_returns(&new);
        places = find_all(text, &old);
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
            "read the exact text with `fs_read`",
        ),
        _ => refuse(
            format!(
                "contains the text in `old` {}",
                number_and_lines(text, &places)
            ),
            "pass a longer `old` with more surrounding lines",
        ),
    }
}

/// Finds the byte offsets of `passage` in `text`, including overlapping occurrences.
fn find_all(text: &str, passage: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(passage) {
        places.push(from + at);
        if places.len() > MAX_COUNTED {
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

/// Formats the occurrences: `3 times, at lines 4, 9 and 12`.
fn number_and_lines(text: &str, places: &[usize]) -> String {
    let number = if places.len() > MAX_COUNTED {
        format!("more than {MAX_COUNTED} times")
    } else {
        format!("{} times", places.len())
    };
    let lines: Vec<_> = places
        .iter()
        .take(MAX_LISTED)
        .map(|at| line_at(text, *at).to_string())
        .collect();
    let (last, others) = match lines.split_last() {
        Some((last, others)) if places.len() <= MAX_LISTED => (format!(" and {last}"), others),
        _ => (" and so on".to_owned(), &lines[..]),
    };
    format!("{number}, at lines {}{last}", others.join(", "))
}

/// Points to a line, if there is one, that equals the first line of the passage except for leading and trailing spaces.
fn similar_place(text: &str, passage: &str) -> String {
    let wanted = passage.lines().map(str::trim).find(|line| !line.is_empty());
    let like = |wanted: &str| text.lines().position(|line| line.trim() == wanted);
    match wanted.and_then(like) {
        Some(at) => format!(", but line {} is like its first line", at + 1),
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
    fn a_passage_that_occurs_once_is_replaced() {
        assert_eq!(replace_once("a b c", "b", "").unwrap(), "a  c");
        assert_eq!(replace_once("ä\nb", "ä", "ö").unwrap(), "ö\nb");
    }

    #[test]
    fn overlapping_occurrences_count_separately() {
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
    fn an_edit_replaces_the_lines_that_differ() {
        for (before, after, differing) in [
            ("a\nb\nc\n", "a\nx\nc\n", "b\n"),
            ("a\nb\nc", "a\nb\nx", "c"),
            ("a\na\n", "a\n", "a\n"),
            ("a\n", "a\na\n", ""),
            ("# Notes\nx\n", "# Plans\nx\n", "# Notes\n"),
            (
                "# Notes changed\nx\n",
                "# Plans changed\nx\n",
                "# Notes changed\n",
            ),
        ] {
            assert_eq!(differing_lines(before, after), differing, "{before:?}");
        }
    }

    #[test]
    fn line_feeds_match_the_line_ends_of_the_file() {
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
            "does not contain the text in `old`, but line 2 is like its first line"
        );
        assert_eq!(problem("x", "y", "z"), "does not contain the text in `old`");
    }
}
