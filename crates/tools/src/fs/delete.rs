//! `fs_delete`: moves a file or folder to lango's trash.

use super::{ChangeFunctions, FileContext, modifying_tool};
use crate::TrashItem;
use crate::change::Change;
use crate::declaration::Call;
use crate::entry_kind::EntryKind;
use crate::file_error::FileError;
use crate::guard::guarded_container;
use crate::show;
use crate::target_path::TargetPath;
use crate::tree::{Contents, PREVIEW_NAMES, file_state};
use crate::undo::Original;
use cap_std::fs::Metadata;
use lango_core::{Caller, Effect, PreviewLength, PreviewRequest, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

const DESCRIPTION: &str = "Deletes a file, a folder with its contents, or a symbolic link (not its target). It is \
    moved to lango's trash, from where the user can restore it.";

pub(super) fn tool(context: &FileContext) -> Arc<dyn Tool> {
    modifying_tool(
        context,
        ("fs_delete", Effect::NonIdempotent),
        DESCRIPTION,
        ChangeFunctions {
            run: delete,
            preview,
            inspect,
        },
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteArguments {
    /// The file or folder, relative to the workspace.
    path: String,
}

fn delete(
    context: &FileContext,
    arguments: DeleteArguments,
    call: &Call,
) -> Result<String, FileError> {
    let recorder = context.recorder(call)?;
    let deletion = Deletion::find(context, &arguments.path, PreviewLength::Short)?;
    let change = deletion.change(context, &call.caller);
    change.expect_inspected(&deletion.target, &call.caller.inspection)?;
    let path = deletion.target.display_path();
    let record = |item: &TrashItem| {
        let recorded = recorder.delete(&item.path, &item.id);
        recorded.map_err(|error| FileError::not_recorded(path, &error))?;
        recorder.expect_running()
    };
    let item = context
        .trash
        .put(&deletion.target, &deletion.contents, record)?;
    let summary = deletion.contents.summary();
    let id = item.id;
    Ok(format!(
        "deleted {path}\n{summary}; it is now in lango's trash as {id}\n"
    ))
}

fn inspect(
    context: &FileContext,
    arguments: DeleteArguments,
    caller: &Caller,
) -> Result<Change, FileError> {
    let deletion = Deletion::find(context, &arguments.path, PreviewLength::Short)?;
    Ok(deletion.change(context, caller))
}

fn preview(
    context: &FileContext,
    arguments: DeleteArguments,
    request: &PreviewRequest,
) -> Result<String, FileError> {
    let Deletion {
        target,
        kind,
        contents,
        state,
    } = Deletion::find(context, &arguments.path, request.length)?;
    Change::expect_shown(&target, &request.inspection, Some(&state))?;
    let mut text = format!(
        "Deletes the {kind} {} ({})\n",
        target.preview_path(),
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
        show::name(context.trash.path().as_os_str())
    ));
    Ok(text)
}

/// A file or folder that may be deleted.
struct Deletion<'a> {
    target: TargetPath<'a>,
    kind: EntryKind,
    contents: Contents,
    /// What is deleted, as bytes that differ if it changes.
    state: Vec<u8>,
}

impl<'a> Deletion<'a> {
    /// Returns what the deletion changes: the entry, or something in it, may be guarded or executed.
    fn change(&self, context: &FileContext, caller: &Caller) -> Change {
        let container = || {
            let entry = self.contents.guarded.as_ref()?;
            Some(guarded_container(
                context.workspace.roots(),
                &self.target.path(),
                entry,
            ))
        };
        let executed = self.contents.executed.as_deref();
        let change = Change::of_deletion(&self.target, self.kind, executed)
            .replacing(&self.state)
            .with_record_check((context.undo.as_ref(), caller), &self.target);
        Change {
            guarded: change.guarded.or_else(container),
            ..change
        }
    }

    fn find(
        context: &'a FileContext,
        path: &str,
        length: PreviewLength,
    ) -> Result<Self, FileError> {
        let named = match length {
            PreviewLength::Short => PREVIEW_NAMES,
            PreviewLength::Full => usize::MAX,
        };
        let FileContext {
            workspace, trash, ..
        } = context;
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
        let state = match kind {
            EntryKind::Folder => contents.state(),
            _ => state_of_file(&target, kind, &metadata),
        };
        Ok(Self {
            target,
            kind,
            contents,
            state,
        })
    }
}

/// Returns the kind of a file or link and its content. A file that is too large or cannot be read has its size and times
/// instead.
fn state_of_file(target: &TargetPath<'_>, kind: EntryKind, metadata: &Metadata) -> Vec<u8> {
    let content = match kind {
        EntryKind::Link => target
            .link_target()
            .ok()
            .map(|path| path.into_os_string().into_vec()),
        _ => match Original::read(target) {
            Ok(Original::File { bytes, .. }) => Some(bytes),
            Ok(Original::Absent | Original::Large { .. }) | Err(_) => None,
        },
    };
    let mut state = kind.to_string().into_bytes();
    match content {
        Some(content) => state.extend(content),
        None => state.extend(file_state(kind, metadata).into_bytes()),
    }
    state
}
