//! `fs_stat`: what is known of one entry without opening it.

use super::looking_tool;
use crate::Workspace;
use crate::file_error::FileError;
use crate::kind::Kind;
use crate::show;
use lango_core::Tool;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Tells the kind, the size and the time of the last change of a file or folder, and the \
    target of a symbolic link. Does not follow the link.";

pub(super) fn tool(workspace: &Workspace) -> Arc<dyn Tool> {
    looking_tool(workspace, "fs_stat", DESCRIPTION, stat)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatArguments {
    /// The file or folder, relative to the workspace.
    path: String,
}

fn stat(workspace: &Workspace, arguments: StatArguments) -> Result<String, FileError> {
    let entry = workspace.locate(&arguments.path)?.entry()?;
    let metadata = entry.metadata()?;
    let kind = Kind::from(metadata.file_type());
    let mut lines = vec![entry.shown().to_owned(), format!("kind: {kind}")];
    match kind {
        Kind::File => {
            let bytes = metadata.len();
            lines.push(format!(
                "size: {} ({})",
                show::size(bytes),
                show::count(bytes, "byte")
            ));
        }
        Kind::Link => {
            lines.push(format!(
                "target: {}",
                show::name(entry.link_target()?.as_os_str())
            ));
        }
        _ => {}
    }
    // Some file systems keep no time; then there is none to show.
    if let Ok(modified) = metadata.modified() {
        lines.push(format!("modified: {}", show::utc(modified.into_std())));
    }
    Ok(lines.join("\n") + "\n")
}
