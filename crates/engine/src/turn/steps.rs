//! The steps that a turn wants performed, and the inputs that it accepts.

use super::Offer;
use super::Turn;
use super::frame::{Frame, SlotState};
use super::printed::PrintedOutput;
use lango_core::{
    AgentName, AnswerSource, ApprovalAnswer, ApprovalId, Attachment, CallId, CallStatus, Effect,
    FrameId, Inspection, ModelError, ModelReply, RemoteAnswer, RemoteError, RemoteThread, Text,
    ToolName, Trust,
};
use serde_json::Value;
use std::sync::Arc;

/// A step that can be performed now. Steps that are ready at the same time may run concurrently.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnStep {
    CallModel(ModelStep),
    CallTool(ToolStep),
    CallRemote(RemoteStep),
}

/// A call of an agent's model. [`Turn::request`] builds the request.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelStep {
    pub frame: FrameId,
    pub agent: AgentName,
    /// Whether the text may become the answer to the user, so it can be streamed as a draft.
    pub shows_draft: bool,
    pub(super) offer: Offer,
}

/// A tool call that is already stored.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolStep {
    pub frame: FrameId,
    /// The agent that made the call.
    pub agent: AgentName,
    pub call: CallId,
    pub tool: ToolName,
    pub arguments: Arc<Value>,
    pub effect: Effect,
    /// The trust label of everything that the agent had seen when it made the call.
    pub trust: Trust,
    /// The tool's inspection of the call, made before the gate decided.
    pub inspection: Inspection,
}

/// A call of a remote agent.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteStep {
    pub frame: FrameId,
    pub agent: AgentName,
    pub task: Text,
    pub attachments: Vec<Attachment>,
    /// Whether the text may become the answer to the user, so it can be streamed as a draft.
    pub shows_draft: bool,
    /// The ids of the conversation and the task, if the agent accepted the task. Then the step resumes the task instead
    /// of sending it again.
    pub accepted: Option<RemoteThread>,
}

/// Identifies a running step of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StepKey {
    /// A frame's model or remote call; at most one runs at a time.
    Frame(FrameId),
    Call(CallId),
}

/// The beginning of a reply that was stopped before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialReply {
    pub frame: FrameId,
    pub agent: AgentName,
    /// The model of the agent; empty for a remote agent.
    pub model: Text,
    /// The size of everything that the model has written.
    pub bytes: usize,
    /// The beginning of the answer, if the user saw it.
    pub text: String,
}

/// The result of a step, or an external event.
#[derive(Debug)]
pub enum TurnInput {
    ModelReplied {
        step: ModelStep,
        reply: ModelReply,
        model: Text,
        /// The tools' inspections of the calls, in the order of the calls.
        inspections: Vec<Inspection>,
    },
    ModelFailed {
        step: ModelStep,
        error: ModelError,
    },
    ToolReturned {
        step: ToolStep,
        status: CallStatus,
        /// The result for the model.
        output: Text,
        trust: Trust,
        /// The stored files that came with the result.
        attachments: Vec<Attachment>,
    },
    /// The user answered a request, or it was answered for them.
    Answered {
        request: ApprovalId,
        answer: ApprovalAnswer,
        by: AnswerSource,
    },
    /// A remote agent accepted its task.
    RemoteAccepted {
        step: RemoteStep,
        /// The ids that the agent gave the conversation and the task.
        thread: RemoteThread,
    },
    RemoteReturned {
        step: RemoteStep,
        result: Result<RemoteAnswer, RemoteError>,
        /// The stored files that came with the answer.
        attachments: Vec<Attachment>,
    },
    /// The user cancelled the turn.
    Cancelled {
        /// The replies that were being written.
        partial: Vec<PartialReply>,
        /// What the running calls had printed.
        printed: Vec<PrintedOutput>,
    },
    /// The time limit of the turn passed.
    TimeSpent {
        printed: Vec<PrintedOutput>,
    },
    /// A later process found the turn unfinished and closes it.
    Interrupted,
    /// A later process found the turn unfinished and resumes it.
    Resumed,
    /// An approval request of the turn expired.
    Expired,
    /// The turn may have continued in another copy of the database, so the user is asked whether to continue it.
    Restored,
}

impl TurnStep {
    /// Returns the key that identifies the step.
    pub fn key(&self) -> StepKey {
        match self {
            Self::CallModel(step) => StepKey::Frame(step.frame.clone()),
            Self::CallRemote(step) => StepKey::Frame(step.frame.clone()),
            Self::CallTool(step) => StepKey::Call(step.call.clone()),
        }
    }
}

impl Turn {
    /// Returns the steps that can be performed now, including those that are already running.
    pub fn ready(&self) -> Vec<TurnStep> {
        let mut steps = Vec::new();
        if self.outcome().is_some() || self.waiting_turn().is_some() {
            return steps;
        }
        for frame in self.ready_frames() {
            steps.extend(self.offer(frame).map(|offer| {
                TurnStep::CallModel(ModelStep {
                    frame: frame.id.clone(),
                    agent: frame.agent.clone(),
                    // With a schema, the answer is shown only after it was validated.
                    shows_draft: (frame.id.is_root() || frame.finish) && !self.has_answer_schema(),
                    offer,
                })
            }));
        }
        let mut asked: Vec<&AgentName> = Vec::new();
        for frame in self.state.frames.iter().filter(|frame| frame.is_open()) {
            // Calls of the same agent run one after the other, because they share a conversation.
            if frame.is_remote && asked.contains(&&frame.agent) {
                continue;
            }
            if frame.is_remote {
                asked.push(&frame.agent);
                steps.push(TurnStep::CallRemote(RemoteStep {
                    frame: frame.id.clone(),
                    agent: frame.agent.clone(),
                    task: Arc::clone(&frame.task),
                    attachments: frame.attachments.clone(),
                    shows_draft: frame.finish,
                    accepted: frame.thread.clone(),
                }));
            } else {
                steps.extend(ready_tools(frame));
            }
        }
        steps
    }
}

/// Returns the tool calls of a frame that can run now.
fn ready_tools(frame: &Frame) -> impl Iterator<Item = TurnStep> {
    frame.startable().into_iter().filter_map(|slot| {
        let SlotState::Running {
            tool,
            arguments,
            effect,
            inspection,
            ..
        } = &slot.state
        else {
            return None;
        };
        Some(TurnStep::CallTool(ToolStep {
            frame: frame.id.clone(),
            agent: frame.agent.clone(),
            call: slot.call.id.clone(),
            tool: tool.clone(),
            arguments: Arc::clone(arguments),
            effect: *effect,
            trust: slot.trust,
            inspection: inspection.clone(),
        }))
    })
}
