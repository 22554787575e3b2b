//! `fs_stat`: returns the metadata of one entry without opening it.

use super::{ReadFunctions, read_only_tool};
use crate::Workspace;
use crate::entry_kind::EntryKind;
use crate::file_error::FileError;
use crate::show;
use crate::target_path::TargetPath;
use lango_core::Tool;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Returns the kind, the size and the time of the last change of a file or folder, and the \
    target of a symbolic link. Does not follow the link.";

pub(super) fn tool(workspace: &Workspace) -> Arc<dyn Tool> {
    let functions = ReadFunctions { resolve, run: stat };
    read_only_tool(workspace, "fs_stat", DESCRIPTION, functions)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatArguments {
    /// The file or folder, relative to the workspace.
    path: String,
}

fn resolve<'a>(
    workspace: &'a Workspace,
    arguments: &StatArguments,
) -> Result<TargetPath<'a>, FileError> {
    workspace.locate(&arguments.path)?.entry()
}

fn stat(entry: &TargetPath<'_>, _: StatArguments) -> Result<String, FileError> {
    let metadata = entry.metadata()?;
    let kind = EntryKind::from(metadata.file_type());
    let mut lines = vec![entry.display_path().to_owned(), format!("kind: {kind}")];
    match kind {
        EntryKind::File => {
            let bytes = metadata.len();
            lines.push(format!(
                "size: {} ({})",
                show::size(bytes),
                show::count(bytes, "byte")
            ));
        }
        EntryKind::Link => {
            lines.push(format!(
                "target: {}",
                show::name(entry.link_target()?.as_os_str())
            ));
        }
        _ => {}
    }
    // Some file systems do not store the time.
    if let Ok(modified) = metadata.modified() {
        lines.push(format!("modified: {}", show::utc(modified.into_std())));
    }
    Ok(lines.join("\n") + "\n")
}
