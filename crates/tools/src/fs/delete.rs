//! `fs_delete`: a file or folder moved to lango's trash.

use super::{Change, changing_tool};
use crate::file_error::FileError;
use crate::guard::{expect_inspected, guarded_holder};
use crate::kind::Kind;
use crate::show;
use crate::spot::Spot;
use crate::tree::{Contents, NAMED};
use crate::{Trash, Workspace};
use lango_core::{Effect, Extent, GuardedTarget, Inspection, Tool};
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
        Change {
            run: delete,
            preview,
            guarded,
        },
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteArguments {
    /// The file or folder, relative to the workspace.
    path: String,
}

type Context = (Workspace, Trash);

fn delete(
    context: &Context,
    arguments: DeleteArguments,
    inspection: &Inspection,
) -> Result<String, FileError> {
    let doomed = Doomed::find(context, &arguments.path, Extent::Short)?;
    expect_inspected(doomed.guarded(&context.0).as_ref(), inspection)?;
    let item = context.1.put(&doomed.spot, &doomed.contents)?;
    Ok(format!(
        "deleted {} ({}); it is in lango's trash as {}\n",
        doomed.spot.shown(),
        doomed.contents.summary(),
        item.id
    ))
}

fn guarded(
    context: &Context,
    arguments: DeleteArguments,
) -> Result<Option<GuardedTarget>, FileError> {
    let doomed = Doomed::find(context, &arguments.path, Extent::Short)?;
    Ok(doomed.guarded(&context.0))
}

fn preview(
    context: &Context,
    arguments: DeleteArguments,
    extent: Extent,
) -> Result<String, FileError> {
    let Doomed {
        spot,
        kind,
        contents,
    } = Doomed::find(context, &arguments.path, extent)?;
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
    /// What is guarded about it, or in it.
    fn guarded(&self, workspace: &Workspace) -> Option<GuardedTarget> {
        let holder = || {
            let held = self.contents.guarded.as_ref()?;
            Some(guarded_holder(workspace.roots(), &self.spot.path(), held))
        };
        self.spot.guarded().or_else(holder)
    }

    fn find(
        (workspace, trash): &'a Context,
        path: &str,
        extent: Extent,
    ) -> Result<Self, FileError> {
        let named = match extent {
            Extent::Short => NAMED,
            Extent::Whole => usize::MAX,
        };
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
            Kind::Folder => Contents::of_folder(&spot.open_folder()?, named)
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
