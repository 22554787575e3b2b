//! What a turn asks for, and what it is told.

use super::Offer;
use super::Turn;
use super::frame::{Frame, SlotState};
use lango_core::{
    AgentName, Answer, AnsweredBy, ApprovalId, Attachment, CallId, CallStatus, Effect, FrameId,
    Inspection, ModelError, ModelReply, RemoteAnswer, RemoteError, RemoteThread, Text, ToolName,
    Trust,
};
use serde_json::Value;
use std::sync::Arc;

/// Something that can be done now. Steps that are ready together may run side by side.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Ask an agent's model.
    CallModel(ModelStep),
    /// Run a tool.
    CallTool(ToolStep),
    /// Ask a remote agent.
    CallRemote(RemoteStep),
}

/// Asking an agent's model. [`Turn::request`] gives what it is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelStep {
    /// The agent's run.
    pub frame: FrameId,
    /// The agent.
    pub agent: AgentName,
    /// Whether the words may become the person's answer, so that they can be shown as they come.
    pub shown: bool,
    pub(super) offer: Offer,
}

/// Running a tool whose call is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolStep {
    /// The agent's run.
    pub frame: FrameId,
    /// The agent that called it.
    pub agent: AgentName,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The arguments, checked.
    pub arguments: Arc<Value>,
    /// What happens to the world when it runs.
    pub effect: Effect,
    /// The trust label of everything the agent was shown before it made the call.
    pub trust: Trust,
    /// What the tool found out about the call before it was allowed.
    pub inspection: Inspection,
}

/// Asking a remote agent.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteStep {
    /// The agent's run.
    pub frame: FrameId,
    /// The agent.
    pub agent: AgentName,
    /// What it is to do.
    pub task: Text,
    /// The files that it is given with that.
    pub attachments: Vec<Attachment>,
    /// Whether the words may become the person's answer, so that they can be shown as they come.
    pub shown: bool,
    /// The names under which it took the task, if it did: it is asked what became of it, and not given it again.
    pub accepted: Option<RemoteThread>,
}

/// What tells one step of a turn from another while it is under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StepKey {
    /// A frame's model or remote call; there is one at a time.
    Frame(FrameId),
    /// A tool call.
    Call(CallId),
}

/// What came of a step, or happened to the turn.
#[derive(Debug)]
pub enum Input {
    /// A model replied.
    ModelReplied {
        /// The step.
        step: ModelStep,
        /// The reply.
        reply: ModelReply,
        /// The model.
        model: Text,
        /// What the tools found out about the calls, in the order of the calls.
        inspections: Vec<Inspection>,
    },
    /// A model gave no reply.
    ModelFailed {
        /// The step.
        step: ModelStep,
        /// Why.
        error: ModelError,
    },
    /// A tool came back.
    ToolReturned {
        /// The step.
        step: ToolStep,
        /// How it went.
        status: CallStatus,
        /// What the model is told.
        output: Text,
        /// The trust label of the output.
        trust: Trust,
        /// The files that came with it, stored.
        attachments: Vec<Attachment>,
    },
    /// Somebody, or the lack of anybody, decided about a call that waits.
    Answered {
        /// The request.
        request: ApprovalId,
        /// What was said.
        answer: Answer,
        /// By whom.
        by: AnsweredBy,
    },
    /// A remote agent took its task.
    RemoteAccepted {
        /// The step.
        step: RemoteStep,
        /// The names it gave.
        thread: RemoteThread,
    },
    /// A remote agent came back.
    RemoteReturned {
        /// The step.
        step: RemoteStep,
        /// What it said, or why it said nothing.
        result: Result<RemoteAnswer, RemoteError>,
        /// The files that came with it, stored.
        attachments: Vec<Attachment>,
    },
    /// The person stopped the turn.
    Cancelled,
    /// The turn's time is over.
    TimeSpent,
    /// A later start found the turn unfinished, and gives it up.
    Interrupted,
    /// A later start found the turn unfinished, and goes on with it.
    Resumed,
    /// An approval of the turn expired.
    Expired,
    /// The turn may have gone on in another copy of the database: the user is asked about it.
    Restored,
}

impl Step {
    /// What tells it from the other steps under way.
    pub fn key(&self) -> StepKey {
        match self {
            Self::CallModel(step) => StepKey::Frame(step.frame.clone()),
            Self::CallRemote(step) => StepKey::Frame(step.frame.clone()),
            Self::CallTool(step) => StepKey::Call(step.call.clone()),
        }
    }
}

impl Turn {
    /// The steps that can be taken now, those under way included.
    pub fn ready(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.outcome().is_some() || self.waiting_turn().is_some() {
            return steps;
        }
        for frame in self.in_line() {
            steps.extend(self.offer(frame).map(|offer| {
                Step::CallModel(ModelStep {
                    frame: frame.id.clone(),
                    agent: frame.agent.clone(),
                    // An answer by a schema is shown when it is known to satisfy it.
                    shown: (frame.id.is_root() || frame.finish) && !self.has_answer_schema(),
                    offer,
                })
            }));
        }
        let mut asked: Vec<&AgentName> = Vec::new();
        for frame in self.state.frames.iter().filter(|frame| frame.is_open()) {
            // One after the other: the second goes on with the conversation where the first left it.
            if frame.remote && asked.contains(&&frame.agent) {
                continue;
            }
            if frame.remote {
                asked.push(&frame.agent);
                steps.push(Step::CallRemote(RemoteStep {
                    frame: frame.id.clone(),
                    agent: frame.agent.clone(),
                    task: Arc::clone(&frame.task),
                    attachments: frame.attachments.clone(),
                    shown: frame.finish,
                    accepted: frame.thread.clone(),
                }));
            } else {
                steps.extend(ready_tools(frame));
            }
        }
        steps
    }
}

/// A frame's tool calls that can run now.
fn ready_tools(frame: &Frame) -> impl Iterator<Item = Step> {
    frame.startable().into_iter().filter_map(|slot| {
        let SlotState::Running {
            tool,
            arguments,
            effect,
            inspection,
        } = &slot.state
        else {
            return None;
        };
        Some(Step::CallTool(ToolStep {
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
