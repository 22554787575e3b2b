//! `fs_mkdir`: creates a folder and its missing parents.

use super::{ChangeFunctions, modifying_tool};
use crate::Workspace;
use crate::entry_kind::EntryKind;
use crate::file_error::FileError;
use crate::guard::expect_inspected;
use crate::target_path::TargetPath;
use lango_core::{Effect, GuardedTarget, Inspection, PreviewLength, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Creates a folder in the workspace, with its missing parent folders. Leaves an existing \
    folder unchanged.";

pub(super) fn tool(workspace: &Workspace) -> Arc<dyn Tool> {
    modifying_tool(
        workspace.clone(),
        ("fs_mkdir", Effect::Idempotent),
        DESCRIPTION,
        ChangeFunctions {
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
    let (target, _) = destination(workspace, &arguments)?;
    expect_inspected(target.guarded().as_ref(), inspection)?;
    let path = target.display_path().to_owned();
    Ok(if target.create_folder()? {
        format!("created {path}/\n")
    } else {
        format!("{path}/ exists already\n")
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
    _extent: PreviewLength,
) -> Result<String, FileError> {
    let (target, exists) = destination(workspace, &arguments)?;
    let path = target.display_path();
    Ok(if exists {
        format!("Leaves the folder {path} unchanged\n")
    } else {
        format!("Creates the folder {path}\n")
    })
}

fn destination<'a>(
    workspace: &'a Workspace,
    arguments: &MkdirArguments,
) -> Result<(TargetPath<'a>, bool), FileError> {
    let target = workspace.locate(&arguments.path)?.destination()?;
    match target.kind()? {
        None => Ok((target, false)),
        Some(EntryKind::Folder) => Ok((target, true)),
        Some(_) => Err(FileError::Occupied {
            path: target.display_path().to_owned(),
        }),
    }
}
