//! What a call would change, as the gate needs to know it: whether the target is [guarded](crate::guard), and whether it
//! is more than an edit of an ordinary file of the workspace. Mode `accept-edits` runs ordinary edits without a
//! question, because an undo restores them. So a file that other programs execute is not ordinary, nor is one that is
//! not saved. The tool finds the same facts again when it runs, from the handles that it writes through, and changes
//! nothing if they are worse than those that were approved, or if the path leads to another file.

use crate::entry_kind::EntryKind;
use crate::file_error::FileError;
use crate::replace::ExecutableBits;
use crate::roots::Roots;
use crate::show;
use crate::target_path::TargetPath;
use crate::undo::UndoStore;
use cap_std::fs::{Metadata, PermissionsExt};
use lango_core::{Caller, FileEdit, GuardedTarget, Inspection, PathResolution, Text};
use lango_sandbox::{executed_by, executed_in};
use sha2::{Digest as _, Sha256};
use std::io::Read;
use std::path::Path;

/// The first bytes of a file that the operating system runs as a script.
const SCRIPT_MARK: &[u8] = b"#!";

/// Stands for the digest of what is replaced, if the call failed when it was inspected: the user saw no change.
const NOTHING_SEEN: &str = "nothing";

/// Why an undo could not restore a file if there is no undo store.
const NO_STORE: &str = "originals are not saved in this run";

/// The preview of a call whose target is not what it was when the call was checked.
pub(crate) const CHANGED_SINCE_CHECK: &str = "What this call would do cannot be shown, because something has changed since it was \
     checked. Deny it: the agent can call again.\n";

/// Facts about a change.
#[derive(Debug, Default)]
pub(crate) struct Change {
    pub(crate) guarded: Option<GuardedTarget>,
    pub(crate) edit: FileEdit,
    pub(crate) path: Option<PathResolution>,
}

impl Change {
    /// Inspects the change of a file to this content.
    pub(crate) fn of_file(target: &TargetPath<'_>, content: &str) -> Self {
        let caution = caution_of_names(target, executed_by)
            .or_else(|| caution_of_file(target))
            .or_else(|| {
                let is_script = content.as_bytes().starts_with(SCRIPT_MARK);
                is_script.then(|| script_caution(target))
            });
        Self::with_caution(target, caution)
    }

    /// Inspects the creation of a folder.
    pub(crate) fn of_new_folder(target: &TargetPath<'_>) -> Self {
        Self::with_caution(target, caution_of_names(target, executed_in))
    }

    /// Inspects the deletion of an entry of this kind. `executed` is an entry in it that other programs execute.
    pub(crate) fn of_deletion(
        target: &TargetPath<'_>,
        kind: EntryKind,
        executed: Option<&Path>,
    ) -> Self {
        let caution = caution_of_names(target, executed_by).or_else(|| match kind {
            EntryKind::File => caution_of_file(target),
            _ => executed.map(|entry| {
                let (folder, entry) = (shown(target), show::name(entry.as_os_str()));
                format!("`{folder}` contains `{entry}`, which other programs execute").into()
            }),
        });
        Self::with_caution(target, caution)
    }

    /// Says what the change replaces, so that an approval covers nothing else.
    pub(crate) fn replacing(mut self, content: &[u8]) -> Self {
        self.edit.replaces = Some(digest(content));
        self
    }

    /// Says why an undo could not restore the replaced file, if its original would not be saved. The file has this size,
    /// and this content if it was read.
    pub(crate) fn with_undo_check(
        mut self,
        (undo, caller): (Option<&UndoStore>, &Caller),
        target: &TargetPath<'_>,
        file: (u64, Option<&[u8]>),
    ) -> Self {
        let unsaved = match undo {
            Some(undo) => undo.reason_not_saved(caller, &target.path(), file),
            None => Some(NO_STORE.to_owned()),
        };
        self.edit.irreversible = unsaved.map(|reason| not_restored(target, &reason));
        self
    }

    /// Says why an undo could not revert a change that replaces no file, if it would not be recorded.
    pub(crate) fn with_record_check(
        mut self,
        (undo, caller): (Option<&UndoStore>, &Caller),
        target: &TargetPath<'_>,
    ) -> Self {
        let unrecorded = undo.and_then(|undo| undo.reason_not_recorded(caller));
        self.edit.irreversible = unrecorded.map(|reason| not_restored(target, &reason));
        self
    }

    /// Says that the call would fail now. If the user approves it all the same, it must not succeed later with a change
    /// that was not in the question.
    pub(crate) fn that_fails(mut self) -> Self {
        self.edit.replaces = Some(NOTHING_SEEN.into());
        self
    }

    /// Fails if the change is not the one that was inspected before the call was allowed: it needs an approval that it
    /// did not get, it replaces something else than the user saw, or its path leads elsewhere.
    pub(crate) fn expect_inspected(
        &self,
        target: &TargetPath<'_>,
        inspection: &Inspection,
    ) -> Result<(), FileError> {
        let edit = inspection.edit.as_ref();
        let inspected = edit.and_then(|edit| edit.caution.as_ref());
        let is_known_irreversible = edit.is_some_and(|edit| edit.irreversible.is_some());
        let seen = edit.and_then(|edit| edit.replaces.as_ref());
        match (&self.guarded, &self.edit.caution, &self.edit.irreversible) {
            (Some(guarded), ..) if inspection.guarded.as_ref() != Some(guarded) => {
                Err(FileError::NotApproved {
                    path: guarded.path.to_string(),
                    reason: guarded.reason.to_string(),
                })
            }
            (_, Some(caution), _) if inspected != Some(caution) => Err(FileError::NotApproved {
                path: target.display_path().to_owned(),
                reason: caution.to_string(),
            }),
            (.., Some(irreversible)) if !is_known_irreversible => Err(FileError::NotApproved {
                path: target.display_path().to_owned(),
                reason: irreversible.to_string(),
            }),
            _ => {
                target.expect_same_path(inspection)?;
                if seen.is_none() || seen == self.edit.replaces.as_ref() {
                    return Ok(());
                }
                Err(FileError::ChangedSinceQuestion {
                    path: target.display_path().to_owned(),
                })
            }
        }
    }

    /// Fails if a preview shows another file, or other content of it, than was inspected: an approval covers only that.
    /// `replaced` is what the preview shows as replaced, if it does.
    pub(crate) fn expect_shown(
        target: &TargetPath<'_>,
        inspection: &Inspection,
        replaced: Option<&[u8]>,
    ) -> Result<(), FileError> {
        target.expect_same_path(inspection)?;
        let edit = inspection.edit.as_ref();
        let inspected = edit.and_then(|edit| edit.replaces.as_ref());
        match (inspected, replaced.map(digest)) {
            (Some(inspected), Some(shown)) if *inspected != shown => {
                Err(FileError::ChangedSinceQuestion {
                    path: target.display_path().to_owned(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Returns whether a replaced file stays executable. An ordinary file is not executable, unless another process
    /// has put an executable one in its place since it was inspected.
    pub(crate) fn executable_bits(&self) -> ExecutableBits {
        match self.edit.caution {
            Some(_) => ExecutableBits::Carry,
            None => ExecutableBits::Drop,
        }
    }

    fn with_caution(target: &TargetPath<'_>, caution: Option<Text>) -> Self {
        Self {
            guarded: target.guarded(),
            edit: FileEdit {
                caution,
                ..FileEdit::default()
            },
            path: target.resolution(),
        }
    }
}

fn not_restored(target: &TargetPath<'_>, reason: &str) -> Text {
    let path = shown(target);
    format!("`lango undo` could not restore `{path}`, because {reason}").into()
}

/// Whether a file has an executable bit.
pub(crate) fn is_executable(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o111 != 0
}

/// Whether the name of an entry makes other programs execute it.
pub(crate) fn is_executed(roots: &Roots, path: &Path) -> bool {
    executed_by(roots.inside(path)).is_some()
}

/// Returns the caution that the path gives: it lies outside the workspace, or other programs execute files with the
/// name of the target or of a link that leads to it.
fn caution_of_names(
    target: &TargetPath<'_>,
    executed: fn(&Path) -> Option<&'static str>,
) -> Option<Text> {
    let (roots, path) = (target.roots(), target.path());
    if !path.starts_with(roots.workspace()) {
        let path = show::name(path.as_os_str());
        return Some(format!("`{path}` is outside the folder that the agents work in").into());
    }
    let links = target.links().iter();
    let links = links.flat_map(|link| [link.path.clone(), link.full_path()]);
    let mut paths = std::iter::once(path).chain(links);
    paths.find_map(|path| {
        let program = executed(roots.inside(&path))?;
        let path = show::name(roots.shorten(&path).as_os_str());
        Some(format!("`{path}` is executed by {program}").into())
    })
}

/// Returns the caution that an existing file gives: it is executable or a script.
fn caution_of_file(target: &TargetPath<'_>) -> Option<Text> {
    let metadata = target.metadata().ok()?;
    if EntryKind::from(metadata.file_type()) != EntryKind::File {
        return None;
    }
    if is_executable(&metadata) {
        return Some(format!("`{}` is executable", shown(target)).into());
    }
    let mut start = Vec::new();
    let read = target.open_file().and_then(|(file, _)| {
        let mut file = file.take(SCRIPT_MARK.len() as u64);
        let read = file.read_to_end(&mut start);
        read.map_err(|cause| target.explain(cause))
    });
    match read {
        Ok(_) => (start == SCRIPT_MARK).then(|| script_caution(target)),
        Err(_) => Some(format!("`{}` cannot be read, so it may be a script", shown(target)).into()),
    }
}

fn script_caution(target: &TargetPath<'_>) -> Text {
    let path = shown(target);
    format!("`{path}` is a script: it starts with `#!`").into()
}

/// Returns the path without links, relative to the workspace.
fn shown(target: &TargetPath<'_>) -> String {
    let path = target.path();
    show::name(target.roots().shorten(&path).as_os_str())
}

fn digest(content: &[u8]) -> Text {
    base16ct::lower::encode_string(&Sha256::digest(content)).into()
}
