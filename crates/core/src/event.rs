//! The event log. An event is one stored fact of a turn.
//!
//! The store, the wire and `--jsonl` use the same JSON. Events are append-only and numbered without gaps within their
//! session. Replaying a turn's events restores exactly the state that the live turn had.

use crate::{
    AgentName, AnswerSource, ApprovalAnswer, ApprovalId, ApprovalRequest, Attachment, Call, CallId,
    Effect, FrameId, Inspection, Limits, MessageOrigin, ModelSettings, OpaqueData, Outcome,
    PermissionMode, Price, RemoteThread, SessionId, StopReason, Text, Timestamp, ToolName, Trust,
    TurnId, Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One stored fact of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The position in the session, starting at 1.
    pub seq: u64,
    pub session: SessionId,
    pub turn: TurnId,
    /// The frame that the event belongs to: one agent's run inside the turn.
    pub frame: FrameId,
    /// The author of the event: an agent of the tree, or `user`.
    pub author: AgentName,
    /// When the event was created.
    pub time: Timestamp,
    #[serde(flatten)]
    pub body: EventBody,
}

/// The kind of an event, with its data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum EventBody {
    /// The user's message, which starts a turn.
    #[serde(rename = "user.message")]
    UserMessage {
        text: Text,
        /// `None` in logs of an older lango.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<MessageOrigin>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// The settings that the turn started with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        settings: Option<Box<TurnSettings>>,
    },
    /// An agent's accepted reply, or a text that lango wrote itself because no agent answered.
    #[serde(rename = "agent.message")]
    AgentMessage {
        text: Text,
        /// The calls. Their ids are unique in the turn.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<Call>,
        /// Whether the message ends its frame. In the root frame, such a message is the answer to the user; in any
        /// other frame, it is the result of the delegation.
        #[serde(default, rename = "final")]
        is_final: bool,
        /// The model that replied; `None` if lango wrote the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Text>,
        #[serde(default)]
        usage: Usage,
        /// The cost in millionths of a US dollar, if the price is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_micros: Option<u64>,
        /// Provider data to send back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<OpaqueData>,
        #[serde(default, skip_serializing_if = "StopReason::is_finished")]
        stop: StopReason,
        /// The trust label of the author's context: trusted only if its instruction, tools, conversation, memory, task
        /// and all call results are trusted.
        #[serde(default, skip_serializing_if = "Trust::is_untrusted")]
        trust: Trust,
    },
    /// The orchestrator delegated a task. This opens a frame whose id is the id of the call.
    #[serde(rename = "agent.delegated")]
    AgentDelegated {
        /// The call that the frame's result answers.
        call: CallId,
        agent: AgentName,
        task: Text,
        /// The round of the delegation, starting at 1.
        round: u32,
        /// Whether the agent's answer goes straight to the user.
        finish: bool,
        /// The files of the conversation that the agent may see.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// A sub-agent rejected its task. It gets no more tasks in this turn.
    #[serde(rename = "agent.rejected")]
    AgentRejected { reason: Text },
    /// A tool is about to run. The event is stored before the tool runs, or together with the result of a pure tool.
    #[serde(rename = "tool.called")]
    ToolCalled {
        call: CallId,
        tool: ToolName,
        /// The arguments, validated against the schema.
        arguments: Arc<Value>,
        effect: Effect,
        /// The tool's inspection of the call, made before the gate decided.
        #[serde(default, skip_serializing_if = "Inspection::is_empty")]
        inspection: Inspection,
    },
    #[serde(rename = "tool.returned")]
    ToolReturned {
        call: CallId,
        status: CallStatus,
        /// The result for the model.
        output: Text,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// The trust label of the output: trusted only if nothing in it came from outside.
        #[serde(default, skip_serializing_if = "Trust::is_untrusted")]
        trust: Trust,
    },
    /// A call waits for the user's approval.
    #[serde(rename = "approval.requested")]
    ApprovalRequested(ApprovalRequest),
    /// A request was answered: by the user, by a grant, or by default because the user could not be asked.
    #[serde(rename = "approval.answered")]
    ApprovalAnswered {
        request: ApprovalId,
        #[serde(flatten)]
        answer: ApprovalAnswer,
        #[serde(flatten)]
        by: AnswerSource,
    },
    /// A remote agent is about to be called.
    #[serde(rename = "remote.called")]
    RemoteCalled { task: Text },
    /// A remote agent accepted its task. From now on, lango can ask it for the result.
    #[serde(rename = "remote.accepted")]
    RemoteAccepted {
        /// The ids that the agent gave the conversation and the task.
        thread: RemoteThread,
    },
    /// The result of a remote call.
    #[serde(rename = "remote.returned")]
    RemoteReturned {
        status: CallStatus,
        output: Text,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// Whether this ends its frame with an answer.
        #[serde(rename = "final")]
        is_final: bool,
        /// The conversation to continue. If it names a task, the output is a question to the user.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread: Option<RemoteThread>,
    },
    /// The engine corrected a mistake of a model, or reacted to a limit or an interruption.
    #[serde(rename = "turn.corrected")]
    TurnCorrected {
        fault: TurnFault,
        /// The call that `detail` answers, if the fault is about a call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The explanation for the model or for the reader of the log.
        detail: Text,
        /// The new limit on the tokens of this frame's requests, if a request was too long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_tokens: Option<u64>,
    },
    /// The turn ended.
    #[serde(rename = "turn.finished")]
    TurnFinished {
        #[serde(flatten)]
        outcome: Outcome,
        /// The `seq` of the event with the text for the user, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<u64>,
        /// The sum over all model calls.
        usage: Usage,
        /// The cost in millionths of a US dollar, if every price is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_micros: Option<u64>,
        model_calls: u32,
        /// Tool calls that the gate allowed.
        tool_calls: u32,
        rounds: u32,
    },
    /// The user undid the changes that a turn's file tools made. The event follows the end of the session's last turn and
    /// belongs to it; the undone turn may be an earlier one.
    #[serde(rename = "turn.undone")]
    TurnUndone {
        /// The turn whose changes were undone. If an event skipped something, a later one may undo the rest of the turn;
        /// the history of the conversation shows the first.
        undone: TurnId,
        /// The files and folders that are now as they were before that turn, relative to the workspace.
        #[serde(default)]
        restored: Vec<Text>,
        /// The files and folders that were left as they are.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skipped: Vec<SkippedPath>,
        /// The trust label of the paths: trusted only if the context of each agent that chose one was.
        #[serde(default, skip_serializing_if = "Trust::is_untrusted")]
        trust: Trust,
    },
}

/// A file or folder that an undo left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedPath {
    /// The path, relative to the workspace.
    pub path: Text,
    /// The reason, as readable text.
    pub reason: Text,
}

/// The settings of a turn, stored with its first event so that a resumed turn behaves the same.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TurnSettings {
    pub limits: Limits,
    pub model: Text,
    /// A digest of the agent tree.
    pub topology: Text,
    /// The folder that the agents work in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The size of the model's context window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// What memory supplied when the turn started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Text>,
    /// The combined trust label of the memory and of the earlier turns in the history.
    #[serde(default, skip_serializing_if = "Trust::is_untrusted")]
    pub history_trust: Trust,
    /// The models of agents that do not use the general one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<AgentName, AgentModel>,
    /// The general model settings.
    #[serde(default, skip_serializing_if = "ModelSettings::is_default")]
    pub model_settings: ModelSettings,
    /// The complete settings of agents that override some of the general ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agent_model_settings: BTreeMap<AgentName, ModelSettings>,
    /// The JSON schema that the answer to the user must satisfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_schema: Option<Arc<Value>>,
    /// The machine and the date; `None` in logs of an older lango.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<TurnEnvironment>,
    /// The permission mode when the turn started, which the prompt mentions. The gate uses the current one instead.
    #[serde(default, skip_serializing_if = "PermissionMode::is_default")]
    pub mode: PermissionMode,
}

/// The machine that the agents work on, as of the start of the turn. The prompt mentions it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEnvironment {
    /// The day, such as `Monday, 2026-11-16`.
    pub date: Text,
    /// The local offset from UTC, such as `UTC+01:00`.
    pub utc_offset: Text,
    /// The operating system, such as `Linux`.
    pub os: Text,
}

/// The model of a single agent, as of the start of the turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentModel {
    pub model: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The size of the context window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
}

/// The status of a tool call or a remote call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// The call ran and succeeded.
    Ok,
    /// The call failed, or could not run.
    Error,
    /// The gate or the user denied the call.
    Denied,
    /// The outcome is unknown: the call may or may not have taken effect.
    Unknown,
}

/// The reason for a `turn.corrected` event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnFault {
    /// A delegation to an agent that is not in the tree.
    UnknownAgent,
    /// A delegation to an agent that rejected a task earlier in this turn.
    RefusedAgent,
    /// A delegation that is not allowed: the round limit is reached, or the agent may not delegate.
    DelegationClosed,
    /// One reply had too many delegations or calls; the surplus did not run.
    TooManyCalls,
    /// A call of a function that does not exist.
    UnknownTool,
    /// A call of a tool that belongs to no agent.
    UnmatchedTool,
    /// A call of another agent's tool.
    #[serde(rename = "not_yours")]
    ForeignTool,
    /// Arguments that are not valid JSON or do not match the schema.
    BadArguments,
    /// A call in a reply to a request that offered no functions.
    CallsNotOffered,
    /// The same calls returned the same results several times.
    Repetition,
    /// A reply with neither text nor calls.
    EmptyReply,
    /// A reply that reached the output limit before any text or call.
    OutputLimit,
    /// A request that exceeded the model's context window. The next one is shorter.
    ContextTooLong,
    /// A rejection by an agent that must not reject.
    StrayRejection,
    /// An answer that does not match the answer schema of the turn.
    InvalidAnswer,
    /// The model call failed.
    ModelFailed,
    /// A frame ended without an answer because the turn's model calls are used up.
    ModelCallLimit,
    /// A frame ended without an answer because the turn's tokens are used up.
    TokenLimit,
    /// A frame ended without an answer because the turn's money is used up.
    CostLimit,
    /// A call did not run because the turn's tool calls are used up.
    ToolCallLimit,
    /// The turn ran out of time.
    TimeLimit,
    /// The user cancelled the turn.
    Cancelled,
    /// The process ended during the turn.
    Interrupted,
    /// The database was restored or copied during the turn.
    Restored,
}

impl EventBody {
    /// Whether the store must make the event durable, so that it survives a power failure, before anything depends on
    /// it. This applies to user input, approvals, the start of external effects, and the end of a turn and its undoing.
    /// Other events need to survive only a crash of the process, so a power failure may lose the middle of an
    /// unfinished turn.
    pub fn must_be_durable(&self) -> bool {
        match self {
            Self::UserMessage { .. }
            | Self::RemoteCalled { .. }
            | Self::ApprovalRequested(_)
            | Self::ApprovalAnswered { .. }
            | Self::TurnFinished { .. }
            | Self::TurnUndone { .. } => true,
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

    /// Returns the trust label of the event's text.
    pub fn trust(&self) -> Trust {
        match self {
            // The content of a file may come from others than the user who attached it.
            Self::UserMessage { attachments, .. } if !attachments.is_empty() => Trust::Untrusted,
            Self::UserMessage { origin, .. } => {
                origin.map_or(Trust::Untrusted, MessageOrigin::trust)
            }
            Self::AgentMessage { trust, .. }
            | Self::ToolReturned { trust, .. }
            | Self::TurnUndone { trust, .. } => *trust,
            _ => Trust::Untrusted,
        }
    }

    /// Returns the files that the event refers to. The store keeps a file while an event refers to it.
    pub fn attachments(&self) -> &[Attachment] {
        match self {
            Self::UserMessage { attachments, .. }
            | Self::AgentDelegated { attachments, .. }
            | Self::ToolReturned { attachments, .. }
            | Self::RemoteReturned { attachments, .. } => attachments,
            _ => &[],
        }
    }

    /// Returns the value of `type` in JSON.
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
            Self::TurnUndone { .. } => "turn.undone",
        }
    }
}
