//! The exit codes.

use lango::app::{Failure, FailureKind};
use lango_core::Outcome;

/// The exit codes listed in the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Success. A limit that was hit after an answer is mentioned, but is not a failure.
    Ok,
    Failed,
    /// The command line, or something it refers to, is wrong.
    Usage,
    /// The model, a key or the configuration is wrong.
    Config,
    /// A call was denied because no user could be asked, or waits for an answer.
    Denied,
    /// A limit was hit before the answer.
    Limit,
    /// Stopped with Ctrl-C.
    Interrupted,
    /// Ended by a termination signal.
    Terminated,
}

impl Exit {
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Config => 3,
            Self::Denied => 4,
            Self::Limit => 5,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

impl From<&Outcome> for Exit {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Answered { .. } => Self::Ok,
            Outcome::Limited { .. } => Self::Limit,
            Outcome::Failed { setup: true, .. } => Self::Config,
            Outcome::Failed { .. } | Outcome::Interrupted => Self::Failed,
            Outcome::Cancelled => Self::Interrupted,
        }
    }
}

impl From<&Failure> for Exit {
    fn from(failure: &Failure) -> Self {
        failure.kind.into()
    }
}

impl From<FailureKind> for Exit {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Usage => Self::Usage,
            FailureKind::Config => Self::Config,
            FailureKind::Denied => Self::Denied,
            FailureKind::Interrupted => Self::Interrupted,
            FailureKind::Terminated => Self::Terminated,
            _ => Self::Failed,
        }
    }
}
