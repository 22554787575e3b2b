//! `fs_mkdir`: a folder made, with those above it.

use super::{Change, changing_tool};
use crate::Workspace;
use crate::file_error::FileError;
use crate::guard::expect_inspected;
use crate::kind::Kind;
use crate::spot::Spot;
use lango_core::{Effect, Extent, GuardedTarget, Inspection, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Makes a folder in the workspace, and the folders above it that are missing. One that is \
    there already stays as it is.";

pub(super) fn tool(workspace: &Workspace) -> Arc<dyn Tool> {
    changing_tool(
        workspace.clone(),
        ("fs_mkdir", Effect::Idempotent),
        DESCRIPTION,
        Change {
            run: make,
            preview,
            guarded,
        },
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MkdirArguments {
    /// The folder, relative to the workspace.
    path: String,
}

fn make(
    workspace: &Workspace,
    arguments: MkdirArguments,
    inspection: &Inspection,
) -> Result<String, FileError> {
    let (spot, _) = destination(workspace, &arguments)?;
    expect_inspected(spot.guarded().as_ref(), inspection)?;
    let path = spot.shown().to_owned();
    Ok(match spot.make_folder()? {
        true => format!("created {path}/\n"),
        false => format!("{path}/ is there already\n"),
    })
}

fn guarded(
    workspace: &Workspace,
    arguments: MkdirArguments,
) -> Result<Option<GuardedTarget>, FileError> {
    Ok(destination(workspace, &arguments)?.0.guarded())
}

fn preview(
    workspace: &Workspace,
    arguments: MkdirArguments,
    _extent: Extent,
) -> Result<String, FileError> {
    let (spot, is_there) = destination(workspace, &arguments)?;
    let path = spot.shown();
    Ok(match is_there {
        true => format!("Leaves the folder {path} as it is\n"),
        false => format!("Creates the folder {path}\n"),
    })
}

fn destination<'a>(
    workspace: &'a Workspace,
    arguments: &MkdirArguments,
) -> Result<(Spot<'a>, bool), FileError> {
    let spot = workspace.locate(&arguments.path)?.destination()?;
    match spot.kind()? {
        None => Ok((spot, false)),
        Some(Kind::Folder) => Ok((spot, true)),
        Some(_) => Err(FileError::Occupied {
            path: spot.shown().to_owned(),
        }),
    }
}
