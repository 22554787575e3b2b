//! The outcome of a command.

use crate::CleanUpReport;
use std::fmt;

/// The outcome of a command. All processes that it started have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutcome {
    /// The exit of the command's first process.
    pub exit: ExitKind,
    /// The limit that was exceeded, if the command was stopped for that.
    pub stopped_by: Option<ExceededLimit>,
    /// The result of the clean-up.
    pub clean_up: CleanUpReport,
}

impl fmt::Display for CommandOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.stopped_by, self.exit) {
            (Some(ExceededLimit::Memory), _) => formatter.write_str("its program used too much memory"),
            (Some(ExceededLimit::Processes), _) => {
                formatter.write_str("its program had too many processes")
            }
            (Some(ExceededLimit::Disk), _) => formatter.write_str("its program wrote too much to disk"),
            (Some(ExceededLimit::Time), _) => formatter.write_str("its program ran too long"),
            (None, ExitKind::Code(127)) => formatter.write_str(
                "its program was not found in the sandbox; is its folder readable there (see `read`)?",
            ),
            (None, ExitKind::Code(code)) => write!(formatter, "its program exited with code {code}"),
            (None, ExitKind::Signal(signal)) => {
                write!(formatter, "its program was killed by signal {signal}")
            }
        }
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitKind {
    /// The process exited with this code. The code is 127 if the program is missing, 126 if it cannot be run.
    Code(i32),
    /// The process was killed by this signal.
    Signal(i32),
}

/// A limit of [`ResourceLimits`](crate::ResourceLimits) that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExceededLimit {
    Time,
    Memory,
    Processes,
    /// The total size of what was written to disk, or free space that is running out.
    Disk,
}
