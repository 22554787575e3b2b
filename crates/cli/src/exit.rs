//! How a command ends: the exit codes, and the one place where errors become one.

use crate::config::{Problem, Problems};
use lango_core::{Outcome, StoreError};
use lango_engine::{RunnerError, TopologyError, TreeError};
use lango_knowledge::LibraryError;
use lango_mcp::{LoginError, PinError};
use lango_tools::{TrashError, WorkspaceError};
use std::fmt;

/// The exit codes, as the documentation lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It worked; a limit that still gave an answer is named, and is no failure.
    Ok,
    /// The turn failed.
    Failed,
    /// The command line, or what it names, is wrong.
    Usage,
    /// The model, a key or the configuration is wrong.
    Config,
    /// Something was denied because nobody could allow it, or waits for an answer.
    Denied,
    /// A limit was hit before there was an answer.
    Limit,
    /// Stopped from the keyboard.
    Interrupted,
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Config => 3,
            Self::Denied => 4,
            Self::Limit => 5,
            Self::Interrupted => 130,
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

/// Why a command could not do its work: the exit code, what failed, and what to do next.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    error: anyhow::Error,
    next: Option<String>,
}

impl Failure {
    /// A failure with this text.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            error: anyhow::Error::msg(message.into()),
            next: None,
        }
    }

    /// The same, with the next step.
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// The same, with the place that is at fault in front.
    pub fn at(mut self, place: &str) -> Self {
        let message = format!("{place}: {}", self.error);
        self.error = anyhow::Error::msg(message);
        self
    }

    fn of(exit: Exit, error: impl Into<anyhow::Error>, next: Option<&str>) -> Self {
        Self {
            exit,
            error: error.into(),
            next: next.map(str::to_owned),
        }
    }
}

impl fmt::Display for Failure {
    /// What failed, its causes, and the next step, a line each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error)?;
        for cause in self.error.chain().skip(1) {
            write!(f, "\n  cause: {cause}")?;
        }
        match &self.next {
            Some(next) => write!(f, "\n  next: {next}"),
            None => Ok(()),
        }
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        let exit = if problems.is_usage() {
            Exit::Usage
        } else {
            Exit::Config
        };
        let next = match problems.iter().next() {
            Some(Problem::NoWorkingFolder(_)) => "change to a folder that exists",
            Some(Problem::NoHome) => "LANGO_HOME=FOLDER lango …",
            // Without its flags the command works.
            _ if problems.is_usage() => "`lango config show` lists every key with its help",
            _ => "correct what is named above; `lango config check` tells when all is well",
        };
        Self::of(exit, problems, Some(next))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let (exit, next) = match &error {
            StoreError::NotFound { .. } => (
                Exit::Usage,
                Some("`lango sessions list` shows the sessions"),
            ),
            StoreError::NotGranted { .. } => {
                (Exit::Usage, Some("`lango approvals` lists what is granted"))
            }
            StoreError::Exists { .. } => (Exit::Usage, None),
            StoreError::Foreign { .. } | StoreError::TooNew { .. } => (
                Exit::Config,
                Some("set session.store to another file, such as `-c session.store=sqlite:PATH`"),
            ),
            StoreError::Unreadable { .. } | StoreError::ReadOnly { .. } => (
                Exit::Config,
                Some(
                    "set LANGO_HOME or session.store to another place, or store nothing with `lango run --ephemeral`",
                ),
            ),
            StoreError::Full { .. } => (
                Exit::Failed,
                Some("what was stored before is safe; run it again when there is room"),
            ),
            StoreError::Busy { .. } => {
                (Exit::Failed, Some("wait for it, or stop it where it runs"))
            }
            StoreError::Lost { .. } => (
                Exit::Failed,
                Some("open the session again; nothing that was stored is lost"),
            ),
            StoreError::Unreachable { .. } => (
                Exit::Config,
                Some("see that it runs and that session.store names it"),
            ),
            StoreError::Conflict { .. }
            | StoreError::Damaged { .. }
            | StoreError::Failed { .. } => (Exit::Failed, None),
        };
        Self::of(exit, error, next)
    }
}

impl From<RunnerError> for Failure {
    fn from(error: RunnerError) -> Self {
        match error {
            RunnerError::Store(error) => error.into(),
            RunnerError::InputTooLong { .. } => {
                Self::of(Exit::Usage, error, Some("lango run \"read FILE\""))
            }
            RunnerError::Waiting { .. } => Self::of(
                Exit::Denied,
                error,
                Some("`lango approvals` lists what waits"),
            ),
            RunnerError::Elsewhere { ref folder, .. } => {
                let next = format!("cd {folder}");
                Self::of(Exit::Usage, error, Some(&next))
            }
            RunnerError::NotBegun => Self::of(Exit::Interrupted, error, None),
            RunnerError::NothingWaits
            | RunnerError::NotWaiting { .. }
            | RunnerError::NoAnswer { .. } => Self::of(
                Exit::Usage,
                error,
                Some("`lango approvals` lists what waits"),
            ),
            RunnerError::InputEmpty => Self::of(
                Exit::Usage,
                error,
                Some("lango run \"what files are here?\""),
            ),
        }
    }
}

impl From<TopologyError> for Failure {
    fn from(error: TopologyError) -> Self {
        Self::of(
            Exit::Config,
            error,
            Some("`lango config show --origin` tells where agent.topology is set"),
        )
    }
}

impl From<TreeError> for Failure {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::ToolLessOrchestrator { .. } => Self::of(
                Exit::Config,
                error,
                Some("-c agent.topology=classic, or remove agent.orchestratorTools"),
            ),
            TreeError::NoSuchAgent { .. } => Self::of(
                Exit::Config,
                error,
                Some("correct mcp.servers.<id>.agent, or remove it"),
            ),
            error => Self::of(
                Exit::Config,
                error,
                Some("`lango agents` shows which agent holds which tool"),
            ),
        }
    }
}

impl From<WorkspaceError> for Failure {
    fn from(error: WorkspaceError) -> Self {
        Self::of(Exit::Config, error, None)
    }
}

impl From<LibraryError> for Failure {
    fn from(error: LibraryError) -> Self {
        let (exit, next) = match error {
            LibraryError::Store(error) => return error.into(),
            LibraryError::OtherMaker { .. } => (Exit::Config, Some("lango knowledge reindex")),
            LibraryError::NoEmbedder => (Exit::Config, Some("-c embedding.provider=offline")),
            LibraryError::NoSuchDocument { .. } => (Exit::Usage, Some("lango knowledge list")),
            LibraryError::NoSuchPath { .. } => (
                Exit::Usage,
                Some("name files and folders that are there: lango knowledge add docs/"),
            ),
            LibraryError::Unusable { .. } => (Exit::Usage, None),
            LibraryError::WrongVectors { .. } | LibraryError::Embed(_) => (Exit::Config, None),
            LibraryError::BrokenOff { .. } => (Exit::Failed, None),
        };
        Self::of(exit, error, next)
    }
}

impl From<PinError> for Failure {
    fn from(error: PinError) -> Self {
        let exit = match error {
            PinError::NoSuchServer { .. } => Exit::Usage,
            PinError::Unreadable { .. } | PinError::Unwritable { .. } => Exit::Config,
        };
        Self::of(exit, error, None)
    }
}

impl From<LoginError> for Failure {
    fn from(error: LoginError) -> Self {
        match error {
            LoginError::NotNeeded { .. } => Self::of(Exit::Usage, error, Some("lango mcp list")),
            error => Self::of(Exit::Config, error, None),
        }
    }
}

impl From<TrashError> for Failure {
    fn from(error: TrashError) -> Self {
        Self::of(
            Exit::Usage,
            error,
            Some("`lango trash` lists what was deleted"),
        )
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::of(Exit::Failed, error, None)
    }
}

impl From<std::io::Error> for Failure {
    /// All that a command does with files itself is to write to standard output.
    fn from(error: std::io::Error) -> Self {
        let error = anyhow::Error::new(error).context("standard output cannot be written");
        Self::of(Exit::Failed, error, None)
    }
}
