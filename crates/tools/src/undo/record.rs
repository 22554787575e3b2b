//! The record of a turn: which files its calls changed, and what those files were before.

use super::check::relative;
use super::files::TurnFolder;
use super::original::Fingerprint;
use super::steps::{Step, steps};
use super::storage::UndoError;
use crate::{Workspace, show};
use cap_std::fs::Dir;
use lango_core::{CallId, SessionId, SkippedPath, Timestamp, Trust, TurnId, UserId};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Name of the file with the lines of a record.
pub(super) const RECORD_FILE: &str = "record.jsonl";

/// Maximum size of a record. A larger one, which another version may have written, is read up to here.
const MAX_RECORD_BYTES: u64 = 8 << 20;

/// Maximum size of a line.
pub(super) const MAX_LINE_BYTES: u64 = 1 << 20;

/// Maximum number of recorded changes of a turn. Further ones are made, but an undo only knows the calls.
const MAX_CHANGES: usize = 1_000;

/// A line of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum RecordLine {
    Turn(TurnLine),
    Call(CallLine),
}

/// The first line: the turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TurnLine {
    pub(super) session: SessionId,
    pub(super) turn: TurnId,
    pub(super) user: UserId,
    /// The workspace.
    pub(super) folder: String,
}

/// The changes of one call. An empty list is a call that had nothing to change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CallLine {
    pub(super) call: CallId,
    /// The trust label of the agent's context, and so of the paths that it chose.
    pub(super) trust: Trust,
    pub(super) changes: Vec<Change>,
}

/// A change of one file or folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Change {
    /// The path, absolute and without links.
    pub(super) path: PathBuf,
    pub(super) before: Before,
    pub(super) after: After,
}

/// What was at a path before a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum Before {
    Absent,
    File {
        #[serde(flatten)]
        content: Fingerprint,
        mode: u32,
        /// The number under which this version is saved; `None` if an earlier change of the turn saved or wrote it.
        saved: Option<u32>,
    },
    /// A file that was not saved.
    Unsaved {
        reason: Unsaved,
    },
    /// A file or folder that was moved to the trash.
    Trash {
        id: String,
    },
}

/// Why an original was not saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unsaved {
    FileTooLarge { size: u64, limit: u64 },
    TurnTooLarge { limit: u64 },
    TooManyFiles { limit: usize },
    RecordTooLarge { limit: u64 },
    NotUtf8,
}

impl std::fmt::Display for Unsaved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::FileTooLarge { size, limit } => {
                let (size, limit) = (show::size(*size), show::size(*limit));
                write!(
                    f,
                    "it was too large to save: {size}, and the limit is {limit}"
                )
            }
            Self::TurnTooLarge { limit } => {
                let limit = show::size(*limit);
                write!(
                    f,
                    "the turn changed too much to save all of it; the limit is {limit}"
                )
            }
            Self::TooManyFiles { limit } => {
                write!(f, "the turn changed too many files; the limit is {limit}")
            }
            Self::RecordTooLarge { limit } => {
                let limit = show::size(*limit);
                write!(f, "the record of the turn is full; the limit is {limit}")
            }
            Self::NotUtf8 => f.write_str("its path is not valid UTF-8"),
        }
    }
}

/// What a change leaves at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum After {
    Absent,
    File {
        #[serde(flatten)]
        content: Fingerprint,
    },
    Folder,
}

/// A turn that changed files, as a list of them has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedTurn {
    turn: TurnLine,
    updated: Timestamp,
}

impl RecordedTurn {
    /// Reads the first line of the record in a folder; `None` if there is none, or not a whole one.
    pub(super) fn read(dir: &Dir) -> io::Result<Option<Self>> {
        let file = dir.open(RECORD_FILE)?;
        let modified = file.metadata()?.modified()?;
        let lines = BufReader::new(file.take(MAX_RECORD_BYTES)).split(b'\n');
        for line in lines {
            if let Ok(RecordLine::Turn(turn)) = serde_json::from_slice(&line?) {
                let updated = timestamp(modified.into_std());
                return Ok(Some(Self { turn, updated }));
            }
        }
        Ok(None)
    }

    pub fn session(&self) -> &SessionId {
        &self.turn.session
    }

    pub fn turn(&self) -> &TurnId {
        &self.turn.turn
    }

    pub fn user(&self) -> &UserId {
        &self.turn.user
    }

    /// Returns the workspace of the turn, as [`Workspace::name`] writes it.
    pub fn folder(&self) -> &str {
        &self.turn.folder
    }

    /// Returns when a change was last recorded.
    pub fn updated(&self) -> Timestamp {
        self.updated
    }
}

/// The changes of a turn, and its originals. Two records are equal if undoing them does the same.
#[derive(Debug, PartialEq)]
pub struct TurnRecord {
    turn: TurnLine,
    calls: Vec<CallLine>,
    /// The size of the record.
    bytes: u64,
    /// The paths that can be undone; `None` for all.
    limit: Option<Vec<PathBuf>>,
    place: TurnFolder,
}

impl TurnRecord {
    /// Reads the record in a folder; `None` if there is none, or not a whole first line.
    pub(super) fn read(place: TurnFolder) -> io::Result<Option<Self>> {
        let file = match place.open().and_then(|dir| dir.open(RECORD_FILE)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let bytes = file.metadata()?.len();
        let mut record = None;
        for line in BufReader::new(file.take(MAX_RECORD_BYTES)).split(b'\n') {
            // A line that was cut off by a crash describes a change that was not made.
            let Ok(line) = serde_json::from_slice(&line?) else {
                continue;
            };
            match (line, &mut record) {
                (RecordLine::Turn(turn), None) => record = Some((turn, Vec::new())),
                (RecordLine::Call(call), Some((_, calls))) => calls.push(call),
                _ => {}
            }
        }
        Ok(record.map(|(turn, calls)| Self {
            turn,
            calls,
            bytes,
            limit: None,
            place,
        }))
    }

    /// Limits everything to the paths that an earlier undo left as they were. The originals of the others are deleted.
    #[must_use]
    pub fn limited_to(mut self, workspace: &Workspace, left: &[SkippedPath]) -> Self {
        let is_left = |path: &&Path| {
            let path = relative(workspace, path);
            left.iter().any(|left| *left.path == path)
        };
        let paths = self.paths().into_iter().filter(is_left);
        self.limit = Some(paths.map(Path::to_owned).collect());
        self
    }

    pub fn session(&self) -> &SessionId {
        &self.turn.session
    }

    pub fn turn(&self) -> &TurnId {
        &self.turn.turn
    }

    pub fn user(&self) -> &UserId {
        &self.turn.user
    }

    /// Returns the workspace of the turn, as [`Workspace::name`] writes it.
    pub fn folder(&self) -> &str {
        &self.turn.folder
    }

    /// Whether the call is recorded. A call that is not recorded changed nothing, or its record was dropped.
    pub fn has_call(&self, call: &CallId) -> bool {
        self.calls.iter().any(|recorded| recorded.call == *call)
    }

    /// Returns the changed files and folders, each once, in the order of their first change.
    pub fn paths(&self) -> Vec<&Path> {
        let mut paths: Vec<&Path> = Vec::new();
        for change in self.calls.iter().flat_map(|call| &call.changes) {
            if !paths.contains(&change.path.as_path()) {
                paths.push(&change.path);
            }
        }
        paths
    }

    /// Returns the combined trust label of the paths.
    pub fn trust(&self) -> Trust {
        let labels = self.calls.iter().map(|call| call.trust);
        labels.fold(Trust::Trusted, Trust::and)
    }

    /// Returns the number of recorded changes, and how many originals are saved.
    pub(super) fn counts(&self) -> (usize, u32) {
        let changes = self.calls.iter().flat_map(|call| &call.changes);
        let saved = changes.clone().filter_map(|change| match change.before {
            Before::File { saved, .. } => saved,
            _ => None,
        });
        (changes.count(), saved.max().unwrap_or_default())
    }

    /// Returns why no further change is recorded, if the record is full.
    pub(super) fn full(&self) -> Option<Unsaved> {
        if self.counts().0 >= MAX_CHANGES {
            return Some(Unsaved::TooManyFiles { limit: MAX_CHANGES });
        }
        let limit = MAX_RECORD_BYTES;
        (self.bytes > limit - MAX_LINE_BYTES).then_some(Unsaved::RecordTooLarge { limit })
    }

    /// Returns the changes as steps, in the order in which they were made.
    pub(super) fn steps(&self) -> Vec<Step> {
        let mut steps = steps(&self.calls);
        if let Some(limit) = &self.limit {
            steps.retain(|step| limit.contains(&step.path));
        }
        steps
    }

    /// Reads a saved original. Fails if it is not what was saved.
    pub(super) fn original(&self, saved: u32, content: &Fingerprint) -> Result<Vec<u8>, UndoError> {
        let file = self.open()?.open(saved.to_string())?;
        let mut bytes = Vec::new();
        file.take(content.size.saturating_add(1))
            .read_to_end(&mut bytes)?;
        if Fingerprint::of(&bytes) == *content {
            Ok(bytes)
        } else {
            let cause = io::Error::new(io::ErrorKind::InvalidData, "the saved original is damaged");
            Err(cause.into())
        }
    }

    /// Opens the folder of the record.
    pub(super) fn open(&self) -> io::Result<Dir> {
        self.place.open()
    }
}

pub(super) fn timestamp(time: std::time::SystemTime) -> Timestamp {
    let since = time.duration_since(std::time::UNIX_EPOCH);
    let since = since.map_or(0, |since| since.as_millis());
    Timestamp(u64::try_from(since).unwrap_or(u64::MAX))
}
