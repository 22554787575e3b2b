//! `fs_delete`: moves a file or folder to lango's trash.

use super::{ChangeFunctions, modifying_tool};
use crate::entry_kind::EntryKind;
use crate::file_error::FileError;
use crate::guard::{expect_inspected, guarded_container};
use crate::show;
use crate::target_path::TargetPath;
use crate::tree::{Contents, PREVIEW_NAMES};
use crate::{Trash, Workspace};
use lango_core::{Effect, GuardedTarget, Inspection, PreviewLength, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Deletes a file, a folder with its contents, or a symbolic link (not its target). It is \
    moved to lango's trash, from where the user can restore it.";

pub(super) fn tool(workspace: &Workspace, trash: &Trash) -> Arc<dyn Tool> {
    modifying_tool(
        (workspace.clone(), trash.clone()),
        ("fs_delete", Effect::NonIdempotent),
        DESCRIPTION,
        ChangeFunctions {
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
    let deletion = Deletion::find(context, &arguments.path, PreviewLength::Short)?;
    expect_inspected(deletion.guarded(&context.0).as_ref(), inspection)?;
    let item = context.1.put(&deletion.target, &deletion.contents)?;
    Ok(format!(
        "deleted {} ({}); it is now in lango's trash as {}\n",
        deletion.target.display_path(),
        deletion.contents.summary(),
        item.id
    ))
}

fn guarded(
    context: &Context,
    arguments: DeleteArguments,
) -> Result<Option<GuardedTarget>, FileError> {
    let deletion = Deletion::find(context, &arguments.path, PreviewLength::Short)?;
    Ok(deletion.guarded(&context.0))
}

fn preview(
    context: &Context,
    arguments: DeleteArguments,
    length: PreviewLength,
) -> Result<String, FileError> {
    let Deletion {
        target,
        kind,
        contents,
    } = Deletion::find(context, &arguments.path, length)?;
    let mut text = format!(
        "Deletes the {kind} {} ({})\n",
        target.display_path(),
        contents.summary()
    );
    for name in &contents.first_names {
        text.push_str(&format!("  {name}\n"));
    }
    if !contents.first_names.is_empty() && contents.unnamed() > 0 {
        text.push_str(&format!("  [{} more]\n", contents.unnamed()));
    }
    text.push_str(&format!(
        "It is moved to lango's trash, {}, and can be restored from there\n",
        show::name(context.1.path().as_os_str())
    ));
    Ok(text)
}

/// A file or folder that may be deleted.
struct Deletion<'a> {
    target: TargetPath<'a>,
    kind: EntryKind,
    contents: Contents,
}

impl<'a> Deletion<'a> {
    /// Returns why the entry, or something in it, is guarded.
    fn guarded(&self, workspace: &Workspace) -> Option<GuardedTarget> {
        let container = || {
            let entry = self.contents.guarded.as_ref()?;
            Some(guarded_container(
                workspace.roots(),
                &self.target.path(),
                entry,
            ))
        };
        self.target.guarded().or_else(container)
    }

    fn find(
        (workspace, trash): &'a Context,
        path: &str,
        length: PreviewLength,
    ) -> Result<Self, FileError> {
        let named = match length {
            PreviewLength::Short => PREVIEW_NAMES,
            PreviewLength::Full => usize::MAX,
        };
        let requested = workspace.locate(path)?;
        let target = requested.entry()?;
        let not_deleted = |reason: String| FileError::NotDeleted {
            path: requested.display_path(),
            reason,
        };
        let metadata = target.metadata()?;
        target.expect_changeable()?;
        if workspace.roots().contains_root(&target.path()) {
            let reason = "it is or contains a folder that the user opened; delete entries in it";
            return Err(not_deleted(reason.to_owned()));
        }
        if trash.is_within(&target.path()) {
            let reason = "it contains the trash itself; delete other entries in it";
            return Err(not_deleted(reason.to_owned()));
        }
        let kind = EntryKind::from(metadata.file_type());
        let contents = match kind {
            EntryKind::File | EntryKind::Link => Contents::of_file(metadata.len()),
            EntryKind::Folder => Contents::of_folder(&target.open_folder()?, named)
                .map_err(|obstacle| not_deleted(obstacle.to_string()))?,
            EntryKind::NamedPipe | EntryKind::Socket | EntryKind::Device | EntryKind::Other => {
                let reason = format!("it is a {kind}; ask the user to delete it");
                return Err(not_deleted(reason));
            }
        };
        Ok(Self {
            target,
            kind,
            contents,
        })
    }
}
