//! Checks what undoing a turn would do, without changing anything.

use super::original::Fingerprint;
use super::record::{After, Before, TurnRecord};
use super::steps::Step;
use crate::entry_kind::EntryKind;
use crate::file_error::FileError;
use crate::requested_path::RequestedPath;
use crate::target_path::TargetPath;
use crate::{Trash, Workspace};
use serde::Serialize;
use std::path::Path;

/// What undoing one step would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UndoStep {
    /// The file or folder, relative to the workspace if it lies there.
    pub path: String,
    #[serde(flatten)]
    pub action: UndoAction,
    /// Whether something else changed the file between two changes of the turn. Undoing moves what it left to the trash.
    pub has_other_changes: bool,
    /// Whether some of that was not saved, so that undoing discards it.
    pub discards_other_changes: bool,
}

/// How a step is undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum UndoAction {
    /// Writes the original content and mode.
    Restore,
    /// Removes a file that the turn created.
    RemoveFile,
    /// Removes a folder that the turn created, if it is empty by then.
    RemoveFolder,
    /// Moves a file or folder back from the trash.
    RestoreFromTrash,
    /// Everything is as it was before the turn.
    Nothing,
    /// It cannot be undone.
    Refuse { reason: String },
}

impl UndoAction {
    pub(super) fn refuse(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::Refuse { reason }
    }
}

impl TurnRecord {
    /// Returns what undoing the turn would do, in that order. A step that depends on a later one is checked when it is
    /// undone.
    pub fn check(&self, workspace: &Workspace, trash: &Trash) -> Vec<UndoStep> {
        let steps = self.steps();
        let check = |(at, step): (usize, &Step)| {
            let action = if step.is_covered_by(&steps[at + 1..]) {
                self.expected_action(step)
            } else {
                self.action((workspace, trash), step, &steps[..at])
            };
            UndoStep {
                path: relative(workspace, &step.path),
                action,
                has_other_changes: step.has_unsaved_changes || !step.other_versions.is_empty(),
                discards_other_changes: step.has_unsaved_changes,
            }
        };
        steps.iter().enumerate().rev().map(check).collect()
    }

    /// Returns what a step needs if nothing else has changed.
    fn expected_action(&self, step: &Step) -> UndoAction {
        match (&step.before, &step.after) {
            (Before::Unsaved { reason }, _) => UndoAction::refuse(reason.to_string()),
            (Before::Trash { .. }, _) => UndoAction::RestoreFromTrash,
            (Before::Absent, After::Folder) => UndoAction::RemoveFolder,
            (Before::Absent, _) => UndoAction::RemoveFile,
            (Before::File { .. }, _) => UndoAction::Restore,
        }
    }

    /// Returns what a step needs according to what is at its path now. `earlier` are the steps before it: an undo that was
    /// interrupted may have come to them already.
    pub(super) fn action(
        &self,
        (workspace, trash): (&Workspace, &Trash),
        step: &Step,
        earlier: &[Step],
    ) -> UndoAction {
        match self.action_now(workspace, trash, step) {
            UndoAction::Refuse { .. } if self.is_undone((workspace, trash), step, earlier) => {
                UndoAction::Nothing
            }
            action => action,
        }
    }

    /// Whether the step was undone before: the file is what an earlier step of it left or found, and what was deleted in
    /// between is no longer in the trash.
    fn is_undone(
        &self,
        (workspace, trash): (&Workspace, &Trash),
        step: &Step,
        earlier: &[Step],
    ) -> bool {
        let wrote =
            |other: &Step| other.path == step.path && matches!(other.after, After::File { .. });
        let Some(at) = earlier.iter().rposition(wrote) else {
            return false;
        };
        let deletions = earlier[at + 1..].iter().chain([step]).filter_map(|other| {
            let is_of_path = step.path.starts_with(&other.path);
            match &other.before {
                Before::Trash { id } if is_of_path => Some(trash.has(id, &other.path)),
                _ => None,
            }
        });
        let deletions: Vec<bool> = deletions.collect();
        let is_restored = !deletions.is_empty() && !deletions.contains(&true);
        let action = || self.action((workspace, trash), &earlier[at], &earlier[..at]);
        is_restored && !matches!(action(), UndoAction::Refuse { .. })
    }

    fn action_now(&self, workspace: &Workspace, trash: &Trash, step: &Step) -> UndoAction {
        let expected = self.expected_action(step);
        if matches!(expected, UndoAction::Refuse { .. }) {
            return expected;
        }
        let target = match locate(workspace, &step.path) {
            Ok(target) => target,
            Err(reason) => return UndoAction::refuse(reason),
        };
        let kind = match target.kind() {
            Ok(kind) => kind,
            Err(error) => return UndoAction::refuse(explain(&error)),
        };
        match (&step.before, &step.after) {
            (Before::Trash { id }, _) => match (trash.has(id, &step.path), kind) {
                (true, None) => expected,
                (true, Some(_)) => UndoAction::refuse("it exists again"),
                // It was restored by hand, or the turn was interrupted before it deleted it.
                (false, Some(_)) => UndoAction::Nothing,
                (false, None) => UndoAction::refuse("it is no longer in the trash"),
            },
            (_, After::File { content }) => self.file_action(&target, kind, step, content),
            (_, After::Folder) => match kind {
                Some(EntryKind::Folder) => expected,
                _ => UndoAction::Nothing,
            },
            (_, After::Absent) => UndoAction::Nothing,
        }
    }

    fn file_action(
        &self,
        target: &TargetPath<'_>,
        kind: Option<EntryKind>,
        step: &Step,
        after: &Fingerprint,
    ) -> UndoAction {
        let before = match &step.before {
            Before::File { content, .. } => Some(content),
            _ => None,
        };
        let (Some((folder, name)), Some(kind)) = (target.parent_and_name(), kind) else {
            return match before {
                None => UndoAction::Nothing,
                Some(_) => UndoAction::refuse("it was deleted or moved since the turn wrote it"),
            };
        };
        if kind != EntryKind::File {
            return UndoAction::refuse(format!("it is a {kind} now"));
        }
        let sizes = [after.size, before.map_or(after.size, |before| before.size)];
        match Fingerprint::of_file(folder.dir(), name, &sizes) {
            Err(error) => UndoAction::refuse(format!("it cannot be read: {error}")),
            Ok(Some(current)) if current == *after => self.saved_action(step),
            Ok(current) if current.is_some() && current.as_ref() == before => UndoAction::Nothing,
            Ok(_) => UndoAction::refuse(CHANGED),
        }
    }

    /// Returns what a step of a file needs whose content is what the turn wrote. Fails if the original is missing.
    fn saved_action(&self, step: &Step) -> UndoAction {
        let Before::File { content, saved, .. } = &step.before else {
            return UndoAction::RemoveFile;
        };
        let saved = saved.ok_or_else(|| "its original was not saved".to_owned());
        let read = saved.and_then(|saved| {
            let original = self.original(saved, content);
            original.map_err(|error| error.to_string())
        });
        match read {
            Ok(_) => UndoAction::Restore,
            Err(reason) => UndoAction::refuse(reason),
        }
    }
}

/// Why a changed file is not overwritten.
pub(super) const CHANGED: &str = "it changed since the turn wrote it";

/// Resolves a recorded path, as the file tools do. Fails if it now contains a link, because there was none, or if the
/// policy allows no changes there. A guarded path may be restored: the user does it, not an agent.
pub(super) fn locate<'a>(workspace: &'a Workspace, path: &Path) -> Result<TargetPath<'a>, String> {
    let text = path.to_str().unwrap_or_default();
    let requested = RequestedPath::new(workspace.roots(), text);
    let target = requested
        .and_then(|requested| requested.entry())
        .map_err(|error| explain(&error))?;
    if target.path() != path {
        return Err("its path now contains a link".to_owned());
    }
    target
        .expect_changeable()
        .map_err(|error| explain(&error))?;
    Ok(target)
}

/// Explains an error of the file tools to the user.
fn explain(error: &FileError) -> String {
    match error {
        FileError::Outside { .. } => "it is outside the workspace".to_owned(),
        FileError::Missing { .. } | FileError::Reserved { .. } => {
            "lango has no access to it here".to_owned()
        }
        FileError::Protected { .. } | FileError::ReadOnly { .. } => {
            "it is protected from changes".to_owned()
        }
        FileError::NotAFolder { .. } | FileError::Occupied { .. } => {
            "a parent of it is no longer a folder".to_owned()
        }
        error => error.to_string(),
    }
}

/// Returns a path relative to the workspace if it lies there.
pub(super) fn relative(workspace: &Workspace, path: &Path) -> String {
    let path = workspace.roots().shorten(path);
    path.to_string_lossy().into_owned()
}
