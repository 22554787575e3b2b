//! Why a command was not started.

use std::io;
use std::path::PathBuf;

/// Why a command was not started. In every case nothing of it ran.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// There is no bubblewrap on this machine.
    #[error(
        "bubblewrap is missing: there is no `bwrap` program; install it, for example with `apt install bubblewrap`"
    )]
    NoBubblewrap,
    /// The policy or the command asks for something that only namespaces give.
    #[error("{what} needs bubblewrap on Linux, {why}")]
    NeedsBubblewrap {
        /// What was asked for.
        what: &'static str,
        /// What is missing, and the way out.
        why: &'static str,
    },
    /// A browser cannot make the namespaces that its own sandbox needs. It can run without, held by this sandbox alone.
    #[error("a browser cannot set up its own sandbox here: {why}")]
    NoNesting {
        /// What failed.
        why: String,
    },
    /// Nothing here can hold a command.
    #[error("no sandbox works here: {why}")]
    NoSandbox {
        /// What is missing, and the way out.
        why: String,
    },
    /// A layer could not be set up.
    #[error("the sandbox could not be set up: {what}; the command was not run")]
    Layer {
        /// What failed, in the words of the layer.
        what: String,
    },
    /// The policy asks for something that cannot be kept safe.
    #[error("`{}` cannot be opened to commands: {problem}", path.display())]
    Policy {
        /// The path of the policy that is at fault.
        path: PathBuf,
        /// What is wrong with it, and the way out.
        problem: String,
    },
    /// The command itself is not usable.
    #[error("the command is not usable: {problem}")]
    Command {
        /// What is wrong with it.
        problem: String,
    },
    /// The system refused something on the way.
    #[error("cannot {action}")]
    System {
        /// What was being done.
        action: &'static str,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
}

impl LaunchError {
    /// For `map_err`: the system refused this action.
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
