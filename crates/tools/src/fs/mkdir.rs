//! `fs_mkdir`: creates a folder and its missing parents.

use super::{ChangeFunctions, FileContext, modifying_tool};
use crate::Workspace;
use crate::change::Change;
use crate::declaration::Call;
use crate::entry_kind::EntryKind;
use crate::file_error::FileError;
use crate::target_path::TargetPath;
use lango_core::{Caller, Effect, PreviewRequest, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Creates a folder in the workspace, with its missing parent folders. Leaves an existing \
    folder unchanged.";

pub(super) fn tool(context: &FileContext) -> Arc<dyn Tool> {
    modifying_tool(
        context,
        ("fs_mkdir", Effect::Idempotent),
        DESCRIPTION,
        ChangeFunctions {
            run: make,
            preview,
            inspect,
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
    context: &FileContext,
    arguments: MkdirArguments,
    call: &Call,
) -> Result<String, FileError> {
    let recorder = context.recorder(call)?;
    let (target, exists) = destination(&context.workspace, &arguments)?;
    let change = change(context, &target, exists, &call.caller);
    change.expect_inspected(&target, &call.caller.inspection)?;
    let path = target.display_path().to_owned();
    recorder
        .create_folders(&target.missing_folders())
        .map_err(|error| FileError::not_recorded(&path, &error))?;
    recorder.expect_running()?;
    Ok(if target.create_folder()? {
        format!("created {path}/\n")
    } else {
        format!("{path}/ exists already\n")
    })
}

fn inspect(
    context: &FileContext,
    arguments: MkdirArguments,
    caller: &Caller,
) -> Result<Change, FileError> {
    let (target, exists) = destination(&context.workspace, &arguments)?;
    Ok(change(context, &target, exists, caller))
}

fn change(context: &FileContext, target: &TargetPath<'_>, exists: bool, caller: &Caller) -> Change {
    let change = Change::of_new_folder(target);
    if exists {
        return change;
    }
    change.with_record_check((context.undo.as_ref(), caller), target)
}

fn preview(
    context: &FileContext,
    arguments: MkdirArguments,
    request: &PreviewRequest,
) -> Result<String, FileError> {
    let (target, exists) = destination(&context.workspace, &arguments)?;
    Change::expect_shown(&target, &request.inspection, None)?;
    let path = target.preview_path();
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
