//! The runner performs the steps that a turn decides on. It is the only place that awaits and that appends to the log.
//! It stores events before it publishes them, so subscribers only see what is in the log; drafts are the exception, and
//! are marked as not stored.
//!
//! A [`Conversation`] is an open session. It runs one turn at a time, because a turn borrows it.

mod answer_inbox;
mod attachments;
mod cancel_token;
mod commit;
mod conversation;
mod conversation_state;
mod draft;
mod drive;
mod grants;
mod input;
mod model_request;
mod new_turn;
mod parts;
mod remote;
mod resume;
mod running_steps;
mod spans;
mod step;
mod turn_context;
mod turn_status;
mod undo;
mod updates;

use crate::gate;
use crate::turn::failure_notice;
pub use answer_inbox::AnswerInbox;
pub use cancel_token::CancelToken;
pub use commit::{FirstCommit, TurnCommit};
use commit::{append, append_first, append_last};
pub use conversation::Conversation;
use lango_core::{
    AgentName, ApprovalId, AttachedFile, Attachment, CallId, Event, EventBatch, EventBody, FrameId,
    Outcome, PendingApproval, PreviewLength, RuleSubject, SessionId, StoreError, Text, Trust,
    TurnId, Usage, UserId,
};
pub use model_request::{ModelCall, RecomputeError};
pub use parts::RunnerParts;
use std::sync::Arc;
use std::time::Duration;
pub use turn_status::TurnStatus;
pub use undo::{UndoError, UndoableTurn, UndoneFiles, paths_left};
pub use updates::{UpdateBacklog, UpdateReceiver, UpdateSender, turn_updates};

#[derive(Clone)]
pub struct Runner {
    parts: Arc<RunnerParts>,
    interrupted: InterruptedTurnPolicy,
}

/// What to do with an interrupted turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InterruptedTurnPolicy {
    /// Resume it from its log.
    #[default]
    Resume,
    /// Ask the user whether to continue it, because the database may be a copy, and the turn may have continued in the
    /// original.
    Ask,
}

/// An update about a running turn, for the user interface.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnUpdate {
    /// The session is busy and the turn is queued.
    Queued,
    /// Events that were just stored.
    Stored(EventBatch),
    /// The next piece of a text that may become the answer. It is the answer only if a final message with it is stored.
    Draft {
        frame: FrameId,
        author: AgentName,
        text: String,
    },
    /// The draft so far will not become the answer.
    DraftWithdrawn,
    /// A model call failed and is retried.
    Retrying { agent: AgentName, reason: String },
    /// A model call started.
    ModelStarted {
        frame: FrameId,
        agent: AgentName,
        /// The name of the model, as `provider/model`.
        model: Text,
    },
    /// The model call of this frame has produced this many more bytes of output: text, reasoning or arguments of calls,
    /// also if the text is not shown as a draft. Output of failed attempts counts.
    ModelProgress { frame: FrameId, bytes: usize },
    /// The next output of a running tool call, with secrets masked. Only the end of a long output is sent.
    ToolOutput { call: CallId, text: String },
}

/// The end of a run: the turn finished, or waits for approvals.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnEnd {
    Finished(TurnReport),
    /// The turn waits for these approvals. It exists only as stored events until an answer continues it.
    Waiting(Vec<PendingApproval>),
}

impl TurnEnd {
    /// Returns the report if the turn finished.
    pub fn finished(self) -> Option<TurnReport> {
        match self {
            Self::Finished(report) => Some(report),
            Self::Waiting(_) => None,
        }
    }
}

/// A summary of a finished turn.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TurnReport {
    pub session: SessionId,
    pub turn: TurnId,
    pub outcome: Outcome,
    /// The answer for the user.
    pub answer: Option<Text>,
    /// Whether the turn had an answer schema. If so, an answer of an agent is JSON that matches it.
    pub structured: bool,
    /// The author of the answer.
    pub author: Option<AgentName>,
    /// The trust label of the author's context.
    pub trust: Trust,
    /// The model that wrote the answer.
    pub model: Option<Text>,
    pub model_calls: u32,
    /// Tool calls that the gate let run.
    pub tool_calls: u32,
    pub rounds: u32,
    /// The sum over all model calls.
    pub usage: Usage,
    /// The cost in millionths of a US dollar, if every price is known.
    pub cost_micros: Option<u64>,
}

impl TurnReport {
    /// Returns the answer. If the turn failed or hit a limit, it is lango's explanation for the user; if the turn was
    /// cancelled, it is empty.
    pub fn text(&self) -> &str {
        match self.outcome {
            Outcome::Cancelled | Outcome::Interrupted => "",
            _ => self.answer.as_deref().unwrap_or_default(),
        }
    }

    /// Returns the answer, for an edge that shows the error of a failed turn separately: lango's message about such a
    /// turn without the sentence with the error. `None` if nothing is left.
    pub fn answer_without_error(&self) -> Option<&str> {
        let answer = self.answer.as_deref()?;
        let Outcome::Failed { error, .. } = &self.outcome else {
            return Some(answer);
        };
        let notice = failure_notice(error);
        let rest = answer.strip_prefix(&notice).unwrap_or(answer);
        Some(rest.trim_start()).filter(|rest| !rest.is_empty())
    }

    /// Returns the name of the agent that answered; empty if none did.
    pub fn author(&self) -> &str {
        match self.outcome {
            Outcome::Answered { .. } => self.author.as_ref().map_or("", AgentName::as_str),
            _ => "",
        }
    }

    /// Whether an agent answered.
    pub fn is_answered(&self) -> bool {
        matches!(self.outcome, Outcome::Answered { .. })
    }
}

/// A turn that could not be run or stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "the message has {bytes} bytes, more than the limit of {}; put it into a file and ask about the file",
        Runner::INPUT_BYTES
    )]
    InputTooLong { bytes: usize },
    #[error("{problem}")]
    AttachmentRejected {
        /// The file and the reason.
        problem: String,
    },
    /// The last turn waits for an approval, so no new turn can start.
    #[error("the session waits for an answer to `{request}`")]
    ApprovalPending {
        /// The first pending request.
        request: ApprovalId,
    },
    /// The session has no unfinished turn to continue.
    #[error("no unfinished turn waits in this session")]
    NothingPending,
    /// The request was already answered, or never existed.
    #[error("`{request}` is no longer pending")]
    NotPending { request: ApprovalId },
    /// The request was made in another folder. Here its call would act on different files.
    #[error("`{request}` was requested in `{folder}` and can only be answered there")]
    WrongFolder { request: ApprovalId, folder: Text },
    /// The answer does not fit the question of the request.
    #[error("`{answer}` is not a valid answer to `{request}`")]
    WrongAnswer {
        request: ApprovalId,
        answer: &'static str,
    },
    /// The last turn was interrupted in another folder.
    #[error(
        "a turn of session `{session}` was interrupted in `{folder}` and can only continue there"
    )]
    InterruptedInOtherFolder { session: SessionId, folder: Text },
    /// The unfinished turn needs an agent that is not in the tree.
    #[error(
        "a turn of session `{session}` cannot continue: the agent `{agent}` does not exist here"
    )]
    AgentMissing {
        session: SessionId,
        agent: AgentName,
    },
    /// The turn was cancelled while it waited in the queue.
    #[error("cancelled before the turn started; nothing was stored")]
    CancelledWhileQueued,
    #[error("the message is empty")]
    EmptyInput,
    /// Another turn already has this message. See [`FirstCommit::Duplicate`].
    #[error("the message is being answered by another turn")]
    Duplicate,
}

impl Runner {
    /// The maximum length of a turn's input.
    pub const INPUT_BYTES: usize = 1024 * 1024;
    /// The maximum number of steps of one turn that run concurrently.
    const MAX_RUNNING_STEPS: usize = 16;
    /// How long to wait for a remote agent to report the result of an interrupted turn's task.
    const REMOTE_RESULT_TIMEOUT: Duration = Duration::from_secs(5);
    /// How long the end of a turn waits for remote agents to acknowledge a cancel.
    const REMOTE_CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

    /// Creates a runner.
    pub fn new(parts: RunnerParts) -> Self {
        Self {
            parts: Arc::new(parts),
            interrupted: InterruptedTurnPolicy::default(),
        }
    }

    /// Sets what to do with interrupted turns.
    pub fn with_interrupted(self, interrupted: InterruptedTurnPolicy) -> Self {
        Self {
            interrupted,
            ..self
        }
    }

    pub fn interrupted(&self) -> InterruptedTurnPolicy {
        self.interrupted
    }

    /// Starts a new session. Nothing is stored before its first turn.
    pub fn start(&self, user: UserId) -> Conversation {
        Conversation::unsaved(self, user)
    }

    /// Starts a session with an id that the caller chose. Nothing is stored before its first turn. If the session may
    /// already exist, run turns with [`Conversation::turn_once`].
    pub fn start_as(&self, user: UserId, session: SessionId) -> Conversation {
        Conversation::unsaved(self, user).named(session)
    }

    /// Returns what a pending call would change, as described by its tool.
    pub async fn preview(
        &self,
        waiting: &PendingApproval,
        length: PreviewLength,
    ) -> Option<String> {
        self.parts.gate.preview(&waiting.request, length).await
    }

    /// Returns what the patterns of rules and grants match for a pending call.
    pub fn subject_of(&self, waiting: &PendingApproval) -> RuleSubject {
        let request = &waiting.request;
        let agent = self.parts.tree.agent(request.agent.as_str());
        let tool = agent.and_then(|agent| agent.tool(request.tool.as_str()));
        tool.map_or(RuleSubject::default(), |tool| tool.spec.subject)
    }

    /// Whether mode `accept-edits` would run this pending call without a question.
    pub fn is_accepted_edit(&self, waiting: &PendingApproval) -> bool {
        let RunnerParts { tree, rules, .. } = &*self.parts;
        gate::is_accepted_edit(tree, rules, &waiting.request)
    }

    /// Stores a user's files for a later message, and returns their references in the same order. If one cannot be
    /// attached, none is stored. Files that no message refers to are deleted after a day.
    pub async fn store_files(
        &self,
        user: &UserId,
        files: Vec<AttachedFile>,
    ) -> Result<Vec<Attachment>, RunnerError> {
        attachments::store_checked(&self.parts, user, files).await
    }

    /// Opens an existing session. This takes no lease and writes nothing; only running a turn does.
    pub async fn open(&self, session: SessionId) -> Result<Conversation, RunnerError> {
        let mut conversation = self.start_as(UserId::from(""), session);
        conversation.read().await?;
        Ok(conversation)
    }
}

/// Builds the report from the last events of a turn, which contain the answer and the end.
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
        let answer = last.iter().find(|event| Some(event.seq) == *answer);
        report = TurnReport {
            session: event.session.clone(),
            turn: event.turn.clone(),
            outcome: outcome.clone(),
            answer: answer.and_then(answer_text),
            structured: report.structured,
            author: answer.map(|event| event.author.clone()),
            trust: answer.map_or(Trust::Untrusted, |event| event.body.trust()),
            model: answer.and_then(model_of),
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

fn answer_text(event: &Event) -> Option<Text> {
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
