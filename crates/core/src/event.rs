//! The log: one event is one stored fact of a turn.
//!
//! The same JSON goes into the store, over the wire and to `--jsonl`. Events are append-only and numbered without a gap
//! within their session; replaying a turn's events gives the state that living it gave.

use crate::{
    AgentName, Answer, AnsweredBy, ApprovalId, ApprovalRequest, Attachment, Call, CallId, Effect,
    FrameId, Inspection, Limits, MessageOrigin, ModelSettings, Opaque, Outcome, Price,
    RemoteThread, SessionId, StopReason, Text, Timestamp, ToolName, Trust, TurnId, Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One stored fact of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its place in the session, from 1.
    pub seq: u64,
    /// The conversation.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The agent's run it belongs to.
    pub frame: FrameId,
    /// Who said or did it: an agent of the tree, or `user`.
    pub author: AgentName,
    /// When it was decided.
    pub time: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub body: EventBody,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum EventBody {
    /// The person said something: a turn begins.
    #[serde(rename = "user.message")]
    UserMessage {
        /// The words.
        text: Text,
        /// Where they came from; none in logs of a lango that did not ask.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<MessageOrigin>,
        /// The files that belong to it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// What holds for this turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        settings: Option<Box<TurnSettings>>,
    },
    /// An agent's accepted reply, or lango's own words when no agent found any.
    #[serde(rename = "agent.message")]
    AgentMessage {
        /// The words.
        text: Text,
        /// The calls, under ids that are unique in the turn.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<Call>,
        /// Whether it ends its frame: the answer to the person in the root's, the result of the delegation elsewhere.
        #[serde(default, rename = "final")]
        is_final: bool,
        /// The model that replied; none when lango itself speaks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Text>,
        /// What it cost.
        #[serde(default)]
        usage: Usage,
        /// The same in millionths of a US dollar, if the price is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_micros: Option<u64>,
        /// What the provider wants back with it, exactly as it came.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Opaque>,
        /// Why the reply ends where it does.
        #[serde(default, skip_serializing_if = "StopReason::is_finished")]
        stop: StopReason,
        /// The trust label of its author's context: trusted only if the instruction and the tools, the conversation,
        /// memory, the task and all results of calls are.
        #[serde(default, skip_serializing_if = "Trust::is_untrusted")]
        trust: Trust,
    },
    /// The orchestrator gave a task to an agent: a frame opens under the id of the call.
    #[serde(rename = "agent.delegated")]
    AgentDelegated {
        /// The call that is answered by the frame's result.
        call: CallId,
        /// The agent.
        agent: AgentName,
        /// What it is to do.
        task: Text,
        /// The round this delegation belongs to, from 1.
        round: u32,
        /// Whether the agent's answer is the person's answer.
        finish: bool,
        /// The files of the conversation that the agent is shown.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// An agent refused its task; it is out for the rest of the turn.
    #[serde(rename = "agent.rejected")]
    AgentRejected {
        /// Why.
        reason: Text,
    },
    /// A tool is about to run; stored before it does.
    #[serde(rename = "tool.called")]
    ToolCalled {
        /// The call.
        call: CallId,
        /// The tool.
        tool: ToolName,
        /// The arguments, checked against the schema.
        arguments: Arc<Value>,
        /// What happens when it runs twice.
        effect: Effect,
        /// What the tool found out about the call before it was allowed.
        #[serde(default, skip_serializing_if = "Inspection::is_empty")]
        inspection: Inspection,
    },
    /// A tool's outcome.
    #[serde(rename = "tool.returned")]
    ToolReturned {
        /// The call.
        call: CallId,
        /// How it went.
        status: CallStatus,
        /// What the model is told.
        output: Text,
        /// The files that came back with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// The trust label of the output: trusted only if nothing in it came from outside.
        #[serde(default, skip_serializing_if = "Trust::is_untrusted")]
        trust: Trust,
    },
    /// A call waits for a person.
    #[serde(rename = "approval.requested")]
    ApprovalRequested(ApprovalRequest),
    /// A person, or the lack of one, decided.
    #[serde(rename = "approval.answered")]
    ApprovalAnswered {
        /// The request.
        request: ApprovalId,
        /// What was said.
        #[serde(flatten)]
        answer: Answer,
        /// Who said it.
        #[serde(flatten)]
        by: AnsweredBy,
    },
    /// A remote agent is about to be asked.
    #[serde(rename = "remote.called")]
    RemoteCalled {
        /// What it is to do.
        task: Text,
    },
    /// A remote agent took its task: from here on it can be asked what became of it.
    #[serde(rename = "remote.accepted")]
    RemoteAccepted {
        /// The names it gave the conversation and the task.
        thread: RemoteThread,
    },
    /// A remote agent's outcome.
    #[serde(rename = "remote.returned")]
    RemoteReturned {
        /// How it went.
        status: CallStatus,
        /// What it said.
        output: Text,
        /// The files that came back with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// Whether it ends its frame with an answer.
        #[serde(rename = "final")]
        is_final: bool,
        /// The conversation that goes on from here; with a task if the words are a question to the person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread: Option<RemoteThread>,
    },
    /// The runner put something right.
    #[serde(rename = "turn.corrected")]
    TurnCorrected {
        /// What was wrong.
        fault: Fault,
        /// The call that the detail answers, if it was about one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// What the model, or the reader of the log, is told.
        detail: Text,
        /// How many tokens the requests of this frame may have from here on, if one was too long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_tokens: Option<u64>,
    },
    /// The turn is over.
    #[serde(rename = "turn.finished")]
    TurnFinished {
        /// How.
        #[serde(flatten)]
        outcome: Outcome,
        /// The event that holds the words for the person, if there are any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<u64>,
        /// What all model calls cost together.
        usage: Usage,
        /// The same in millionths of a US dollar, if every price is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_micros: Option<u64>,
        /// Accepted model replies.
        model_calls: u32,
        /// Tool calls that were allowed to run.
        tool_calls: u32,
        /// Delegation rounds.
        rounds: u32,
    },
}

/// What holds for a turn, stored with its first event so that a later start decides the same.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TurnSettings {
    /// The hard limits.
    pub limits: Limits,
    /// The model.
    pub model: Text,
    /// A digest of the agent tree.
    pub topology: Text,
    /// The folder the agents work in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Text>,
    /// What the model's tokens cost, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// How many tokens the model takes at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// What was remembered of earlier conversations when it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Text>,
    /// The trust label of that and of the earlier turns that the agents are shown.
    #[serde(default, skip_serializing_if = "Trust::is_untrusted")]
    pub history_trust: Trust,
    /// The models of agents that have one of their own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<AgentName, AgentModel>,
    /// How every model should answer.
    #[serde(default, skip_serializing_if = "ModelSettings::is_default")]
    pub model_settings: ModelSettings,
    /// The same for agents with settings of their own, the general ones included.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agent_model_settings: BTreeMap<AgentName, ModelSettings>,
    /// The JSON schema that the answer to the user must satisfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_schema: Option<Arc<Value>>,
    /// The machine the agents work on, and the date; none in logs of a lango that did not tell them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<TurnEnvironment>,
}

/// What agents are told about the machine they work on, as it was when the turn began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEnvironment {
    /// The day, such as `Monday, 2026-11-16`.
    pub date: Text,
    /// The difference to UTC there, such as `UTC+01:00`.
    pub utc_offset: Text,
    /// The operating system, such as `Linux`.
    pub os: Text,
}

/// The model of a single agent, as it was when the turn began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentModel {
    /// Its name.
    pub model: Text,
    /// What its tokens cost, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// How many tokens it takes at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
}

/// How a tool or remote call went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// It ran.
    Ok,
    /// It ran and failed, or could not run.
    Error,
    /// It was not allowed to run.
    Denied,
    /// Nobody can know whether it ran.
    Unknown,
}

/// What the runner put right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// A delegation to a name that is not in the tree.
    UnknownAgent,
    /// A delegation to an agent that refused earlier in this turn.
    RefusedAgent,
    /// A delegation when none was open: the limit is reached, or the agent may not delegate.
    DelegationClosed,
    /// More delegations, or more calls, in one reply than are taken.
    TooManyCalls,
    /// A call of a function that does not exist.
    UnknownTool,
    /// A call of a tool that no agent holds.
    UnmatchedTool,
    /// A call of another agent's tool.
    NotYours,
    /// Arguments that do not parse or do not fit.
    BadArguments,
    /// A call in a reply that was offered nothing to call.
    CallsNotOffered,
    /// The same calls gave the same results again and again.
    Repetition,
    /// A reply without words and calls.
    EmptyReply,
    /// A reply that reached the output limit before any words or calls.
    OutputLimit,
    /// A request that was too long for the model; the next one is shorter.
    ContextTooLong,
    /// A refusal by an agent that cannot refuse.
    StrayRejection,
    /// An answer that does not satisfy the schema of the turn.
    InvalidAnswer,
    /// The model gave no reply.
    ModelFailed,
    /// A frame had to end without an answer because the model calls were spent.
    ModelCallLimit,
    /// A frame had to end without an answer because the tokens were spent.
    TokenLimit,
    /// A frame had to end without an answer because the money was spent.
    CostLimit,
    /// A call was not run because the tool calls were spent.
    ToolCallLimit,
    /// The turn ran out of time.
    TimeLimit,
    /// The person stopped the turn.
    Cancelled,
    /// The process ended in the middle of the turn.
    Interrupted,
    /// The database is a copy that was made in the middle of the turn.
    Restored,
}

impl EventBody {
    /// Whether lango is bound by it: what a person said, what is about to happen outside, and the end that is shown. Such
    /// a fact must outlive the machine before anything follows from it. Every other one must outlive the process; what
    /// the machine's end may take is the middle of a turn that did not end.
    pub fn is_binding(&self) -> bool {
        match self {
            Self::UserMessage { .. }
            | Self::RemoteCalled { .. }
            | Self::ApprovalRequested(_)
            | Self::ApprovalAnswered { .. }
            | Self::TurnFinished { .. } => true,
            Self::ToolCalled { effect, .. } => *effect != Effect::Pure,
            Self::AgentMessage { .. }
            | Self::AgentDelegated { .. }
            | Self::AgentRejected { .. }
            | Self::ToolReturned { .. }
            | Self::RemoteAccepted { .. }
            | Self::RemoteReturned { .. }
            | Self::TurnCorrected { .. } => false,
        }
    }

    /// Returns the trust label of the text it holds.
    pub fn trust(&self) -> Trust {
        match self {
            // Whatever is in a file, its author need not be the person who attached it.
            Self::UserMessage { attachments, .. } if !attachments.is_empty() => Trust::Untrusted,
            Self::UserMessage { origin, .. } => {
                origin.map_or(Trust::Untrusted, MessageOrigin::trust)
            }
            Self::AgentMessage { trust, .. } | Self::ToolReturned { trust, .. } => *trust,
            _ => Trust::Untrusted,
        }
    }

    /// Returns the files that it refers to. The store keeps them as long as an event does.
    pub fn attachments(&self) -> &[Attachment] {
        match self {
            Self::UserMessage { attachments, .. }
            | Self::AgentDelegated { attachments, .. }
            | Self::ToolReturned { attachments, .. }
            | Self::RemoteReturned { attachments, .. } => attachments,
            _ => &[],
        }
    }

    /// The value of `type` in its JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::UserMessage { .. } => "user.message",
            Self::AgentMessage { .. } => "agent.message",
            Self::AgentDelegated { .. } => "agent.delegated",
            Self::AgentRejected { .. } => "agent.rejected",
            Self::ToolCalled { .. } => "tool.called",
            Self::ToolReturned { .. } => "tool.returned",
            Self::ApprovalRequested(_) => "approval.requested",
            Self::ApprovalAnswered { .. } => "approval.answered",
            Self::RemoteCalled { .. } => "remote.called",
            Self::RemoteAccepted { .. } => "remote.accepted",
            Self::RemoteReturned { .. } => "remote.returned",
            Self::TurnCorrected { .. } => "turn.corrected",
            Self::TurnFinished { .. } => "turn.finished",
        }
    }
}
