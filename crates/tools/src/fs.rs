//! The tools that read files (`fs_list`, `fs_read`, `fs_stat`, `fs_search`) and the tools that change them (`fs_write`,
//! `fs_edit`, `fs_mkdir`, `fs_delete`).
//!
//! The first group is pure and safe. The changes of the second group can be undone, and each tool can preview its
//! change for the user who approves it. All of them return text; notes of the tool itself are in brackets on separate
//! lines. Only `fs_read` also returns images.

mod delete;
mod edit;
mod guess;
mod list;
mod mkdir;
mod page;
mod read;
mod search;
mod stat;
mod text;
mod write;

use crate::declaration::{Blocking, BlockingParts};
use crate::diff::PREVIEW_LINES;
use crate::file_error::FileError;
use crate::{Trash, Workspace};
use lango_core::{
    Effect, GuardedTarget, Inspection, PreviewLength, Risk, RuleSubject, Tool, ToolDeclaration,
    ToolOutput,
};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use std::sync::Arc;

/// Creates the tools that read and change the files of a workspace. Deleted files go to the trash.
pub fn file_tools(workspace: &Workspace, trash: &Trash) -> Vec<Arc<dyn Tool>> {
    vec![
        list::tool(workspace),
        read::tool(workspace),
        stat::tool(workspace),
        write::tool(workspace),
        edit::tool(workspace),
        mkdir::tool(workspace),
        delete::tool(workspace, trash),
        search::tool(workspace),
    ]
}

/// Creates a tool that only reads.
fn read_only_tool<A, O>(
    workspace: &Workspace,
    name: &'static str,
    description: &'static str,
    run: fn(&Workspace, A) -> Result<O, FileError>,
) -> Arc<dyn Tool>
where
    A: JsonSchema + DeserializeOwned + Send + 'static,
    O: Into<ToolOutput> + Send + 'static,
{
    let workspace = workspace.clone();
    let declaration = ToolDeclaration {
        name,
        description,
        effect: Effect::Pure,
        risk: Risk::Safe,
        subject: RuleSubject::Path,
    };
    declaration.with_blocking_code(move |arguments| Ok(run(&workspace, arguments)?))
}

/// The functions of a tool that changes files.
struct ChangeFunctions<C, A> {
    /// Runs the call. Fails if it would change a guarded path that was not inspected.
    run: fn(&C, A, &Inspection) -> Result<String, FileError>,
    preview: fn(&C, A, PreviewLength) -> Result<String, FileError>,
    /// Returns the guarded path that the call would change.
    guarded: fn(&C, A) -> Result<Option<GuardedTarget>, FileError>,
}

/// Creates a tool that changes files. Its functions get `context`: the workspace, or whatever else they need.
fn modifying_tool<C, A>(
    context: C,
    (name, effect): (&'static str, Effect),
    description: &'static str,
    change: ChangeFunctions<C, A>,
) -> Arc<dyn Tool>
where
    C: Clone + Send + Sync + 'static,
    A: JsonSchema + DeserializeOwned + Send + 'static,
{
    let declaration = ToolDeclaration {
        name,
        description,
        effect,
        risk: Risk::Moderate,
        subject: RuleSubject::Path,
    };
    let (shown, inspected) = (context.clone(), context.clone());
    let parts = BlockingParts {
        preview: Box::new(move |arguments, length| {
            Ok((change.preview)(&shown, arguments, length)?)
        }),
        inspect: Some(Box::new(move |arguments| Inspection {
            // A call that would fail changes nothing.
            guarded: (change.guarded)(&inspected, arguments).ok().flatten(),
            ..Inspection::default()
        })),
    };
    declaration.with_blocking_parts(
        move |caller, arguments| Ok((change.run)(&context, arguments, &caller.inspection)?),
        parts,
    )
}

/// Returns the maximum number of diff lines in a preview.
fn preview_lines(length: PreviewLength) -> usize {
    match length {
        PreviewLength::Short => PREVIEW_LINES,
        PreviewLength::Full => usize::MAX,
    }
}

/// Formats a tool call for a note, with arguments in the order of the type's fields: `fs_list {"path":"src"}`.
fn call_text(name: &str, arguments: &impl Serialize) -> String {
    // Structs with plain fields always serialize.
    format!(
        "{name} {}",
        serde_json::to_string(arguments).unwrap_or_default()
    )
}
