//! The runner performs what a turn decides, and is the only place that awaits and appends. Append, then show: nothing
//! reaches the screen that is not in the log, but for drafts, which say of themselves that they are not stored.
//!
//! A [`Conversation`] is an open session. It runs one turn at a time, because a turn borrows it.

mod answers;
mod attachments;
mod commit;
mod conversation;
mod draft;
mod drive;
mod going_on;
mod grants;
mod input;
mod model_request;
mod perform;
mod remote;
mod standing;
mod stop;
mod under_way;

use crate::gate::{Gate, Rules};
use crate::tree::Tree;
pub use answers::Answers;
pub use commit::{FirstCommit, TurnCommit};
use commit::{Output, append, append_first, append_last};
pub use conversation::Conversation;
use input::check_input;
use lango_core::{
    AgentName, ApprovalId, AttachedFile, Attachment, AttachmentStore, Batch, BusyPolicy, Clock,
    Environment, Event, EventBody, Extent, Ids, Limits, Model, ModelSettings, Outcome,
    Recollection, RemoteAgent, SessionId, SessionStore, StoreError, Text, Trust, TurnId, Usage,
    UserId, Waiting,
};
pub use model_request::{ModelCall, NotRecomputed};
pub use standing::Standing;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
pub use stop::Stop;

/// Everything a runner works with.
pub struct RunnerParts {
    /// Who exists.
    pub tree: Arc<Tree>,
    /// The tools' code.
    pub gate: Gate,
    /// The model of every local agent that has none of its own.
    pub model: Arc<dyn Model>,
    /// The models of agents that have one of their own.
    pub models: BTreeMap<AgentName, Arc<dyn Model>>,
    /// How every model should answer; an agent's own settings come first.
    pub model_settings: ModelSettings,
    /// What agents are told about the machine and the date; none tells them nothing.
    pub environment: Option<Arc<dyn Environment>>,
    /// Agents that run elsewhere.
    pub remotes: Vec<Arc<dyn RemoteAgent>>,
    /// The log.
    pub store: Arc<dyn SessionStore>,
    /// The bytes of the files that the log refers to.
    pub attachments: Arc<dyn AttachmentStore>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Fresh names.
    pub ids: Arc<dyn Ids>,
    /// What a turn may spend.
    pub limits: Limits,
    /// Which calls run, which are asked for, which never run.
    pub rules: Arc<Rules>,
    /// What is remembered of earlier conversations.
    pub recollection: Option<Arc<dyn Recollection>>,
    /// What to do when a session is busy with another turn.
    pub busy_policy: BusyPolicy,
}

impl RunnerParts {
    /// The model that answers for this agent.
    fn model_of(&self, agent: &AgentName) -> &Arc<dyn Model> {
        self.models.get(agent).unwrap_or(&self.model)
    }

    /// The settings of agents that have some of their own, laid over the general ones.
    fn agent_model_settings(&self) -> BTreeMap<AgentName, ModelSettings> {
        let own = self.tree.agents.iter();
        let own = own.filter(|agent| !agent.settings.is_default());
        own.map(|agent| (agent.name.clone(), agent.settings.or(self.model_settings)))
            .collect()
    }
}

/// Runs turns.
#[derive(Clone)]
pub struct Runner {
    parts: Arc<RunnerParts>,
    interrupted: InterruptedTurns,
}

/// What happens to a turn that was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InterruptedTurns {
    /// It is resumed from its log.
    #[default]
    Resume,
    /// The user is asked whether it goes on: the database may be a copy, and the turn may have gone on in the original.
    Ask,
}

/// What the edges render.
#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    /// The session is busy: the turn waits in line.
    InLine,
    /// Facts that are in the log now.
    Stored(Batch),
    /// More of a text that may become the answer. It is the answer only when a final message with it is stored.
    Draft {
        /// Who is writing.
        author: AgentName,
        /// The next piece.
        text: String,
    },
    /// The text so far will not become the answer.
    Withdrawn,
    /// A model call failed and is made again.
    Retrying {
        /// Whose call.
        agent: AgentName,
        /// Why.
        reason: String,
    },
}

/// How far a turn came.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnEnd {
    /// To its outcome.
    Finished(TurnReport),
    /// To calls that wait for a person. It is parked in the log, and goes on with an answer.
    Waiting(Vec<Waiting>),
}

impl TurnEnd {
    /// The report of a turn that came to its outcome.
    pub fn finished(self) -> Option<TurnReport> {
        match self {
            Self::Finished(report) => Some(report),
            Self::Waiting(_) => None,
        }
    }
}

/// How a turn went.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnReport {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// How it ended.
    pub outcome: Outcome,
    /// The words for the person.
    pub answer: Option<Text>,
    /// Whether the turn had a schema: an answer of an agent is then JSON that satisfies it.
    pub structured: bool,
    /// Whose words they are.
    pub author: Option<AgentName>,
    /// The trust label of its author's context.
    pub trust: Trust,
    /// The model that wrote them.
    pub model: Option<Text>,
    /// Accepted model replies.
    pub model_calls: u32,
    /// Tool calls that were allowed to run.
    pub tool_calls: u32,
    /// Delegation rounds.
    pub rounds: u32,
    /// What the model calls cost.
    pub usage: Usage,
    /// The same in millionths of a US dollar, if every price is known.
    pub cost_micros: Option<u64>,
}

/// Why a turn could not be run or recorded.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The log could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The input is longer than a turn takes.
    #[error(
        "the message has {bytes} bytes; a turn takes {} at most: put it into a file and ask about the file",
        Runner::INPUT_BYTES
    )]
    InputTooLong {
        /// Its length.
        bytes: usize,
    },
    /// A file of the input cannot be attached.
    #[error("{problem}")]
    NotAttached {
        /// Which one, and why.
        problem: String,
    },
    /// The last turn waits for a person, and a new one has to wait behind it.
    #[error("the session waits for an answer to `{request}`")]
    Waiting {
        /// The first request that waits.
        request: ApprovalId,
    },
    /// There was nothing to answer.
    #[error("nothing waits for an answer in this session")]
    NothingWaits,
    /// It was answered already, or never asked.
    #[error("`{request}` does not wait for an answer any more")]
    NotWaiting {
        /// What was to be answered.
        request: ApprovalId,
    },
    /// It was asked for where other files are.
    #[error("`{request}` was asked for in `{folder}`, and can only go on there")]
    Elsewhere {
        /// What was to be answered.
        request: ApprovalId,
        /// Where.
        folder: Text,
    },
    /// It answers something else than what was asked.
    #[error("`{answer}` is no answer to `{request}`")]
    NoAnswer {
        /// What was to be answered.
        request: ApprovalId,
        /// What was said.
        answer: &'static str,
    },
    /// The last turn was cut off where other files are.
    #[error("a turn of session `{session}` was cut off in `{folder}`, and can only go on there")]
    BegunElsewhere {
        /// The session.
        session: SessionId,
        /// Where.
        folder: Text,
    },
    /// An agent that is at work in the last turn is not among the agents here.
    #[error("a turn of session `{session}` cannot go on: the agent `{agent}` is not there")]
    AgentMissing {
        /// The session.
        session: SessionId,
        /// Who.
        agent: AgentName,
    },
    /// It was stopped while it waited in line.
    #[error("stopped before it began; nothing was stored")]
    NotBegun,
    /// The input says nothing.
    #[error("the message is empty")]
    InputEmpty,
    /// Another turn has the same question. See [`FirstCommit::Duplicate`].
    #[error("the message is being answered by another turn")]
    Duplicate,
}

impl Runner {
    /// The longest input of a turn.
    pub const INPUT_BYTES: usize = 1024 * 1024;
    /// Steps of one turn that are under way at once.
    const STEPS_AT_ONCE: usize = 16;
    /// How long a remote agent may take to say what became of a task whose process is gone.
    const HEARING: Duration = Duration::from_secs(5);
    /// How long the end of a turn waits until remote agents know that they can stop.
    const CANCELLING: Duration = Duration::from_secs(2);

    /// A runner over these parts.
    pub fn new(parts: RunnerParts) -> Self {
        Self {
            parts: Arc::new(parts),
            interrupted: InterruptedTurns::default(),
        }
    }

    /// Returns the same runner with another treatment of interrupted turns.
    pub fn with_interrupted(self, interrupted: InterruptedTurns) -> Self {
        Self {
            interrupted,
            ..self
        }
    }

    /// Returns what happens to interrupted turns.
    pub fn interrupted(&self) -> InterruptedTurns {
        self.interrupted
    }

    /// A new session. Nothing is stored before its first turn.
    pub fn start(&self, user: UserId) -> Conversation {
        Conversation::unsaved(self, user)
    }

    /// A new session under a name that the edge chose. Nothing is stored before its first turn. One that is there goes on
    /// with [`Conversation::turn_once`].
    pub fn start_as(&self, user: UserId, session: SessionId) -> Conversation {
        Conversation::unsaved(self, user).named(session)
    }

    /// Returns what a call that waits would change, in the words of its tool.
    pub async fn preview(&self, waiting: &Waiting, extent: Extent) -> Option<String> {
        self.parts.gate.preview(&waiting.request, extent).await
    }

    /// Stores files of a user for a message to come, and returns references in their order. One that cannot be attached
    /// refuses all of them. What no message refers to is deleted after a day.
    pub async fn store_files(
        &self,
        user: &UserId,
        files: Vec<AttachedFile>,
    ) -> Result<Vec<Attachment>, RunnerError> {
        attachments::store_checked(&self.parts, user, files).await
    }

    /// An existing session, as it stands. Nothing is held or written before a turn begins or goes on.
    pub async fn open(&self, session: SessionId) -> Result<Conversation, RunnerError> {
        Conversation::open(self, session).await
    }
}

/// Reads the report out of a turn's last events, which hold the answer and the end.
fn report(last: &[Event]) -> TurnReport {
    let mut report = TurnReport {
        session: SessionId::from(""),
        turn: TurnId::from(""),
        outcome: Outcome::Interrupted,
        answer: None,
        structured: last.iter().any(has_answer_schema),
        author: None,
        trust: Trust::Untrusted,
        model: None,
        model_calls: 0,
        tool_calls: 0,
        rounds: 0,
        usage: Usage::default(),
        cost_micros: None,
    };
    for event in last.iter() {
        let EventBody::TurnFinished {
            outcome,
            answer,
            usage,
            cost_micros,
            model_calls,
            tool_calls,
            rounds,
        } = &event.body
        else {
            continue;
        };
        let spoken = last.iter().find(|event| Some(event.seq) == *answer);
        report = TurnReport {
            session: event.session.clone(),
            turn: event.turn.clone(),
            outcome: outcome.clone(),
            answer: spoken.and_then(words),
            structured: report.structured,
            author: spoken.map(|event| event.author.clone()),
            trust: spoken.map_or(Trust::Untrusted, |event| event.body.trust()),
            model: spoken.and_then(model_of),
            model_calls: *model_calls,
            tool_calls: *tool_calls,
            rounds: *rounds,
            usage: *usage,
            cost_micros: *cost_micros,
        };
    }
    report
}

fn has_answer_schema(event: &Event) -> bool {
    matches!(
        &event.body,
        EventBody::UserMessage { settings: Some(settings), .. } if settings.answer_schema.is_some()
    )
}

fn words(event: &Event) -> Option<Text> {
    match &event.body {
        EventBody::AgentMessage { text, .. } => Some(Arc::clone(text)),
        EventBody::RemoteReturned { output, .. } => Some(Arc::clone(output)),
        _ => None,
    }
}

fn model_of(event: &Event) -> Option<Text> {
    match &event.body {
        EventBody::AgentMessage { model, .. } => model.clone(),
        _ => None,
    }
}
