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
    /// The policy asks for [`Network::Proxied`](crate::Network::Proxied), and commands get no network of their own here.
    #[error(
        "a network through a proxy needs bubblewrap on Linux, {why}; close the network to commands, or open it without a proxy"
    )]
    NoProxiedNetwork {
        /// What is missing.
        why: &'static str,
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
