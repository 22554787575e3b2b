//! Where a value came from, in the words a person would look for it with.

use std::fmt;
use std::path::PathBuf;

/// The layer, and the place in it, that gave a key its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// A configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// The line the key stands in, counted from one.
        line: usize,
    },
    /// An environment variable, by the name it was found under.
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
