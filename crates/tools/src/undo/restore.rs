//! Undoes a turn. Every file is compared with what the turn wrote right before and right after it is exchanged for its
//! original, so a change that someone makes meanwhile is not lost. All of it works on open handles, and no link is
//! followed.

use super::check::{CHANGED, UndoAction, locate, relative};
use super::files::found;
use super::original::Fingerprint;
use super::record::{After, Before, TurnRecord};
use super::steps::Step;
use super::storage::UndoError;
use crate::attributes::Attributes;
use crate::folder::open_regular;
use crate::replace::{
    ReplaceError, exchange_expected, rename_without_replacing, sync_folder, temporary_name,
    write_replacement,
};
use crate::{Trash, Workspace};
use cap_std::fs::Dir;
use serde::Serialize;
use std::ffi::OsStr;
use std::io;

/// What to do if a part of a turn cannot be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoMode {
    /// Change nothing, or stop at the first failure if it was not foreseeable.
    Whole,
    /// Leave that part as it is and undo the rest.
    Partial,
}

/// What undoing one step did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UndoResult {
    /// The file or folder, relative to the workspace if it lies there.
    pub path: String,
    #[serde(flatten)]
    pub outcome: UndoOutcome,
}

/// The outcome of undoing one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum UndoOutcome {
    /// It is as it was before the turn.
    Restored,
    /// It was as before the turn already.
    Unchanged,
    /// A folder that the turn created stays, because something else is in it.
    Kept { reason: String },
    /// It was left as it is.
    Skipped { reason: String },
}

impl TurnRecord {
    /// Undoes the turn, the last step first. `is_allowed` is asked right before each change; if it says no, the rest
    /// is skipped.
    pub fn undo(
        &self,
        workspace: &Workspace,
        trash: &Trash,
        mode: UndoMode,
        is_allowed: &dyn Fn() -> bool,
    ) -> Vec<UndoResult> {
        let mut results = Vec::new();
        let mut stopped = None;
        let steps = self.steps();
        for (at, step) in steps.iter().enumerate().rev() {
            if stopped.is_none() && !is_allowed() {
                stopped = Some("another process has taken over the session");
            }
            let outcome = match stopped {
                Some(reason) => UndoOutcome::Skipped {
                    reason: reason.to_owned(),
                },
                None => self.undo_step((workspace, trash), step, &steps[..at]),
            };
            let is_skipped = matches!(outcome, UndoOutcome::Skipped { .. });
            if is_skipped && mode == UndoMode::Whole {
                stopped = stopped.or(Some("the undo stopped before it"));
            }
            results.push(UndoResult {
                path: relative(workspace, &step.path),
                outcome,
            });
        }
        results
    }

    /// Deletes what is saved of files that were restored.
    pub fn delete_restored(&self, results: &[UndoResult]) -> Result<(), UndoError> {
        let steps = self.steps();
        let skipped = steps
            .iter()
            .rev()
            .zip(results)
            .filter(|(_, result)| matches!(result.outcome, UndoOutcome::Skipped { .. }));
        let saved: Vec<u32> = skipped.flat_map(|(step, _)| step.saved()).collect();
        let dir = self.open()?;
        for number in (1..=self.counts().1).filter(|number| !saved.contains(number)) {
            found(dir.remove_file(number.to_string()))?;
        }
        Ok(())
    }

    fn undo_step(
        &self,
        (workspace, trash): (&Workspace, &Trash),
        step: &Step,
        earlier: &[Step],
    ) -> UndoOutcome {
        let action = self.action((workspace, trash), step, earlier);
        if !matches!(action, UndoAction::Refuse { .. })
            && let Err(reason) = self.keep_other_versions(trash, step)
        {
            return UndoOutcome::Skipped { reason };
        }
        let done = match action {
            UndoAction::Nothing => return UndoOutcome::Unchanged,
            UndoAction::Refuse { reason } => Err(reason),
            UndoAction::Restore => self.restore_file(workspace, step),
            UndoAction::RemoveFile => remove_file(workspace, step),
            UndoAction::RemoveFolder => match remove_folder(workspace, step) {
                Ok(()) => Ok(()),
                Err(reason) => return UndoOutcome::Kept { reason },
            },
            UndoAction::RestoreFromTrash => match &step.before {
                Before::Trash { id } => trash
                    .restore(workspace, id)
                    .map(drop)
                    .map_err(|error| error.to_string()),
                _ => Err(CHANGED.to_owned()),
            },
        };
        match done.and_then(|()| sync_parent(workspace, step)) {
            Ok(()) => UndoOutcome::Restored,
            Err(reason) => UndoOutcome::Skipped { reason },
        }
    }

    /// Puts what others wrote between two changes of the turn into the trash: the store deletes it after the undo.
    fn keep_other_versions(&self, trash: &Trash, step: &Step) -> Result<(), String> {
        for version in &step.other_versions {
            let bytes = self.original(version.saved, &version.content);
            let bytes = bytes.map_err(|error| error.to_string())?;
            let kept = trash.put_version(&step.path, &bytes, version.mode);
            kept.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn restore_file(&self, workspace: &Workspace, step: &Step) -> Result<(), String> {
        let (
            Before::File {
                content,
                mode,
                saved: Some(saved),
            },
            After::File { content: written },
        ) = (&step.before, &step.after)
        else {
            return Err(CHANGED.to_owned());
        };
        let original = self.original(*saved, content);
        let original = original.map_err(|error| error.to_string())?;
        let target = locate(workspace, &step.path)?;
        let (folder, name) = target.parent_and_name().ok_or(CHANGED)?;
        put_back(folder.dir(), name, written, (&original, *mode)).map_err(Refusal::into_reason)
    }
}

/// Waits until an undone step is on the disk: its original is deleted next.
fn sync_parent(workspace: &Workspace, step: &Step) -> Result<(), String> {
    let target = locate(workspace, &step.path)?;
    let (folder, _) = target.parent_and_name().ok_or(CHANGED)?;
    let synced = sync_folder(folder.dir());
    synced.map_err(|error| format!("it is restored, but perhaps not on the disk: {error}"))
}

fn remove_file(workspace: &Workspace, step: &Step) -> Result<(), String> {
    let After::File { content } = &step.after else {
        return Err(CHANGED.to_owned());
    };
    let target = locate(workspace, &step.path)?;
    let (folder, name) = target.parent_and_name().ok_or(CHANGED)?;
    take_away(folder.dir(), name, content).map_err(Refusal::into_reason)
}

fn remove_folder(workspace: &Workspace, step: &Step) -> Result<(), String> {
    let target = locate(workspace, &step.path)?;
    let (folder, name) = target.parent_and_name().ok_or(CHANGED)?;
    // Fails for a link and for a folder that is not empty.
    folder
        .dir()
        .remove_dir(name)
        .map_err(|error| match error.kind() {
            io::ErrorKind::DirectoryNotEmpty => "it is not empty".to_owned(),
            _ => format!("it cannot be removed: {error}"),
        })
}

/// Why a file was not restored.
#[derive(Debug)]
enum Refusal {
    Changed,
    /// It changed, and the new version is now under this name because its own was taken again.
    Moved(String),
    /// It belongs to another user or group now, and lango cannot give the original to them.
    OtherOwner,
    Failed(io::Error),
}

impl Refusal {
    fn into_reason(self) -> String {
        match self {
            Self::Changed => CHANGED.to_owned(),
            Self::Moved(name) => {
                format!("it changed at this moment; one version of it is now named `{name}`")
            }
            Self::OtherOwner => "its owner changed since the turn wrote it".to_owned(),
            Self::Failed(error) => format!("it cannot be written: {error}"),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Changed,
            _ => Self::Failed(error),
        }
    }
}

impl From<ReplaceError> for Refusal {
    fn from(error: ReplaceError) -> Self {
        match error {
            ReplaceError::Changed => Self::Changed,
            ReplaceError::Moved(name) => Self::Moved(name),
            ReplaceError::Failed(error) => error.into(),
        }
    }
}

/// Returns the permissions for the original, which had `mode`, of a file that has the mode `current`. A turn's write keeps
/// them, perhaps without the executable bits; any other permissions were set since then, and stay.
fn mode_of_original(current: u32, mode: u32) -> u32 {
    if [mode, mode & NOT_EXECUTABLE].contains(&current) {
        mode
    } else {
        current
    }
}

/// The permissions that a write carries over to an ordinary file.
const NOT_EXECUTABLE: u32 = 0o666;

/// Exchanges the file `name` for its original, if it is what the turn wrote.
fn put_back(
    folder: &Dir,
    name: &OsStr,
    written: &Fingerprint,
    (original, mode): (&[u8], u32),
) -> Result<(), Refusal> {
    let (current, metadata) = open_regular(folder, name)?;
    let attributes = Attributes::from(&metadata);
    let is_written = |name: &OsStr| {
        let is_same = Attributes::of(folder, name).is_ok_and(|found| found == attributes);
        is_same && written.matches(folder, name)
    };
    let mode = mode_of_original(attributes.mode, mode);
    let (temporary, file) = write_replacement(folder, original, (&current, mode))?;
    let has_owner = file.metadata().map(|new| {
        let new = Attributes::from(&new);
        (new.user, new.group) == (attributes.user, attributes.group)
    });
    if !has_owner.is_ok_and(|has_owner| has_owner) {
        // The refusal is what to report.
        let _ = folder.remove_file(&temporary);
        return Err(Refusal::OtherOwner);
    }
    Ok(exchange_expected(
        folder,
        name,
        (temporary, file),
        is_written,
    )?)
}

/// Removes the file `name`, if it is what the turn wrote: moves it to another name first, and back if it is not.
fn take_away(folder: &Dir, name: &OsStr, written: &Fingerprint) -> Result<(), Refusal> {
    if !written.matches(folder, name) {
        return Err(Refusal::Changed);
    }
    let temporary = temporary_name();
    if !rename_without_replacing(folder, name, temporary.as_ref())? {
        // The file system cannot do that, so this comparison is the last one.
        if !written.matches(folder, name) {
            return Err(Refusal::Changed);
        }
        return Ok(folder.remove_file(name)?);
    }
    if written.matches(folder, temporary.as_ref()) {
        return Ok(folder.remove_file(&temporary)?);
    }
    match rename_without_replacing(folder, temporary.as_ref(), name) {
        Ok(_) => Err(Refusal::Changed),
        Err(_) => Err(Refusal::Moved(temporary)),
    }
}
