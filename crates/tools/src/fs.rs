//! The tools that look at files: `fs_list`, `fs_read`, `fs_stat`.
//!
//! They change nothing and reach only their workspace, so each is pure and safe. What they give back is text: results
//! as they are, and remarks of the tool in brackets on a line of their own.

mod guess;
mod list;
mod page;
mod read;
mod stat;

use crate::Workspace;
use crate::declaration::Declaration;
use crate::file_error::FileError;
use lango_core::{Effect, Risk, Subject, Tool};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use std::sync::Arc;

/// The tools that look at the files of a workspace.
pub fn file_tools(workspace: &Workspace) -> Vec<Arc<dyn Tool>> {
    vec![
        list::tool(workspace),
        read::tool(workspace),
        stat::tool(workspace),
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

/// A call of a tool as a remark shows it, in the order of the type's fields: `fs_list {"path":"src"}`.
fn call_text(name: &str, arguments: &impl Serialize) -> String {
    // Types with plain fields always have a JSON text.
    format!(
        "{name} {}",
        serde_json::to_string(arguments).unwrap_or_default()
    )
}
