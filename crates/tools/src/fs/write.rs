//! `fs_write`: a file made or replaced, whole.

use super::text::{Current, expect_replaceable};
use super::{Change, changing_tool, preview_lines};
use crate::Workspace;
use crate::diff;
use crate::file_error::FileError;
use crate::guard::expect_inspected;
use crate::show;
use lango_core::{Effect, Extent, GuardedTarget, Inspection, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Writes a text file of the workspace: makes it, with the folders above it, or replaces all \
    of its content. To change a part of a file use fs_edit.";

pub(super) fn tool(workspace: &Workspace) -> Arc<dyn Tool> {
    changing_tool(
        workspace.clone(),
        ("fs_write", Effect::Idempotent),
        DESCRIPTION,
        Change {
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
    /// Its whole new content.
    content: String,
}

fn write(
    workspace: &Workspace,
    arguments: WriteArguments,
    inspection: &Inspection,
) -> Result<String, FileError> {
    let mut spot = workspace.locate(&arguments.path)?.file_destination()?;
    expect_inspected(spot.guarded().as_ref(), inspection)?;
    let was_there = expect_replaceable(&spot)?;
    spot.replace(arguments.content.as_bytes())?;
    let verb = if was_there { "replaced" } else { "created" };
    Ok(format!(
        "{verb} {} ({})\n",
        spot.shown(),
        extent_of(&arguments.content)
    ))
}

fn guarded(
    workspace: &Workspace,
    arguments: WriteArguments,
) -> Result<Option<GuardedTarget>, FileError> {
    let place = workspace.locate(&arguments.path)?;
    Ok(place.file_destination()?.guarded())
}

fn preview(
    workspace: &Workspace,
    arguments: WriteArguments,
    extent: Extent,
) -> Result<String, FileError> {
    let spot = workspace.locate(&arguments.path)?.file_destination()?;
    let current = Current::at(&spot)?;
    let (path, new) = (spot.shown(), &arguments.content);
    let lines = preview_lines(extent);
    let extent = extent_of(new);
    let (head, old) = match current {
        Current::Nothing => (format!("Creates {path} ({extent})\n"), String::new()),
        Current::Text(old) if old == *new => {
            return Ok(format!("Leaves {path} as it is ({extent})\n"));
        }
        Current::Text(old) => (format!("Replaces {path} ({extent})\n"), old),
        Current::Other(what) => {
            let head = format!("Replaces {path} ({extent}), which is not shown: {what}\n");
            (head, String::new())
        }
    };
    Ok(head + &diff::unified(&old, new, lines))
}

/// `3 lines, 42 B`.
fn extent_of(text: &str) -> String {
    let lines = show::count(text.lines().count() as u64, "line");
    format!("{lines}, {}", show::size(text.len() as u64))
}
