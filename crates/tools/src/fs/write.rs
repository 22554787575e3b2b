//! `fs_write`: creates a file or replaces its whole content.

use super::text::{CurrentContent, expect_replaceable};
use super::{ChangeFunctions, modifying_tool, preview_lines};
use crate::Workspace;
use crate::diff;
use crate::file_error::FileError;
use crate::guard::expect_inspected;
use crate::show;
use lango_core::{Effect, GuardedTarget, Inspection, PreviewLength, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Writes a text file of the workspace: creates it, with its missing parent folders, or \
    replaces its whole content. To change a part of a file, use fs_edit.";

pub(super) fn tool(workspace: &Workspace) -> Arc<dyn Tool> {
    modifying_tool(
        workspace.clone(),
        ("fs_write", Effect::Idempotent),
        DESCRIPTION,
        ChangeFunctions {
            run: write,
            preview,
            guarded,
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
    workspace: &Workspace,
    arguments: WriteArguments,
    inspection: &Inspection,
) -> Result<String, FileError> {
    let mut target = workspace.locate(&arguments.path)?.file_destination()?;
    expect_inspected(target.guarded().as_ref(), inspection)?;
    let existed = expect_replaceable(&target)?;
    target.replace(arguments.content.as_bytes())?;
    let verb = if existed { "replaced" } else { "created" };
    Ok(format!(
        "{verb} {} ({})\n",
        target.display_path(),
        lines_and_size(&arguments.content)
    ))
}

fn guarded(
    workspace: &Workspace,
    arguments: WriteArguments,
) -> Result<Option<GuardedTarget>, FileError> {
    let requested = workspace.locate(&arguments.path)?;
    Ok(requested.file_destination()?.guarded())
}

fn preview(
    workspace: &Workspace,
    arguments: WriteArguments,
    length: PreviewLength,
) -> Result<String, FileError> {
    let target = workspace.locate(&arguments.path)?.file_destination()?;
    let current = CurrentContent::at(&target)?;
    let (path, new) = (target.display_path(), &arguments.content);
    let lines = preview_lines(length);
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
    Ok(head + &diff::unified(&old, new, lines))
}

/// Formats the length of a text: `3 lines, 42 B`.
fn lines_and_size(text: &str) -> String {
    let lines = show::count(text.lines().count() as u64, "line");
    format!("{lines}, {}", show::size(text.len() as u64))
}
