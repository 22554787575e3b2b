//! Exit codes, and the conversion of errors to failures with an exit code and a next step.

mod vault;

use crate::config::{ConfigProblem, ConfigProblems};
use crate::redact::redact;
use lango_core::{Outcome, SessionId, StoreError};
use lango_engine::{RunnerError, TopologyError, TreeError};
use lango_knowledge::LibraryError;
use lango_mcp::{LoginError, PinError};
use lango_tools::{TrashError, WorkspaceError};
use std::fmt;

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

/// Why a command failed: the exit code, the error, and what to do next.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    error: anyhow::Error,
    next: Option<String>,
}

impl Failure {
    /// Creates a failure with this message.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            error: anyhow::Error::msg(message.into()),
            next: None,
        }
    }

    /// Returns the message, without causes and next step.
    pub fn message(&self) -> String {
        redact(&self.error.to_string()).into_owned()
    }

    /// Adds the next step.
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// Prefixes the message with the location of the problem.
    pub fn at(mut self, place: &str) -> Self {
        let message = format!("{place}: {}", self.error);
        self.error = anyhow::Error::msg(message);
        self
    }

    /// Replaces the start of the commands that the failure mentions, for example with `lango secrets --server`.
    pub fn with_command(mut self, from: &str, to: &str) -> Self {
        if from != to {
            // A text that already contains the new command must not get it twice.
            let replace = |text: &str| text.replace(to, from).replace(from, to);
            self.error = anyhow::Error::msg(replace(&format!("{:#}", self.error)));
            self.next = self.next.map(|next| replace(&next));
        }
        self
    }

    /// Adds the name of the vault, such as "vault of `ann`", to an error about a whole vault.
    pub fn with_vault_name(mut self, name: &str) -> Self {
        let text = self
            .error
            .downcast_ref()
            .and_then(|error| vault::text_with_vault_name(error, name));
        if let Some(text) = text {
            self.error = anyhow::Error::msg(text);
        }
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
    /// Writes the message, its causes and the next step, one per line, without secrets in addresses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact(&self.error.to_string()))?;
        for cause in self.error.chain().skip(1) {
            write!(f, "\n  cause: {}", redact(&cause.to_string()))?;
        }
        match &self.next {
            Some(next) => write!(f, "\n  next: {next}"),
            None => Ok(()),
        }
    }
}

impl From<ConfigProblems> for Failure {
    fn from(problems: ConfigProblems) -> Self {
        let exit = if problems.is_usage() {
            Exit::Usage
        } else {
            Exit::Config
        };
        let next = match problems.iter().next() {
            Some(ConfigProblem::NoWorkingFolder(_)) => "change to an existing folder",
            Some(ConfigProblem::NoHome) => "LANGO_HOME=FOLDER lango …",
            // Only the flags are wrong, so this command works without them.
            _ if problems.is_usage() => "run `lango config show` to see every key with its help",
            _ => "fix the problems above; `lango config check` checks the configuration again",
        };
        Self::of(exit, problems, Some(next))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let (exit, next) = match &error {
            StoreError::NotFound { .. } => (
                Exit::Usage,
                Some("run `lango sessions list` to see the sessions"),
            ),
            StoreError::NotGranted { .. } => {
                (Exit::Usage, Some("run `lango approvals` to see the grants"))
            }
            StoreError::Exists { .. } => (Exit::Usage, None),
            StoreError::Foreign { .. } => (
                Exit::Config,
                Some("set session.store to another file, such as `-c session.store=sqlite:PATH`"),
            ),
            StoreError::TooNew { .. } => (
                Exit::Config,
                Some("use the lango that wrote it, or a newer one"),
            ),
            StoreError::Unreadable { place, .. } if is_server(place) => (
                Exit::Config,
                Some("correct session.store; `lango doctor` tests it"),
            ),
            StoreError::ReadOnly { place, .. } if is_server(place) => (
                Exit::Config,
                Some("grant its user write access, or set session.store to another database"),
            ),
            StoreError::Unreadable { .. } => (
                Exit::Config,
                Some("restore a backup, or set session.store or LANGO_HOME to another location"),
            ),
            StoreError::ReadOnly { .. } => (
                Exit::Config,
                Some(
                    "set LANGO_HOME or session.store to another location, or store nothing with `lango run --ephemeral`",
                ),
            ),
            StoreError::Full { .. } => (
                Exit::Failed,
                Some("stored data is safe; free some disk space and try again"),
            ),
            StoreError::Busy { .. } => (
                Exit::Failed,
                Some("wait for the running turn, or stop it where it runs"),
            ),
            StoreError::LeaseLost { .. } => (
                Exit::Failed,
                Some("open the session again; no stored data is lost"),
            ),
            StoreError::Unreachable { .. } => (
                Exit::Config,
                Some("check that it is running and that session.store is correct"),
            ),
            StoreError::Conflict { .. }
            | StoreError::Damaged { .. }
            | StoreError::Failed { .. } => (Exit::Failed, None),
        };
        Self::of(exit, error, next)
    }
}

/// Returns whether a location is a database server rather than a file.
fn is_server(place: &str) -> bool {
    place.starts_with("postgres")
}

impl Failure {
    /// Converts an error after a turn has started: the turn is in the log, and asking again could repeat its effects.
    pub fn in_turn(error: RunnerError, session: &SessionId) -> Self {
        let is_outage = matches!(
            error,
            RunnerError::Store(
                StoreError::Full { .. }
                    | StoreError::ReadOnly { .. }
                    | StoreError::Unreachable { .. }
                    | StoreError::LeaseLost { .. }
                    | StoreError::Failed { .. }
            )
        );
        let failure = Self::from(error);
        if !is_outage {
            return failure;
        }
        failure.next(format!(
            "session {session} has the turn as far as it was stored; do not ask the question again. When the store can be \
             written again, run `lango sessions resume {session}`; it asks you about calls that may have run"
        ))
    }
}

impl From<RunnerError> for Failure {
    fn from(error: RunnerError) -> Self {
        match error {
            RunnerError::Store(error) => error.into(),
            RunnerError::InputTooLong { .. } => {
                Self::of(Exit::Usage, error, Some("lango run \"read FILE\""))
            }
            RunnerError::ApprovalPending { .. } => Self::of(
                Exit::Denied,
                error,
                Some("run `lango approvals` to see the pending approvals"),
            ),
            RunnerError::WrongFolder { ref folder, .. } => {
                let next = format!("cd {folder}");
                Self::of(Exit::Usage, error, Some(&next))
            }
            RunnerError::InterruptedInOtherFolder {
                ref session,
                ref folder,
            } => {
                let next = format!(
                    "cd {folder} && lango sessions resume {session}, or abandon the turn: lango sessions close {session}"
                );
                Self::of(Exit::Usage, error, Some(&next))
            }
            RunnerError::AgentMissing { ref session, .. } => {
                let next = format!(
                    "run `lango agents` to see the agents; to abandon the turn: lango sessions close {session}"
                );
                Self::of(Exit::Config, error, Some(&next))
            }
            RunnerError::CancelledWhileQueued => Self::of(Exit::Interrupted, error, None),
            RunnerError::NothingPending
            | RunnerError::NotPending { .. }
            | RunnerError::WrongAnswer { .. } => Self::of(
                Exit::Usage,
                error,
                Some("run `lango approvals` to see the pending approvals"),
            ),
            RunnerError::AttachmentRejected { .. } | RunnerError::Duplicate => {
                Self::of(Exit::Usage, error, None)
            }
            RunnerError::EmptyInput => Self::of(
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
            Some("run `lango config show --origin` to see where agent.topology is set"),
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
                Some("run `lango agents` to see which agent owns which tool"),
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
            LibraryError::OtherEmbeddingModel { .. } => {
                (Exit::Config, Some("lango knowledge reindex"))
            }
            LibraryError::NoEmbedder => (Exit::Config, Some("-c embedding.provider=offline")),
            LibraryError::NoSuchDocument { .. } => (Exit::Usage, Some("lango knowledge list")),
            LibraryError::NoSuchPath { .. } => (
                Exit::Usage,
                Some("name existing files and folders, such as `lango knowledge add docs/`"),
            ),
            LibraryError::Unusable { .. } => (Exit::Usage, None),
            LibraryError::WrongVectors { .. } | LibraryError::Embed(_) => (Exit::Config, None),
            LibraryError::Interrupted { .. } => (Exit::Failed, None),
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
            Some("run `lango trash` to list the deleted files"),
        )
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::of(Exit::Failed, error, None)
    }
}

impl From<std::io::Error> for Failure {
    /// Commands convert I/O errors this way only when they write to standard output.
    fn from(error: std::io::Error) -> Self {
        let error = anyhow::Error::new(error).context("cannot write to standard output");
        Self::of(Exit::Failed, error, None)
    }
}
