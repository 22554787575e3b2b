//! The origin of a configuration value, as a location that the user can look up.

use std::fmt;
use std::path::PathBuf;

/// The layer, and the position in it, that set a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Not set anywhere.
    Default,
    File {
        path: PathBuf,
        /// The line of the key, counted from one.
        line: usize,
    },
    /// An environment variable, in the spelling that was used.
    Variable(String),
    /// A `-c` flag.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::File { path, line } => write!(formatter, "{}:{line}", path.display()),
            Self::Variable(name) => formatter.write_str(name),
            Self::Flag => formatter.write_str("-c"),
        }
    }
}
