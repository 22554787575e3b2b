//! Going on after the process that ran the turn is gone, from the log alone.
//!
//! What was under way is done again if doing it twice changes nothing: model calls, pure and idempotent tools. A tool with
//! effect that may have run is never run again by lango's own decision: a person is asked what became of it. A remote agent
//! that took its task is asked about it; of one that may have got it and never said so nobody knows.

use super::Turn;
use super::frame::{Frame, Slot, SlotState};
use crate::gate::call_digest;
use lango_core::{
    AgentName, Answer, AnsweredBy, ApprovalRequest, Asks, CallStatus, EventBody, Fault, FrameId,
    Text,
};
use std::sync::Arc;

/// What the model is told of a call that nobody knows the fate of.
const UNKNOWN: &str = "the process ended before a result was stored: nobody knows whether it happened; do not repeat it, say so";

impl Turn {
    /// How often in a row a turn is taken up again without getting any further. It may be what ends the process.
    const RESUMES_IN_A_ROW: u32 = 5;

    /// Whether everybody who is at work in it is in the tree.
    pub fn agents_are_there(&self) -> bool {
        let is_there = |frame: &Frame| {
            let agent = frame.agent.as_str();
            match frame.remote {
                true => self.tree.sub_agent(agent).is_some_and(|agent| agent.remote),
                false => self.tree.agent(agent).is_some(),
            }
        };
        self.open_frames().all(is_there)
    }

    /// Takes the turn up again. To one that only waited for a person nothing happened.
    pub(super) fn resume(&mut self) {
        let is_at_work =
            |frame: &&Frame| frame.remote || frame.awaits_model() || !frame.startable().is_empty();
        if self.is_parked() {
            return;
        }
        let is_stuck = !self.open_frames().any(|frame| is_at_work(&frame));
        if is_stuck || self.state.resumes_in_a_row >= Self::RESUMES_IN_A_ROW {
            return self.interrupt();
        }
        let lost: Vec<_> = self
            .open_frames()
            .flat_map(|frame| self.lost(frame))
            .collect();
        let detail = "the process ended in the middle of the turn, which goes on now".to_owned();
        self.correct(&FrameId::root(), Fault::Interrupted, None, detail);
        for (frame, author, body) in lost {
            self.emit(frame, author, body);
        }
    }

    /// What is to be said of a frame's steps that were under way and cannot be taken again.
    fn lost(&self, frame: &Frame) -> Vec<(FrameId, AgentName, EventBody)> {
        let thread = frame.thread.as_ref();
        let is_known = thread.is_some_and(|thread| thread.task.is_some());
        let mut lost = Vec::new();
        if frame.remote && !is_known {
            let body = EventBody::RemoteReturned {
                status: CallStatus::Unknown,
                output: UNKNOWN.into(),
                is_final: false,
                thread: None,
            };
            lost.push((frame.id.clone(), frame.agent.clone(), body));
        }
        let slots = frame.startable().into_iter();
        for request in slots.filter_map(|slot| self.fate_of(frame, slot)) {
            let body = EventBody::ApprovalRequested(request);
            lost.push((frame.id.clone(), self.tree.root.name.clone(), body));
        }
        lost
    }

    /// The question what became of a call that may have had its effect.
    fn fate_of(&self, frame: &Frame, slot: &Slot) -> Option<ApprovalRequest> {
        let SlotState::Running {
            tool,
            arguments,
            effect,
        } = &slot.state
        else {
            return None;
        };
        let agent = self.tree.agent(frame.agent.as_str());
        let spec = agent.and_then(|agent| agent.tool(tool.as_str()));
        let risk = spec.map(|tool| tool.spec.risk_of(arguments));
        slot.has_effect().then(|| ApprovalRequest {
            id: self.approval_id(&slot.call.id, Asks::Fate),
            agent: frame.agent.clone(),
            call: slot.call.id.clone(),
            tool: tool.clone(),
            arguments: Arc::clone(arguments),
            digest: call_digest(&frame.agent, tool, arguments),
            folder: Text::clone(self.rules.folder()),
            effect: *effect,
            risk: risk.unwrap_or(lango_core::Risk::Dangerous),
            asks: Asks::Fate,
            reason: "the process ended while it ran, and nobody knows whether it happened".into(),
            pattern: None,
        })
    }

    /// Takes what a person says of a call whose fate is unknown.
    pub(super) fn settle_fate(
        &mut self,
        frame: &FrameId,
        agent: &AgentName,
        asked: &ApprovalRequest,
        answer: &Answer,
        by: &AnsweredBy,
    ) {
        self.note_answer(frame, &asked.id, answer, by);
        let (status, output) = match answer {
            Answer::Retry => return self.start_asked(frame, agent, asked.clone()),
            Answer::Happened { text } => {
                let told =
                    "the process ended before a result was stored; the user says what became of it";
                (CallStatus::Ok, format!("{told}: {text}").into())
            }
            _ => (CallStatus::Unknown, UNKNOWN.into()),
        };
        let body = EventBody::ToolReturned {
            call: asked.call.clone(),
            status,
            output,
        };
        self.emit(frame.clone(), agent.clone(), body);
    }

    fn open_frames(&self) -> impl Iterator<Item = &Frame> {
        self.state.frames.iter().filter(|frame| frame.is_open())
    }
}
