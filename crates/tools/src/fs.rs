//! The tools that look at files (`fs_list`, `fs_read`, `fs_stat`, `fs_search`) and those that change them (`fs_write`,
//! `fs_edit`, `fs_mkdir`, `fs_delete`).
//!
//! The former are pure and safe. The latter do what can be undone, and show what they would do to a person who is
//! asked. What they give back is text: results as they are, and remarks of the tool in brackets on a line of their own.

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

use crate::declaration::Blocking;
use crate::file_error::FileError;
use crate::{Trash, Workspace};
use lango_core::{Declaration, Effect, Risk, Subject, Tool};
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
fn looking_tool<A: JsonSchema + DeserializeOwned + Send + 'static>(
    workspace: &Workspace,
    name: &'static str,
    description: &'static str,
    look: fn(&Workspace, A) -> Result<String, FileError>,
) -> Arc<dyn Tool> {
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

/// A tool that changes files: what it says of itself, and its two functions of the workspace, or whatever else it needs.
fn changing_tool<C, A>(
    context: C,
    (name, effect): (&'static str, Effect),
    description: &'static str,
    change: fn(&C, A) -> Result<String, FileError>,
    preview: fn(&C, A) -> Result<String, FileError>,
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
    let own = context.clone();
    declaration.with_blocking_code_and_preview(
        move |arguments| Ok(change(&context, arguments)?),
        move |arguments| Ok(preview(&own, arguments)?),
    )
}

/// A call of a tool as a remark shows it, in the order of the type's fields: `fs_list {"path":"src"}`.
fn call_text(name: &str, arguments: &impl Serialize) -> String {
    // Types with plain fields always have a JSON text.
    format!(
        "{name} {}",
        serde_json::to_string(arguments).unwrap_or_default()
    )
}
