//! Errors of the launcher.

use std::io;
use std::path::PathBuf;

/// Why a command was not started. Whatever the variant, no part of the command ran.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error(
        "bubblewrap is missing: there is no `bwrap` program; install it, for example with `apt install bubblewrap`"
    )]
    NoBubblewrap,
    /// The policy or the command needs namespaces, which only bubblewrap provides.
    #[error("{what} needs bubblewrap on Linux, {why}")]
    NeedsBubblewrap {
        /// The feature that was requested.
        what: &'static str,
        /// What is missing and what to do about it.
        why: &'static str,
    },
    /// A browser cannot create the namespaces that its own sandbox needs. It can run without them, confined by this
    /// sandbox alone.
    #[error("a browser cannot set up its own sandbox here: {why}")]
    NoNesting { why: String },
    #[error("no sandbox works here: {why}")]
    NoSandbox {
        /// What is missing and what to do about it.
        why: String,
    },
    #[error("the sandbox could not be set up: {what}; the command was not run")]
    Layer {
        /// What failed, as the layer reported it.
        what: String,
    },
    /// The policy opens a path that cannot be opened safely.
    #[error("`{}` cannot be opened to commands: {problem}", path.display())]
    Policy {
        path: PathBuf,
        /// What is wrong and what to do about it.
        problem: String,
    },
    #[error("the command is invalid: {problem}")]
    Command { problem: String },
    /// A system call failed.
    #[error("cannot {action}")]
    System {
        action: &'static str,
        #[source]
        cause: io::Error,
    },
}

impl LaunchError {
    /// Creates a function for `map_err` that reports a failed system call.
    pub(crate) fn system<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |cause| Self::System {
            action,
            cause: cause.into(),
        }
    }
}

impl From<LaunchError> for io::Error {
    fn from(error: LaunchError) -> Self {
        Self::other(error)
    }
}
