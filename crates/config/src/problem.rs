//! What can be wrong with a configuration. Each message starts with the location, as compilers do.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use super::origin::Origin;

#[derive(Debug, thiserror::Error)]
pub enum ConfigProblem {
    #[error("{origin}: unknown key `{name}`{}", hint(nearest.as_deref()))]
    UnknownKey {
        name: String,
        origin: Origin,
        /// The most similar key.
        nearest: Option<String>,
    },
    #[error("{name}: no key has this environment variable{}", hint(nearest.as_deref()))]
    UnknownVariable {
        name: String,
        /// The most similar variable.
        nearest: Option<String>,
    },
    /// Two spellings of one variable are set, so it is unclear which one is meant.
    #[error("{name}: sets the same key as `{other}`; unset one of them")]
    AmbiguousVariable { name: String, other: String },
    /// The value has the wrong type or is out of range.
    #[error("{origin}: `{key}` must be {expected}, found `{found}`")]
    WrongValue {
        key: String,
        origin: Origin,
        /// What the key accepts.
        expected: String,
        /// The actual value.
        found: String,
    },
    #[error("{}:{line}:{column}: not valid TOML: {message}", path.display())]
    Unparsable {
        path: PathBuf,
        /// The line, counted from one.
        line: usize,
        /// The character in the line, counted from one.
        column: usize,
        /// The parser's message.
        message: String,
    },
    /// The file exists but cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    /// The working directory no longer exists or cannot be entered.
    #[error("cannot determine the working folder")]
    NoWorkingFolder(#[source] io::Error),
    /// Neither `LANGO_HOME` nor `HOME` is set.
    #[error(
        "cannot determine where to store lango's files: `HOME` is not set; set `LANGO_HOME` to a folder"
    )]
    NoHome,
    /// A `-c` flag that is not `key=value`.
    #[error(
        "-c: `{flag}` is not of the form `key=value`; write for example `-c agent.maxToolCalls=10`"
    )]
    MalformedFlag { flag: String },
}

impl ConfigProblem {
    /// Returns the line of the file that the problem is in, if it is in a file.
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

    /// Returns whether the command line is at fault (exit code 2), rather than a file or the environment (exit code
    /// 3).
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

/// How many problems are shown; the others are only counted.
const MAX_SHOWN: usize = 20;

/// All problems, at least one; displayed one per line.
#[derive(Debug)]
pub struct ConfigProblems(Vec<ConfigProblem>);

impl ConfigProblems {
    /// Fails if there are any problems.
    pub(super) fn refuse_if_any(problems: Vec<ConfigProblem>) -> Result<(), Self> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Self(problems))
        }
    }

    /// Iterates over the problems, those of the weakest layer first.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigProblem> {
        self.0.iter()
    }

    /// Returns whether only the command line is at fault; see [`ConfigProblem::is_usage`].
    pub fn is_usage(&self) -> bool {
        self.0.iter().all(ConfigProblem::is_usage)
    }
}

impl From<ConfigProblem> for ConfigProblems {
    fn from(problem: ConfigProblem) -> Self {
        Self(vec![problem])
    }
}

impl fmt::Display for ConfigProblems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().take(MAX_SHOWN).enumerate() {
            if index > 0 {
                formatter.write_str("\n")?;
            }
            write!(formatter, "{problem}")?;
            if let Some(cause) = problem.source() {
                write!(formatter, ": {cause}")?;
            }
        }
        match self.0.len().saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            more => write!(formatter, "\n… and {more} more"),
        }
    }
}

impl Error for ConfigProblems {}

pub(super) fn hint(nearest: Option<&str>) -> String {
    nearest
        .map(|nearest| format!("; did you mean `{nearest}`?"))
        .unwrap_or_default()
}
