//! How a command ended.

use std::path::PathBuf;

/// How a command ended. Nothing that it started lives any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// What the command's first process left behind.
    pub exit: ExitKind,
    /// The limit that ended it, if one did.
    pub stopped: Option<Stopped>,
    /// What the command made where nothing may be made (see [`is_kept_name`](crate::is_kept_name)), and was taken away
    /// again.
    pub removed: Vec<PathBuf>,
    /// The same that could not be taken away; a person has to look at it.
    pub left: Vec<PathBuf>,
}

/// What a process left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitKind {
    /// It ended by itself with this code. A program that is missing ends with 127, one that cannot be run with 126.
    Code(i32),
    /// It was ended by this signal.
    Signal(i32),
}

/// A limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// It ran too long.
    Time,
    /// It held too much memory.
    Memory,
    /// It had too many processes.
    Processes,
    /// It wrote too much.
    Disk,
}
