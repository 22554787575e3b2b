//! `fs_mkdir`: a folder made, with those above it.

use super::changing_tool;
use crate::Workspace;
use crate::file_error::FileError;
use crate::kind::Kind;
use crate::spot::Spot;
use lango_core::{Effect, Tool};
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
        make,
        preview,
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MkdirArguments {
    /// The folder, relative to the workspace.
    path: String,
}

fn make(workspace: &Workspace, arguments: MkdirArguments) -> Result<String, FileError> {
    let (spot, _) = destination(workspace, &arguments)?;
    let path = spot.shown().to_owned();
    Ok(match spot.make_folder()? {
        true => format!("created {path}/\n"),
        false => format!("{path}/ is there already\n"),
    })
}

fn preview(workspace: &Workspace, arguments: MkdirArguments) -> Result<String, FileError> {
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
