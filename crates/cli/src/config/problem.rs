//! What can be wrong with a configuration. Each text says where it stands first, as compilers do.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use super::origin::Origin;

/// One thing that is wrong.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// No key has this name.
    #[error("{origin}: unknown key `{name}`{}", hint(nearest.as_deref()))]
    UnknownKey {
        /// The name as it was written.
        name: String,
        /// Where it was written.
        origin: Origin,
        /// A key it may have meant.
        nearest: Option<String>,
    },
    /// No key has this variable.
    #[error("{name}: no key has this environment variable{}", hint(nearest.as_deref()))]
    UnknownVariable {
        /// The variable.
        name: String,
        /// A variable it may have meant.
        nearest: Option<String>,
    },
    /// Two spellings of one variable are set, so neither can be believed.
    #[error("{name}: sets the same key as `{other}`; unset one of them")]
    AmbiguousVariable {
        /// One variable.
        name: String,
        /// The other.
        other: String,
    },
    /// The value does not fit the key.
    #[error("{origin}: `{key}` must be {expected}, found `{found}`")]
    WrongValue {
        /// The key.
        key: String,
        /// Where the value stands.
        origin: Origin,
        /// What would fit.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The file is not TOML.
    #[error("{}:{line}:{column}: not valid TOML: {message}", path.display())]
    Unparsable {
        /// The file.
        path: PathBuf,
        /// The line, counted from one.
        line: usize,
        /// The character in the line, counted from one.
        column: usize,
        /// What the parser says.
        message: String,
    },
    /// The file is there but cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// The working folder is gone, or may not be entered.
    #[error("cannot tell the working folder")]
    NoWorkingFolder(#[source] io::Error),
    /// Nothing says where files belong.
    #[error(
        "cannot tell where lango keeps its files: `HOME` is not set; set `LANGO_HOME` to a folder"
    )]
    NoHome,
    /// A `-c` flag that is not `key=value`.
    #[error(
        "-c: `{flag}` is not of the form `key=value`; write for example `-c agent.maxToolCalls=10`"
    )]
    MalformedFlag {
        /// What was given.
        flag: String,
    },
}

impl Problem {
    /// The line of the file that holds it, if one does.
    pub(super) fn line(&self) -> Option<usize> {
        match self {
            Self::Unparsable { line, .. }
            | Self::UnknownKey {
                origin: Origin::File { line, .. },
                ..
            }
            | Self::WrongValue {
                origin: Origin::File { line, .. },
                ..
            } => Some(*line),
            _ => None,
        }
    }

    /// Whether the command line is at fault (exit code 2), rather than a file or the environment (exit code 3).
    pub fn is_usage(&self) -> bool {
        match self {
            Self::MalformedFlag { .. } => true,
            Self::UnknownKey { origin, .. } | Self::WrongValue { origin, .. } => {
                *origin == Origin::Flag
            }
            _ => false,
        }
    }
}

/// How many problems are shown before the rest is only counted.
const MOST_SHOWN: usize = 20;

/// Everything that is wrong; at least one thing. Shown one a line.
#[derive(Debug)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Refuses if there is anything to report.
    pub(super) fn refuse_if_any(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Self(problems))
        }
    }

    /// Each of them, weakest layer first.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }

    /// Whether the command line alone is at fault; see [`Problem::is_usage`].
    pub fn is_usage(&self) -> bool {
        self.0.iter().all(Problem::is_usage)
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().take(MOST_SHOWN).enumerate() {
            if index > 0 {
                formatter.write_str("\n")?;
            }
            write!(formatter, "{problem}")?;
            if let Some(cause) = problem.source() {
                write!(formatter, ": {cause}")?;
            }
        }
        match self.0.len().saturating_sub(MOST_SHOWN) {
            0 => Ok(()),
            more => write!(formatter, "\n… and {more} more"),
        }
    }
}

impl Error for Problems {}

fn hint(nearest: Option<&str>) -> String {
    nearest
        .map(|nearest| format!("; did you mean `{nearest}`?"))
        .unwrap_or_default()
}
