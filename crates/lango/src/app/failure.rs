//! What went wrong while lango was set up or used, with the next step for the user.

mod vault;

use crate::app::payment::endpoint_step;
use lango_config::edit::EditError;
use lango_config::redact;
use lango_config::{ConfigProblem, ConfigProblems};
use lango_core::{SessionId, StoreError};
use lango_engine::{RunnerError, TopologyError, TreeError};
use lango_knowledge::LibraryError;
use lango_mcp::{LoginError, PinError};
use lango_payment::PaymentError;
use lango_tools::{TrashError, WorkspaceError};
use std::fmt;

/// What a failure is about, so that callers can react to it. The binary `lango` has an exit code for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// Something that was set up correctly failed.
    Failed,
    /// What the caller asked for, or something it refers to, is wrong.
    Usage,
    /// The model, a key or the configuration is wrong.
    Config,
    /// A call was denied because no user could be asked, or waits for an answer.
    Denied,
    /// The user interrupted a prompt or a turn.
    Interrupted,
    /// A termination signal arrived.
    Terminated,
}

/// An error with its kind and what to do next.
#[derive(Debug)]
#[non_exhaustive]
pub struct Failure {
    pub kind: FailureKind,
    error: anyhow::Error,
    next: Option<String>,
}

impl Failure {
    /// Creates a failure with this message.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            error: anyhow::Error::msg(message.into()),
            next: None,
        }
    }

    /// Creates a failure of kind [`FailureKind::Failed`].
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Failed, message)
    }

    /// Creates a failure of kind [`FailureKind::Usage`].
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, message)
    }

    /// Creates a failure of kind [`FailureKind::Config`].
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Config, message)
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

    fn of(kind: FailureKind, error: impl Into<anyhow::Error>, next: Option<&str>) -> Self {
        Self {
            kind,
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
        let kind = if problems.is_usage() {
            FailureKind::Usage
        } else {
            FailureKind::Config
        };
        let next = match problems.iter().next() {
            Some(ConfigProblem::NoWorkingFolder(_)) => "change to an existing folder",
            Some(ConfigProblem::NoHome) => "LANGO_HOME=FOLDER lango …",
            // Only the flags are wrong, so this command works without them.
            _ if problems.is_usage() => "run `lango config show` to see every key with its help",
            _ => {
                "fix the problems above, for example with `lango config edit`; `lango config check` checks the configuration again"
            }
        };
        Self::of(kind, problems, Some(next))
    }
}

impl From<EditError> for Failure {
    fn from(error: EditError) -> Self {
        let (kind, next) = match &error {
            EditError::UnknownKey { .. } => (
                FailureKind::Usage,
                "run `lango config show` to list the keys",
            ),
            EditError::WrongValue { .. } => (
                FailureKind::Usage,
                "run `lango config show` to see what the key means",
            ),
            EditError::NotSet { .. } => (
                FailureKind::Usage,
                "run `lango config show --origin` to see where each key is set",
            ),
            EditError::Unparsable { .. } | EditError::Unsupported { .. } => {
                (FailureKind::Config, "change it with `lango config edit`")
            }
            EditError::Link { .. } => (
                FailureKind::Usage,
                "edit the file that it links to yourself; lango would replace the link",
            ),
            EditError::Foreign { .. } => (FailureKind::Usage, "make it yours with chown and chmod"),
            EditError::Changed { .. } | EditError::Busy { .. } => {
                (FailureKind::Failed, "run the command again")
            }
            EditError::Io { .. } => (
                FailureKind::Config,
                "check the permissions of its folder, or set LANGO_HOME to a writable one",
            ),
            EditError::Config(_) => (
                FailureKind::Config,
                "run `lango config check` after the fix",
            ),
        };
        Self::of(kind, error, Some(next))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let (kind, next) = match &error {
            StoreError::NotFound { .. } => (
                FailureKind::Usage,
                Some("run `lango sessions list` to see the sessions"),
            ),
            StoreError::NotGranted { .. } => (
                FailureKind::Usage,
                Some("run `lango approvals` to see the grants"),
            ),
            StoreError::Exists { .. } => (FailureKind::Usage, None),
            StoreError::Foreign { .. } => (
                FailureKind::Config,
                Some("set session.store to another file, such as `-c session.store=sqlite:PATH`"),
            ),
            StoreError::TooNew { .. } => (
                FailureKind::Config,
                Some("use the lango that wrote it, or a newer one"),
            ),
            StoreError::Unreadable { place, .. } if is_server(place) => (
                FailureKind::Config,
                Some("correct session.store; `lango doctor` tests it"),
            ),
            StoreError::ReadOnly { place, .. } if is_server(place) => (
                FailureKind::Config,
                Some("grant its user write access, or set session.store to another database"),
            ),
            StoreError::Unreadable { .. } => (
                FailureKind::Config,
                Some("restore a backup, or set session.store or LANGO_HOME to another location"),
            ),
            StoreError::ReadOnly { .. } => (
                FailureKind::Config,
                Some(
                    "set LANGO_HOME or session.store to another location, or store nothing with `lango run --ephemeral`",
                ),
            ),
            StoreError::Full { .. } => (
                FailureKind::Failed,
                Some("stored data is safe; free some disk space and try again"),
            ),
            StoreError::Busy { .. } => (
                FailureKind::Failed,
                Some("wait for the running turn, or stop it where it runs"),
            ),
            StoreError::LeaseLost { .. } => (
                FailureKind::Failed,
                Some("open the session again; no stored data is lost"),
            ),
            StoreError::Unreachable { .. } => (
                FailureKind::Config,
                Some("check that it is running and that session.store is correct"),
            ),
            _ => (FailureKind::Failed, None),
        };
        Self::of(kind, error, next)
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
                Self::of(FailureKind::Usage, error, Some("lango run \"read FILE\""))
            }
            RunnerError::ApprovalPending { .. } => Self::of(
                FailureKind::Denied,
                error,
                Some("run `lango approvals` to see the pending approvals"),
            ),
            RunnerError::WrongFolder { ref folder, .. } => {
                let next = format!("cd {folder}");
                Self::of(FailureKind::Usage, error, Some(&next))
            }
            RunnerError::InterruptedInOtherFolder {
                ref session,
                ref folder,
            } => {
                let next = format!(
                    "cd {folder} && lango sessions resume {session}, or abandon the turn: lango sessions close {session}"
                );
                Self::of(FailureKind::Usage, error, Some(&next))
            }
            RunnerError::AgentMissing { ref session, .. } => {
                let next = format!(
                    "run `lango agents` to see the agents; to abandon the turn: lango sessions close {session}"
                );
                Self::of(FailureKind::Config, error, Some(&next))
            }
            RunnerError::CancelledWhileQueued => Self::of(FailureKind::Interrupted, error, None),
            RunnerError::NothingPending
            | RunnerError::NotPending { .. }
            | RunnerError::WrongAnswer { .. } => Self::of(
                FailureKind::Usage,
                error,
                Some("run `lango approvals` to see the pending approvals"),
            ),
            RunnerError::EmptyInput => Self::of(
                FailureKind::Usage,
                error,
                Some("lango run \"what files are here?\""),
            ),
            error => Self::of(FailureKind::Usage, error, None),
        }
    }
}

impl From<TopologyError> for Failure {
    fn from(error: TopologyError) -> Self {
        Self::of(
            FailureKind::Config,
            error,
            Some("run `lango config show --origin` to see where agent.topology is set"),
        )
    }
}

impl From<TreeError> for Failure {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::ToolLessOrchestrator { .. } => Self::of(
                FailureKind::Config,
                error,
                Some("-c agent.topology=classic, or remove agent.orchestratorTools"),
            ),
            TreeError::NoSuchAgent { .. } => Self::of(
                FailureKind::Config,
                error,
                Some("correct mcp.servers.<id>.agent, or remove it"),
            ),
            error => Self::of(
                FailureKind::Config,
                error,
                Some("run `lango agents` to see which agent owns which tool"),
            ),
        }
    }
}

impl From<WorkspaceError> for Failure {
    fn from(error: WorkspaceError) -> Self {
        Self::of(FailureKind::Config, error, None)
    }
}

impl From<LibraryError> for Failure {
    fn from(error: LibraryError) -> Self {
        let (kind, next) = match error {
            LibraryError::Store(error) => return error.into(),
            LibraryError::OtherEmbeddingModel { .. } => {
                (FailureKind::Config, Some("lango knowledge reindex"))
            }
            LibraryError::NoEmbedder => {
                (FailureKind::Config, Some("-c embedding.provider=offline"))
            }
            LibraryError::NoSuchDocument { .. } => {
                (FailureKind::Usage, Some("lango knowledge list"))
            }
            LibraryError::NoSuchPath { .. } => (
                FailureKind::Usage,
                Some("name existing files and folders, such as `lango knowledge add docs/`"),
            ),
            LibraryError::Unusable { .. } => (FailureKind::Usage, None),
            LibraryError::WrongVectors { .. } | LibraryError::Embed(_) => {
                (FailureKind::Config, None)
            }
            LibraryError::Interrupted { .. } => (FailureKind::Failed, None),
        };
        Self::of(kind, error, next)
    }
}

impl From<PinError> for Failure {
    fn from(error: PinError) -> Self {
        let kind = match error {
            PinError::NoSuchServer { .. } => FailureKind::Usage,
            PinError::Unreadable { .. } | PinError::Unwritable { .. } => FailureKind::Config,
        };
        Self::of(kind, error, None)
    }
}

impl From<LoginError> for Failure {
    fn from(error: LoginError) -> Self {
        match error {
            LoginError::NotNeeded { .. } => {
                Self::of(FailureKind::Usage, error, Some("lango mcp list"))
            }
            error => Self::of(FailureKind::Config, error, None),
        }
    }
}

impl From<TrashError> for Failure {
    fn from(error: TrashError) -> Self {
        Self::of(
            FailureKind::Usage,
            error,
            Some("run `lango trash` to list the deleted files"),
        )
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::of(FailureKind::Failed, error, None)
    }
}

impl From<std::io::Error> for Failure {
    /// Commands convert I/O errors this way only when they write to standard output.
    fn from(error: std::io::Error) -> Self {
        let error = anyhow::Error::new(error).context("cannot write to standard output");
        Self::of(FailureKind::Failed, error, None)
    }
}

impl From<PaymentError> for Failure {
    fn from(error: PaymentError) -> Self {
        let kind = match error {
            PaymentError::Key { .. } | PaymentError::WrongChain { .. } => FailureKind::Config,
            _ => FailureKind::Failed,
        };
        let next = endpoint_step(&error)
            .unwrap_or("run `lango doctor` to check the endpoint, the wallet and the limits");
        Self::new(kind, error.to_string()).next(next)
    }
}
