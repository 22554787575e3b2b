//! Resumes a turn from its log after its process is gone.
//!
//! Steps that were running are repeated if that is safe: model calls, and pure or idempotent tools. A tool with effects
//! that may have run is never repeated automatically; the user is asked what happened. A remote agent that accepted its
//! task is asked for the result. If it did not confirm the task, the outcome is unknown.

use super::Turn;
use super::frame::{Frame, Slot, SlotState};
use crate::gate::call_digest;
use lango_core::{
    AgentName, AnswerSource, ApprovalAnswer, ApprovalQuestion, ApprovalRequest, CallStatus, Effect,
    EventBody, FrameId, Risk, Text, ToolName, ToolSpec, Trust, TurnFault,
};
use std::sync::Arc;

/// The result that a model gets for a call with an unknown outcome.
const UNKNOWN_OUTCOME: &str = "the process ended before a result was stored, so the outcome is unknown; do not repeat the call, tell the user";

impl Turn {
    /// How often a turn may be resumed without progress. The turn itself may be what crashes the process.
    const MAX_RESUMES_IN_A_ROW: u32 = 5;

    /// Returns an agent that has an open frame but is not in the tree, if there is one.
    pub fn missing_agent(&self) -> Option<&AgentName> {
        let is_missing = |frame: &&Frame| {
            let agent = frame.agent.as_str();
            if frame.is_remote {
                !self
                    .tree
                    .sub_agent(agent)
                    .is_some_and(|agent| agent.is_remote)
            } else {
                self.tree.agent(agent).is_none()
            }
        };
        self.open_frames()
            .find(is_missing)
            .map(|frame| &frame.agent)
    }

    /// Resumes the turn. A turn that only waited for an approval stays as it is.
    pub(super) fn resume(&mut self) {
        let is_active = |frame: &&Frame| {
            frame.is_remote || frame.awaits_model() || !frame.startable().is_empty()
        };
        if self.ask_if_restored() {
            return;
        }
        self.check_stored_calls();
        if self.is_parked() {
            return;
        }
        let is_stuck = !self.open_frames().any(|frame| is_active(&frame));
        if is_stuck || self.state.resumes_in_a_row >= Self::MAX_RESUMES_IN_A_ROW {
            return self.interrupt();
        }
        let lost: Vec<_> = self
            .open_frames()
            .flat_map(|frame| self.events_for_lost_steps(frame))
            .collect();
        let detail = "the process ended during the turn, which is now resumed".to_owned();
        self.correct(&FrameId::root(), TurnFault::Interrupted, None, detail);
        for (frame, author, body) in lost {
            self.emit(frame, author, body);
        }
    }

    /// Returns the events for those running steps of a frame that cannot be repeated.
    fn events_for_lost_steps(&self, frame: &Frame) -> Vec<(FrameId, AgentName, EventBody)> {
        let thread = frame.thread.as_ref();
        let is_known = thread.is_some_and(|thread| thread.task.is_some());
        let mut lost = Vec::new();
        if frame.is_remote && !is_known {
            let body = EventBody::RemoteReturned {
                status: CallStatus::Unknown,
                output: UNKNOWN_OUTCOME.into(),
                is_final: false,
                thread: None,
                attachments: Vec::new(),
            };
            lost.push((frame.id.clone(), frame.agent.clone(), body));
        }
        let slots = frame.startable().into_iter();
        for request in slots.filter_map(|slot| self.unknown_outcome_of(frame, slot)) {
            let body = EventBody::ApprovalRequested(request);
            lost.push((frame.id.clone(), self.tree.root.name.clone(), body));
        }
        lost
    }

    /// Returns the question about a running call that cannot simply be repeated: it is not idempotent, its tool no
    /// longer exists, or a rule or the mode no longer allows it. Returns `None` for other calls.
    fn unknown_outcome_of(&self, frame: &Frame, slot: &Slot) -> Option<ApprovalRequest> {
        let SlotState::Running {
            tool,
            arguments,
            effect,
            inspection,
            is_approved,
        } = &slot.state
        else {
            return None;
        };
        let spec = self.spec_of(&frame.agent, tool);
        let risk = spec.as_ref().map(|spec| spec.risk_of(arguments));
        let content = (&**arguments, inspection);
        let checked = self.check_again(&frame.agent, tool, content, *is_approved);
        let is_repeatable = checked.is_ok_and(|spec| spec.effect != Effect::NonIdempotent);
        let effect = if is_repeatable {
            *effect
        } else {
            Effect::NonIdempotent
        };
        (effect == Effect::NonIdempotent).then(|| ApprovalRequest {
            id: self.approval_id(&slot.call.id, ApprovalQuestion::UnknownOutcome),
            agent: frame.agent.clone(),
            call: slot.call.id.clone(),
            tool: tool.clone(),
            arguments: Arc::clone(arguments),
            inspection: inspection.clone(),
            digest: call_digest(&frame.agent, tool, arguments, inspection),
            folder: Text::clone(self.rules.folder()),
            effect,
            risk: risk.unwrap_or(Risk::Dangerous),
            question: ApprovalQuestion::UnknownOutcome,
            reason: "the process ended during the call, so its outcome is unknown".into(),
            pattern: None,
        })
    }

    /// Processes the answer about a call with an unknown outcome.
    pub(super) fn settle_unknown_outcome(
        &mut self,
        frame: &FrameId,
        agent: &AgentName,
        asked: &ApprovalRequest,
        answer: &ApprovalAnswer,
        by: &AnswerSource,
    ) {
        self.record_answer(frame, &asked.id, answer, by);
        let (status, output) = match answer {
            ApprovalAnswer::Retry => {
                let content = (&*asked.arguments, &asked.inspection);
                match self.check_again(agent, &asked.tool, content, true) {
                    Ok(_) => return self.start_approved(frame, agent, asked.clone()),
                    Err(denial) => (
                        CallStatus::Unknown,
                        format!("{UNKNOWN_OUTCOME}; it was not run again: {denial}").into(),
                    ),
                }
            }
            ApprovalAnswer::Happened { text } => {
                let report =
                    "the process ended before a result was stored; the user reports what happened";
                (CallStatus::Ok, format!("{report}: {text}").into())
            }
            _ => (CallStatus::Unknown, UNKNOWN_OUTCOME.into()),
        };
        let body = EventBody::ToolReturned {
            call: asked.call.clone(),
            status,
            output,
            trust: Trust::Trusted,
            attachments: Vec::new(),
        };
        self.emit(frame.clone(), agent.clone(), body);
    }

    /// Rechecks stored calls that have not started because they wait for others. The rules or the mode may have become
    /// stricter.
    pub(super) fn check_stored_calls(&mut self) {
        let mut refused = Vec::new();
        for frame in self.open_frames() {
            let started = frame.startable();
            let is_started =
                |slot: &Slot| started.iter().any(|other| other.call.id == slot.call.id);
            for slot in frame.slots().iter().filter(|slot| !is_started(slot)) {
                if let SlotState::Running {
                    tool,
                    arguments,
                    inspection,
                    is_approved,
                    ..
                } = &slot.state
                {
                    let content = (&**arguments, inspection);
                    let checked = self.check_again(&frame.agent, tool, content, *is_approved);
                    let denied = checked.err().map(|denial| denial.for_model());
                    let place = (frame.id.clone(), frame.agent.clone(), slot.call.id.clone());
                    refused.extend(denied.map(|detail| (place, detail)));
                }
            }
        }
        for ((frame, agent, call), detail) in refused {
            self.refuse(&frame, &agent, &call, detail);
        }
    }

    fn spec_of(&self, agent: &AgentName, tool: &ToolName) -> Option<Arc<ToolSpec>> {
        let agent = self.tree.agent(agent.as_str())?;
        Some(Arc::clone(&agent.tool(tool.as_str())?.spec))
    }

    fn open_frames(&self) -> impl Iterator<Item = &Frame> {
        self.state.frames.iter().filter(|frame| frame.is_open())
    }
}
