//! How a command ended.

use crate::CleanUpReport;

/// How a command ended. Nothing that it started lives any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// What the command's first process left behind.
    pub exit: ExitKind,
    /// The limit that ended it, if one did.
    pub stopped: Option<Stopped>,
    /// What was cleaned up after it.
    pub clean_up: CleanUpReport,
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
