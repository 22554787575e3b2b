//! How a command ended.

use crate::CleanUpReport;
use std::fmt;

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

impl fmt::Display for Ended {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.stopped, self.exit) {
            (Some(Stopped::Memory), _) => formatter.write_str("its program used too much memory"),
            (Some(Stopped::Processes), _) => {
                formatter.write_str("its program had too many processes")
            }
            (Some(Stopped::Disk), _) => formatter.write_str("its program wrote too much"),
            (Some(Stopped::Time), _) => formatter.write_str("its program ran too long"),
            (None, ExitKind::Code(127)) => formatter.write_str(
                "its program was not found in the sandbox; is its folder readable there (see `read`)?",
            ),
            (None, ExitKind::Code(code)) => write!(formatter, "its program ended with code {code}"),
            (None, ExitKind::Signal(signal)) => {
                write!(formatter, "its program was ended by signal {signal}")
            }
        }
    }
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
