//! The tools that look at files (`fs_list`, `fs_read`, `fs_stat`, `fs_search`) and those that change them (`fs_write`,
//! `fs_edit`, `fs_mkdir`, `fs_delete`).
//!
//! The former are pure and safe. The latter do what can be undone, and show what they would do to a person who is
//! asked. What they give back is text: results as they are, and remarks of the tool in brackets on a line of their own. Only
//! `fs_read` gives back images.

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
    Declaration, Effect, Extent, GuardedTarget, Inspection, Risk, Subject, Tool, ToolOutput,
};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use std::sync::Arc;

/// The tools that look at the files of a workspace and change them. What they delete goes to the trash.
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

/// A tool that only looks at files.
fn looking_tool<A, O>(
    workspace: &Workspace,
    name: &'static str,
    description: &'static str,
    look: fn(&Workspace, A) -> Result<O, FileError>,
) -> Arc<dyn Tool>
where
    A: JsonSchema + DeserializeOwned + Send + 'static,
    O: Into<ToolOutput> + Send + 'static,
{
    let workspace = workspace.clone();
    let declaration = Declaration {
        name,
        description,
        effect: Effect::Pure,
        risk: Risk::Safe,
        subject: Subject::Path,
    };
    declaration.with_blocking_code(move |arguments| Ok(look(&workspace, arguments)?))
}

/// What a tool that changes files does with a call.
struct Change<C, A> {
    /// Does it, unless it would change something guarded that was not inspected.
    run: fn(&C, A, &Inspection) -> Result<String, FileError>,
    preview: fn(&C, A, Extent) -> Result<String, FileError>,
    /// What it would change that is guarded.
    guarded: fn(&C, A) -> Result<Option<GuardedTarget>, FileError>,
}

/// A tool that changes files: what it says of itself, and its functions of the workspace, or whatever else it needs.
fn changing_tool<C, A>(
    context: C,
    (name, effect): (&'static str, Effect),
    description: &'static str,
    change: Change<C, A>,
) -> Arc<dyn Tool>
where
    C: Clone + Send + Sync + 'static,
    A: JsonSchema + DeserializeOwned + Send + 'static,
{
    let declaration = Declaration {
        name,
        description,
        effect,
        risk: Risk::Moderate,
        subject: Subject::Path,
    };
    let (shown, inspected) = (context.clone(), context.clone());
    let parts = BlockingParts {
        preview: Box::new(move |arguments, extent| {
            Ok((change.preview)(&shown, arguments, extent)?)
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

/// How many lines of a difference a preview has.
fn preview_lines(extent: Extent) -> usize {
    match extent {
        Extent::Short => PREVIEW_LINES,
        Extent::Whole => usize::MAX,
    }
}

/// A call of a tool as a remark shows it, in the order of the type's fields: `fs_list {"path":"src"}`.
fn call_text(name: &str, arguments: &impl Serialize) -> String {
    // Types with plain fields always have a JSON text.
    format!(
        "{name} {}",
        serde_json::to_string(arguments).unwrap_or_default()
    )
}
