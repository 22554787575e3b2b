//! How a command ends: the exit codes, and the one place where errors become one.

mod vault;

use crate::config::{Problem, Problems};
use crate::redact::redact;
use lango_core::{Outcome, SessionId, StoreError};
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
    /// Ended by a signal of the system.
    Terminated,
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

    /// What failed, without causes and the next step.
    pub fn message(&self) -> String {
        redact(&self.error.to_string()).into_owned()
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

    /// The same, with another beginning of the commands that it names, such as `lango secrets --server`.
    pub fn with_command(mut self, from: &str, to: &str) -> Self {
        if from != to {
            // What names the other command already must not get it twice.
            let replace = |text: &str| text.replace(to, from).replace(from, to);
            self.error = anyhow::Error::msg(replace(&format!("{:#}", self.error)));
            self.next = self.next.map(|next| replace(&next));
        }
        self
    }

    /// The same, with the name of the vault in an error that is about a whole vault, such as "vault of `ann`".
    pub fn of_vault(mut self, name: &str) -> Self {
        let text = self
            .error
            .downcast_ref()
            .and_then(|error| vault::name_vault(error, name));
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
    /// What failed, its causes, and the next step, a line each; without the secrets of addresses.
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
                Some("correct session.store; `lango doctor` tries it"),
            ),
            StoreError::ReadOnly { place, .. } if is_server(place) => (
                Exit::Config,
                Some("give its user the right to write there, or set session.store to another"),
            ),
            StoreError::Unreadable { .. } => (
                Exit::Config,
                Some(
                    "put a backup in its place, or set session.store or LANGO_HOME to another place",
                ),
            ),
            StoreError::ReadOnly { .. } => (
                Exit::Config,
                Some(
                    "set LANGO_HOME or session.store to another place, or store nothing with `lango run --ephemeral`",
                ),
            ),
            StoreError::Full { .. } => (
                Exit::Failed,
                Some("what was stored before is safe; make room and try again"),
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

/// Whether a place is a database on a server, and no file.
fn is_server(place: &str) -> bool {
    place.starts_with("postgres")
}

impl Failure {
    /// What kept a turn from going on, once it was begun: it is in the log, and asking anew would do it twice.
    pub fn in_turn(error: RunnerError, session: &SessionId) -> Self {
        let is_outage = matches!(
            error,
            RunnerError::Store(
                StoreError::Full { .. }
                    | StoreError::ReadOnly { .. }
                    | StoreError::Unreachable { .. }
                    | StoreError::Lost { .. }
                    | StoreError::Failed { .. }
            )
        );
        let failure = Self::from(error);
        match is_outage {
            false => failure,
            true => failure.next(format!(
                "the turn is in session {session} as far as it was stored; do not ask anew. When the store can be \
                 written again: lango sessions resume {session}. A call that may have run is put to you there"
            )),
        }
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
            RunnerError::BegunElsewhere {
                ref session,
                ref folder,
            } => {
                let next = format!(
                    "cd {folder} && lango sessions resume {session}, or give the turn up: lango sessions close {session}"
                );
                Self::of(Exit::Usage, error, Some(&next))
            }
            RunnerError::AgentMissing { ref session, .. } => {
                let next = format!(
                    "`lango agents` shows who is there; to give the turn up: lango sessions close {session}"
                );
                Self::of(Exit::Config, error, Some(&next))
            }
            RunnerError::NotBegun => Self::of(Exit::Interrupted, error, None),
            RunnerError::NothingWaits
            | RunnerError::NotWaiting { .. }
            | RunnerError::NoAnswer { .. } => Self::of(
                Exit::Usage,
                error,
                Some("`lango approvals` lists what waits"),
            ),
            RunnerError::NotAttached { .. } | RunnerError::Duplicate => {
                Self::of(Exit::Usage, error, None)
            }
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
