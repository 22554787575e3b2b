//! What is needed to undo the changes of a turn's file tools: the originals of the files that they changed.
//!
//! Before a tool changes a file, it saves the original and records the change. Both are on the disk before the file is
//! touched, so a crash in between loses nothing: a recorded change that was not made is undone by doing nothing. The
//! originals are private: each session has a folder of its own, with access for the owner only, outside of every
//! workspace. They are deleted with their session, after a month, and when they take too much space.
//!
//! ```text
//! undo/SESSION/TURN/record.jsonl    the turn, then one line per call
//! undo/SESSION/TURN/1, 2, …         the originals of changed files
//! ```

mod check;
mod differences;
mod files;
mod original;
mod record;
mod recorder;
mod restore;
mod steps;
mod storage;

pub use check::{UndoAction, UndoStep};
pub use differences::{FileChange, FileDifference, differences};
pub(crate) use original::Original;
pub use record::{RecordedTurn, TurnRecord};
pub(crate) use recorder::{FileWrite, Recorder};
pub use restore::{UndoMode, UndoOutcome, UndoResult};
pub use storage::{UndoError, UndoLimits, UndoStore};

/// The names of the tools whose changes can be undone.
pub const UNDOABLE_TOOLS: [&str; 4] = ["fs_write", "fs_edit", "fs_mkdir", "fs_delete"];
