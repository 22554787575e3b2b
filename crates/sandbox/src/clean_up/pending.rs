//! The record of a pending clean-up. It is on disk from before the command starts until the clean-up is done.
//!
//! The record is locked as long as lango or the command's guard lives; they share the open file that holds the lock. A
//! record without a lock belongs to a clean-up that was interrupted, or that the guard finished after lango had ended.

use super::{Checklist, CleanUpReport};
use crate::{LaunchError, NewFiles};
use rustix::fs::{FlockOperation, MemfdFlags, flock, memfd_create};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DUE: u8 = b'D';
const FINISHED: u8 = b'F';
const EXTENSION: &str = "pending";
/// Interval at which the guard touches the record to show that it is alive.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(1);

/// A locked record.
#[derive(Debug)]
pub(crate) struct Record {
    file: File,
    /// `None` if the record is only in memory.
    path: Option<PathBuf>,
}

/// The content of a record.
#[derive(Debug)]
pub(crate) enum RecordContent {
    Due(Checklist),
    Finished(CleanUpReport),
}

impl Record {
    /// Stores a checklist. If there is no directory, or it is not writable, the record is only in memory.
    pub(crate) fn create(
        directory: Option<&Path>,
        checklist: &Checklist,
    ) -> Result<Self, LaunchError> {
        let on_disk = directory.and_then(|directory| Self::on_disk(directory, checklist).ok());
        match on_disk {
            Some(record) => Ok(record),
            None => Self::in_memory(checklist)
                .map_err(LaunchError::system("store the record of the clean-up")),
        }
    }

    fn on_disk(directory: &Path, checklist: &Checklist) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let stamp = now.map_or(0, |time| time.as_micros());
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = directory.join(format!("{}-{stamp}-{number}", std::process::id()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(&name)?;
        let path = name.with_extension(EXTENSION);
        // It gets its final name, by which others find it, only when it is locked and complete.
        let record = Self {
            file,
            path: Some(path.clone()),
        };
        let stored = flock(&record.file, FlockOperation::NonBlockingLockExclusive)
            .map_err(io::Error::from)
            .and_then(|()| record.write(DUE, &checklist.encode()))
            .and_then(|()| fs::rename(&name, path));
        if stored.is_err() {
            let _ = fs::remove_file(&name);
        }
        stored.map(|()| record)
    }

    fn in_memory(checklist: &Checklist) -> io::Result<Self> {
        let record = Self {
            file: File::from(memfd_create("clean-up", MemfdFlags::CLOEXEC)?),
            path: None,
        };
        record.write(DUE, &checklist.encode())?;
        Ok(record)
    }

    /// Wraps a record file that the launcher passed on.
    pub(crate) fn inherited(file: File) -> Self {
        Self { file, path: None }
    }

    /// Writes the kind last, so that an interrupted write does not look complete.
    fn write(&self, kind: u8, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, 1)?;
        self.file.write_all_at(&[kind], 0)
    }

    pub(crate) fn read(&self) -> Option<RecordContent> {
        let length = self.file.metadata().ok()?.len();
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.file.read_exact_at(&mut bytes, 0).ok()?;
        match bytes.split_first()? {
            (&DUE, rest) => Checklist::decode(rest).map(RecordContent::Due),
            (&FINISHED, rest) => CleanUpReport::decode(rest).map(RecordContent::Finished),
            _ => None,
        }
    }

    /// Whether a clean-up is still due.
    pub(crate) fn is_due(&self) -> bool {
        let mut kind = [0];
        self.file.read_exact_at(&mut kind, 0).is_ok() && kind == [DUE]
    }

    /// Updates the modification time, as the guard's sign of life.
    pub(crate) fn touch(&self) {
        let _ = self.file.write_all_at(&[DUE], 0);
    }

    /// Stores that the clean-up is done, with its report.
    pub(crate) fn finish(&self, report: &CleanUpReport) {
        // If this is interrupted, the kind is unreadable and the report is lost, but the clean-up is done anyway.
        let _ = self.file.write_all_at(b"?", 0);
        let _ = self.write(FINISHED, &report.encode());
    }

    /// Removes the record, once its report was delivered or nothing is left to do.
    pub(crate) fn remove(self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }

    /// Returns the latest time at which the command can have created a file: the guard's last sign of life, or the
    /// start of the machine if that was later.
    pub(crate) fn until_ns(&self, checklist: &Checklist) -> Option<u64> {
        let slack = 2 * HEARTBEAT;
        let until = if checklist.boot == boot_id() {
            self.file.metadata().ok()?.modified().ok()? + slack
        } else {
            SystemTime::now() - uptime()?
        };
        let since = until.duration_since(UNIX_EPOCH).ok()?;
        u64::try_from(since.as_nanos()).ok()
    }
}

impl AsFd for Record {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Reads the checklists of pending clean-ups that will remove new files.
pub(crate) fn pending_checklists(directory: &Path) -> Vec<Checklist> {
    let checklists = paths(directory).filter_map(|path| {
        let file = File::open(&path).ok()?;
        match (Record { file, path: None }).read()? {
            RecordContent::Due(checklist) => Some(checklist),
            RecordContent::Finished(_) => None,
        }
    });
    checklists
        .filter(|checklist| checklist.new_files == NewFiles::Remove)
        .collect()
}

fn paths(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        path.extension()
            .is_some_and(|extension| extension == EXTENSION)
    })
}

/// Returns those records in a directory for which both the guard and lango have ended.
pub(crate) fn interrupted_records(directory: &Path) -> Vec<Record> {
    let records = paths(directory).filter_map(|path| {
        let file = OpenOptions::new().read(true).write(true).open(&path).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        // Another lango may just have finished and removed it.
        let is_current = fs::metadata(&path)
            .and_then(|named| Ok(named.ino() == file.metadata()?.ino()))
            .unwrap_or(false);
        is_current.then_some(Record {
            file,
            path: Some(path),
        })
    });
    records.collect()
}

/// Returns the id of the current boot of the machine.
pub(crate) fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

fn uptime() -> Option<Duration> {
    let text = fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
