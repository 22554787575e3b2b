//! Records the changes of a call before they are made.

use super::files::{append_line, save};
use super::original::{Fingerprint, Original};
use super::record::{After, Before, CallLine, Change, RecordLine, TurnLine, TurnRecord, Unsaved};
use super::steps::step_that_wrote;
use super::storage::{UndoError, UndoLimits, UndoStore};
use crate::Workspace;
use crate::declaration::Call;
use crate::file_error::FileError;
use crate::replace::sync_folder;
use lango_core::Caller;
use std::path::{Path, PathBuf};
use std::sync::MutexGuard;

/// The recorder of one call. While it exists, no other call of the turn changes files. Without a store it records
/// nothing.
pub(crate) struct Recorder<'a> {
    turn: Option<LockedTurn<'a>>,
    call: &'a Call,
}

struct LockedTurn<'a> {
    store: &'a UndoStore,
    turn: TurnLine,
    _lock: MutexGuard<'a, ()>,
}

/// A file that a call is about to write.
pub(crate) struct FileWrite<'a> {
    /// The path, absolute and without links.
    pub(crate) path: PathBuf,
    /// The missing parent folders, outermost first.
    pub(crate) new_folders: Vec<PathBuf>,
    pub(crate) before: &'a Original,
    pub(crate) content: &'a [u8],
}

impl<'a> Recorder<'a> {
    /// Starts to record a call, after the calls of the same turn that are changing files.
    pub(crate) fn new(store: Option<&'a UndoStore>, workspace: &Workspace, call: &'a Call) -> Self {
        let caller = &call.caller;
        let turn = store.map(|store| LockedTurn {
            store,
            turn: TurnLine {
                session: caller.session.clone(),
                turn: caller.turn.clone(),
                user: caller.user.clone(),
                folder: workspace.name(),
            },
            _lock: store.lock(&caller.turn),
        });
        Self { turn, call }
    }

    /// Fails if the call was cancelled. Check it right before a change: a recorded change that is not made is harmless.
    pub(crate) fn expect_running(&self) -> Result<(), FileError> {
        if self.call.cancellation.is_cancelled() {
            return Err(FileError::Cancelled);
        }
        Ok(())
    }

    /// Saves the original of a file, and records that the call writes the file and creates its missing parents.
    pub(crate) fn write(&self, write: FileWrite<'_>) -> Result<(), UndoError> {
        self.record(|turn, record| {
            let mut changes: Vec<Change> = new_folders(&write.new_folders).collect();
            let after = After::File {
                content: Fingerprint::of(write.content),
            };
            changes.push(turn.file_change(record, &write, after)?);
            Ok(changes)
        })
    }

    /// Records that the call creates these folders. There may be none.
    pub(crate) fn create_folders(&self, folders: &[PathBuf]) -> Result<(), UndoError> {
        self.record(|_, _| Ok(new_folders(folders).collect()))
    }

    /// Records that the call moves a file or folder to the trash under this id.
    pub(crate) fn delete(&self, path: &Path, id: &str) -> Result<(), UndoError> {
        self.record(|_, _| {
            let before = Before::Trash { id: id.to_owned() };
            Ok(vec![change(path, before, After::Absent)])
        })
    }

    fn record(
        &self,
        changes: impl FnOnce(&LockedTurn<'_>, &TurnRecord) -> Result<Vec<Change>, UndoError>,
    ) -> Result<(), UndoError> {
        let Some(turn) = &self.turn else {
            return Ok(());
        };
        let record = turn.store.open_or_create(&turn.turn)?;
        if record.full().is_some() {
            return Ok(());
        }
        let line = RecordLine::Call(CallLine {
            call: self.call.caller.call.clone(),
            trust: self.call.caller.trust,
            changes: changes(turn, &record)?,
        });
        Ok(append_line(&record.open()?, &line)?)
    }
}

impl LockedTurn<'_> {
    /// Describes the change of a file. Saves what is replaced, unless an earlier call of the turn saved or wrote it.
    fn file_change(
        &self,
        record: &TurnRecord,
        write: &FileWrite<'_>,
        after: After,
    ) -> Result<Change, UndoError> {
        let (bytes, mode) = match write.before {
            Original::Absent => {
                return Ok(self.creation(record, &write.path, after));
            }
            Original::Large { size, .. } => {
                let limit = self.store.limits().file_bytes;
                let reason = Unsaved::FileTooLarge { size: *size, limit };
                return Ok(change(&write.path, Before::Unsaved { reason }, after));
            }
            Original::File { bytes, mode } => (bytes, *mode),
        };
        let content = Fingerprint::of(bytes);
        let is_known = is_known(record, &write.path, &content);
        let before = |saved| Before::File {
            content,
            mode,
            saved,
        };
        if is_known {
            return Ok(change(&write.path, before(None), after));
        }
        let size = bytes.len() as u64;
        if let Some(reason) = unsaved_reason(self.store.limits(), Some(record), &write.path, size)?
        {
            return Ok(change(&write.path, Before::Unsaved { reason }, after));
        }
        let number = record.counts().1 + 1;
        let change = change(&write.path, before(Some(number)), after);
        if !matches!(change.before, Before::Unsaved { .. }) {
            let dir = record.open()?;
            save(&dir, &number.to_string(), bytes)?;
            sync_folder(&dir)?;
            self.store.note_saved(&self.turn, size)?;
        }
        Ok(change)
    }

    /// Describes the creation of a file. It cannot be undone if the turn has too many changes.
    fn creation(&self, record: &TurnRecord, path: &Path, after: After) -> Change {
        let limit = self.store.limits().turn_files;
        let before = if record.counts().0 >= limit {
            let reason = Unsaved::TooManyFiles { limit };
            Before::Unsaved { reason }
        } else {
            Before::Absent
        };
        change(path, before, after)
    }
}

impl UndoStore {
    /// Returns why an undo could not restore a file of this size if the call changed it now: its original would not be
    /// saved. `content` is `None` for a file that is too large to be read.
    pub(crate) fn reason_not_saved(
        &self,
        caller: &Caller,
        path: &Path,
        (size, content): (u64, Option<&[u8]>),
    ) -> Option<String> {
        let unsaved = self.unsaved_original(caller, path, (size, content));
        unsaved.map(|reason| reason.to_string())
    }

    /// Returns why an undo would know nothing of what the call changes now: the record of the turn is full.
    pub(crate) fn reason_not_recorded(&self, caller: &Caller) -> Option<String> {
        // If the record cannot be read, the call is refused when it runs.
        let record = self.turn(&caller.session, &caller.turn).ok()??;
        record.full().map(|reason| reason.to_string())
    }

    fn unsaved_original(
        &self,
        caller: &Caller,
        path: &Path,
        (size, content): (u64, Option<&[u8]>),
    ) -> Option<Unsaved> {
        if path.to_str().is_none() {
            return Some(Unsaved::NotUtf8);
        }
        // If the record cannot be read, the call is refused when it runs.
        let record = self.turn(&caller.session, &caller.turn).ok()?;
        if let Some(record) = &record {
            if let Some(reason) = record.full() {
                return Some(reason);
            }
            if content.is_some_and(|content| is_known(record, path, &Fingerprint::of(content))) {
                return None;
            }
        }
        unsaved_reason(self.limits(), record.as_ref(), path, size).ok()?
    }
}

/// Whether the turn wrote this content to this file, or saved it when it changed the file.
fn is_known(record: &TurnRecord, path: &Path, content: &Fingerprint) -> bool {
    let mut steps = record.steps();
    step_that_wrote(&mut steps, path).is_some_and(|step| step.has_version(content))
}

/// Returns why a version of a file, which has this size, is not saved in the record of a turn: that would exceed a limit,
/// or an undo leaves the file as it is because its original was not saved.
fn unsaved_reason(
    limits: &UndoLimits,
    record: Option<&TurnRecord>,
    path: &Path,
    size: u64,
) -> Result<Option<Unsaved>, UndoError> {
    let mut steps = record.map(TurnRecord::steps).unwrap_or_default();
    if let Some(step) = step_that_wrote(&mut steps, path)
        && let Before::Unsaved { reason } = step.before
    {
        return Ok(Some(reason));
    }
    if size > limits.file_bytes {
        let limit = limits.file_bytes;
        return Ok(Some(Unsaved::FileTooLarge { size, limit }));
    }
    let Some(record) = record else {
        return Ok(None);
    };
    if UndoStore::size_of(record)?.saturating_add(size) > limits.turn_bytes {
        let limit = limits.turn_bytes;
        return Ok(Some(Unsaved::TurnTooLarge { limit }));
    }
    let limit = limits.turn_files;
    Ok((record.counts().0 >= limit).then_some(Unsaved::TooManyFiles { limit }))
}

fn new_folders(folders: &[PathBuf]) -> impl Iterator<Item = Change> {
    let created = |path: &PathBuf| change(path, Before::Absent, After::Folder);
    folders.iter().map(created)
}

/// Describes a change. A path that is not UTF-8 cannot be recorded exactly.
fn change(path: &Path, before: Before, after: After) -> Change {
    let (path, before) = match path.to_str() {
        Some(_) => (path.to_owned(), before),
        None => {
            let reason = Unsaved::NotUtf8;
            let shown = path.to_string_lossy().into_owned();
            (shown.into(), Before::Unsaved { reason })
        }
    };
    Change {
        path,
        before,
        after,
    }
}
