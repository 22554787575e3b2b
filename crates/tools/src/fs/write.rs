//! `fs_write`: creates a file or replaces its whole content.

use super::replace::replace;
use super::text::{CurrentContent, expect_replaceable};
use super::{ChangeFunctions, FileContext, modifying_tool, preview_lines};
use crate::change::Change;
use crate::declaration::Call;
use crate::diff;
use crate::file_error::FileError;
use crate::show;
use crate::target_path::TargetPath;
use crate::undo::{Original, UndoStore};
use lango_core::{Caller, Effect, PreviewRequest, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Writes a text file of the workspace: creates it, with its missing parent folders, or \
    replaces its whole content. To change a part of a file, use fs_edit.";

pub(super) fn tool(context: &FileContext) -> Arc<dyn Tool> {
    modifying_tool(
        context,
        ("fs_write", Effect::Idempotent),
        DESCRIPTION,
        ChangeFunctions {
            run: write,
            preview,
            inspect,
        },
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    /// The file, relative to the workspace.
    path: String,
    /// The whole new content.
    content: String,
}

fn write(
    context: &FileContext,
    arguments: WriteArguments,
    call: &Call,
) -> Result<String, FileError> {
    let WriteArguments { path, content } = arguments;
    let recorder = context.recorder(call)?;
    let mut target = context.workspace.locate(&path)?.file_destination()?;
    let before = Original::read(&target);
    let undo = (context.undo.as_ref(), &call.caller);
    let change = change(&target, &content, before.as_ref().ok(), undo);
    change.expect_inspected(&target, &call.caller.inspection)?;
    expect_replaceable(&target)?;
    let before = before?;
    let bits = change.executable_bits();
    replace(&recorder, &mut target, &before, content.as_bytes(), bits)?;
    let verb = match before {
        Original::Absent => "created",
        Original::File { .. } | Original::Large { .. } => "replaced",
    };
    let counts = match before.text() {
        Some(before) => diff::counts(before, &content).to_string(),
        None => String::new(),
    };
    Ok(format!(
        "{verb} {}{counts}\n{}\n",
        target.display_path(),
        lines_and_size(&content)
    ))
}

fn inspect(
    context: &FileContext,
    arguments: WriteArguments,
    caller: &Caller,
) -> Result<Change, FileError> {
    let requested = context.workspace.locate(&arguments.path)?;
    let target = requested.file_destination()?;
    let before = Original::read(&target);
    let undo = (context.undo.as_ref(), caller);
    let content = &arguments.content;
    Ok(change(&target, content, before.as_ref().ok(), undo))
}

fn change(
    target: &TargetPath<'_>,
    content: &str,
    before: Option<&Original>,
    undo: (Option<&UndoStore>, &Caller),
) -> Change {
    let change = Change::of_file(target, content);
    match before {
        Some(Original::Absent) => change.replacing(b"").with_record_check(undo, target),
        Some(Original::File { bytes, .. }) => {
            let change = change.replacing(bytes);
            change.with_undo_check(undo, target, (bytes.len() as u64, Some(bytes)))
        }
        // What it replaces is not shown.
        Some(Original::Large { size, .. }) => change.with_undo_check(undo, target, (*size, None)),
        None => change.that_fails(),
    }
}

fn preview(
    context: &FileContext,
    arguments: WriteArguments,
    request: &PreviewRequest,
) -> Result<String, FileError> {
    let target = context
        .workspace
        .locate(&arguments.path)?
        .file_destination()?;
    let current = CurrentContent::at(&target)?;
    let replaced = match &current {
        CurrentContent::Missing => Some(&b""[..]),
        CurrentContent::Text(old) => Some(old.as_bytes()),
        CurrentContent::Other(_) => None,
    };
    Change::expect_shown(&target, &request.inspection, replaced)?;
    let (path, new) = (target.preview_path(), &arguments.content);
    let lines = preview_lines(request.length);
    let size = lines_and_size(new);
    let (head, old) = match current {
        CurrentContent::Missing => (format!("Creates {path} ({size})\n"), String::new()),
        CurrentContent::Text(old) if old == *new => {
            return Ok(format!("Leaves {path} unchanged ({size})\n"));
        }
        CurrentContent::Text(old) => (format!("Replaces {path} ({size})\n"), old),
        CurrentContent::Other(what) => {
            let head = format!("Replaces {path} ({size}), which is not shown: {what}\n");
            (head, String::new())
        }
    };
    Ok(head + &diff::preview(&old, new, lines))
}

/// Formats the length of a text: `3 lines, 42 B`.
fn lines_and_size(text: &str) -> String {
    let lines = show::count(text.lines().count() as u64, "line");
    format!("{lines}, {}", show::size(text.len() as u64))
}
