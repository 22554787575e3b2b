//! `fs_delete`: a file or folder moved to lango's trash.

use super::changing_tool;
use crate::file_error::FileError;
use crate::kind::Kind;
use crate::show;
use crate::spot::Spot;
use crate::tree::Contents;
use crate::{Trash, Workspace};
use lango_core::{Effect, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Deletes a file, a folder with all it holds, or a symbolic link (not what it leads to). \
    It goes to lango's trash, from where the person can restore it.";

pub(super) fn tool(workspace: &Workspace, trash: &Trash) -> Arc<dyn Tool> {
    changing_tool(
        (workspace.clone(), trash.clone()),
        ("fs_delete", Effect::Effect),
        DESCRIPTION,
        delete,
        preview,
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteArguments {
    /// The file or folder, relative to the workspace.
    path: String,
}

type Context = (Workspace, Trash);

fn delete(context: &Context, arguments: DeleteArguments) -> Result<String, FileError> {
    let doomed = Doomed::find(context, &arguments.path)?;
    let item = context.1.put(&doomed.spot, &doomed.contents)?;
    Ok(format!(
        "deleted {} ({}); it is in lango's trash as {}\n",
        doomed.spot.shown(),
        doomed.contents.summary(),
        item.id
    ))
}

fn preview(context: &Context, arguments: DeleteArguments) -> Result<String, FileError> {
    let Doomed {
        spot,
        kind,
        contents,
    } = Doomed::find(context, &arguments.path)?;
    let mut text = format!(
        "Deletes the {kind} {} ({})\n",
        spot.shown(),
        contents.summary()
    );
    for name in &contents.first {
        text.push_str(&format!("  {name}\n"));
    }
    if !contents.first.is_empty() && contents.unnamed() > 0 {
        text.push_str(&format!("  [{} more]\n", contents.unnamed()));
    }
    text.push_str(&format!(
        "It goes to lango's trash, {}, and can be restored from there\n",
        show::name(context.1.path().as_os_str())
    ));
    Ok(text)
}

/// What is to go, and nothing speaks against it.
struct Doomed<'a> {
    spot: Spot<'a>,
    kind: Kind,
    contents: Contents,
}

impl<'a> Doomed<'a> {
    fn find((workspace, trash): &'a Context, path: &str) -> Result<Self, FileError> {
        let place = workspace.locate(path)?;
        let spot = place.entry()?;
        let not_deleted = |reason: String| FileError::NotDeleted {
            path: place.shown(),
            reason,
        };
        let metadata = spot.metadata()?;
        spot.expect_changeable()?;
        if workspace.roots().holds_root(&spot.path()) {
            let reason = "it is, or holds, a folder that the person opened; delete entries in it";
            return Err(not_deleted(reason.to_owned()));
        }
        if trash.is_within(&spot.path()) {
            let reason = "it holds the trash itself; delete other entries in it";
            return Err(not_deleted(reason.to_owned()));
        }
        let kind = Kind::from(metadata.file_type());
        let contents = match kind {
            Kind::File | Kind::Link => Contents::of_file(metadata.len()),
            Kind::Folder => Contents::of_folder(&spot.open_folder()?)
                .map_err(|obstacle| not_deleted(obstacle.to_string()))?,
            Kind::NamedPipe | Kind::Socket | Kind::Device | Kind::Other => {
                let reason = format!("it is a {kind}; ask the person to delete it");
                return Err(not_deleted(reason));
            }
        };
        Ok(Self {
            spot,
            kind,
            contents,
        })
    }
}
