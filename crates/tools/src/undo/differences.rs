//! The differences between the originals of changed files and the files as they are now.

use super::check::{locate, relative};
use super::original::Original;
use super::record::{Before, TurnRecord};
use crate::entry_kind::EntryKind;
use crate::{Workspace, diff};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Maximum number of files that are compared.
const MAX_FILES: usize = 500;

/// How a file differs from its original.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileDifference {
    /// The file, relative to the workspace if it lies there.
    pub path: String,
    pub change: FileChange,
    /// Added and removed lines; `None` if one of the versions is not text, is too large, or was not saved.
    pub lines: Option<(usize, usize)>,
    /// The differing lines in the unified format, without a header. Empty if `lines` is `None`.
    pub diff: String,
}

/// The kind of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChange {
    Created,
    Changed,
    Deleted,
}

impl FileChange {
    /// Returns the word for a list of changes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Deleted => "deleted",
        }
    }
}

/// Compares the files that these turns changed with their originals, from before the first of the turns. The turns are
/// in the order in which they ran. Leaves out files that are the same, and shortens the diff of a file to `lines` lines.
pub fn differences(
    workspace: &Workspace,
    turns: &[TurnRecord],
    lines: usize,
) -> Vec<FileDifference> {
    let mut first: BTreeMap<_, (&TurnRecord, Before)> = BTreeMap::new();
    for record in turns {
        for step in record.steps() {
            first.entry(step.path).or_insert((record, step.before));
        }
    }
    let compare = |(path, (record, before))| {
        let path: std::path::PathBuf = path;
        difference(workspace, &path, record, &before, lines)
    };
    first
        .into_iter()
        .filter_map(compare)
        .take(MAX_FILES)
        .collect()
}

fn difference(
    workspace: &Workspace,
    path: &Path,
    record: &TurnRecord,
    before: &Before,
    lines: usize,
) -> Option<FileDifference> {
    let target = locate(workspace, path).ok();
    let kind = target
        .as_ref()
        .and_then(|target| target.kind().ok().flatten());
    let old = match before {
        Before::Absent => Some(Original::Absent),
        Before::File {
            content,
            mode,
            saved,
        } => saved
            .and_then(|saved| record.original(saved, content).ok())
            .map(|bytes| Original::File { bytes, mode: *mode }),
        Before::Unsaved { .. } | Before::Trash { .. } => None,
    };
    let new = match (&target, kind) {
        (_, None) => Some(Original::Absent),
        (Some(target), Some(EntryKind::File)) => Original::read(target).ok(),
        _ => None,
    };
    let change = match (before, kind) {
        (Before::Absent, None | Some(EntryKind::Folder)) => return None,
        (Before::Absent, Some(_)) => FileChange::Created,
        (_, None) => FileChange::Deleted,
        (_, Some(_)) => FileChange::Changed,
    };
    let texts = old.as_ref().and_then(Original::text);
    let texts = texts.zip(new.as_ref().and_then(Original::text));
    if texts.is_some_and(|(old, new)| old == new) && change == FileChange::Changed {
        return None;
    }
    let counted = texts.map(|(old, new)| diff::counts(old, new));
    Some(FileDifference {
        path: relative(workspace, path),
        change,
        lines: counted.map(|counts| (counts.added, counts.removed)),
        diff: texts.map_or_else(String::new, |(old, new)| diff::unified(old, new, lines)),
    })
}
