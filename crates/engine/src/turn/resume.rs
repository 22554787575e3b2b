//! Going on after the process that ran the turn is gone, from the log alone.
//!
//! What was under way is done again if doing it twice changes nothing: model calls, pure and idempotent tools. A tool with
//! effect that may have run is never run again by lango's own decision: a person is asked what became of it. A remote agent
//! that took its task is asked about it; of one that may have got it and never said so nobody knows.

use super::Turn;
use super::frame::{Frame, Slot, SlotState};
use crate::gate::{Decision, call_digest};
use lango_core::{
    AgentName, Answer, AnsweredBy, ApprovalRequest, Asks, CallStatus, Effect, EventBody, Fault,
    FrameId, Inspection, Risk, Text, ToolName, ToolSpec, Trust,
};
use serde_json::Value;
use std::sync::Arc;

/// What the model is told of a call that nobody knows the fate of.
const UNKNOWN: &str = "the process ended before a result was stored: nobody knows whether it happened; do not repeat it, say so";

impl Turn {
    /// How often in a row a turn is taken up again without getting any further. It may be what ends the process.
    const RESUMES_IN_A_ROW: u32 = 5;

    /// Somebody who is at work in it and is not in the tree.
    pub fn missing_agent(&self) -> Option<&AgentName> {
        let is_missing = |frame: &&Frame| {
            let agent = frame.agent.as_str();
            match frame.remote {
                true => !self.tree.sub_agent(agent).is_some_and(|agent| agent.remote),
                false => self.tree.agent(agent).is_none(),
            }
        };
        self.open_frames()
            .find(is_missing)
            .map(|frame| &frame.agent)
    }

    /// Takes the turn up again. To one that only waited for a person nothing happened.
    pub(super) fn resume(&mut self) {
        let is_at_work =
            |frame: &&Frame| frame.remote || frame.awaits_model() || !frame.startable().is_empty();
        if self.ask_if_restored() {
            return;
        }
        self.judge_again();
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
                attachments: Vec::new(),
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

    /// The question what became of a call that may have had its effect, or that may not be repeated without a person: by
    /// what the tool is now, and by the rules that hold now.
    fn fate_of(&self, frame: &Frame, slot: &Slot) -> Option<ApprovalRequest> {
        let SlotState::Running {
            tool,
            arguments,
            effect,
            inspection,
        } = &slot.state
        else {
            return None;
        };
        let spec = self.spec_of(&frame.agent, tool);
        let risk = spec.as_ref().map(|spec| spec.risk_of(arguments));
        let is_repeatable = spec.is_some_and(|spec| {
            let decision = self
                .rules
                .decide(&frame.agent, &spec, arguments, inspection);
            spec.effect != Effect::Effect && !matches!(decision, Decision::Deny { .. })
        });
        let effect = match is_repeatable {
            true => *effect,
            false => Effect::Effect,
        };
        (effect == Effect::Effect).then(|| ApprovalRequest {
            id: self.approval_id(&slot.call.id, Asks::Fate),
            agent: frame.agent.clone(),
            call: slot.call.id.clone(),
            tool: tool.clone(),
            arguments: Arc::clone(arguments),
            inspection: inspection.clone(),
            digest: call_digest(&frame.agent, tool, arguments, inspection),
            folder: Text::clone(self.rules.folder()),
            effect,
            risk: risk.unwrap_or(Risk::Dangerous),
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
            Answer::Retry => {
                match self.why_not(agent, &asked.tool, &asked.arguments, &asked.inspection) {
                    None => return self.start_asked(frame, agent, asked.clone()),
                    Some(why) => (
                        CallStatus::Unknown,
                        format!("{UNKNOWN}; it was not run again: {why}").into(),
                    ),
                }
            }
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
            trust: Trust::Trusted,
            attachments: Vec::new(),
        };
        self.emit(frame.clone(), agent.clone(), body);
    }

    /// Judges calls anew that were stored and not begun, because they wait behind others: the rules may have become stricter.
    fn judge_again(&mut self) {
        let mut stored = Vec::new();
        for frame in self.open_frames() {
            let begun = frame.startable();
            let is_begun = |slot: &Slot| begun.iter().any(|begun| begun.call.id == slot.call.id);
            for slot in frame.slots().iter().filter(|slot| !is_begun(slot)) {
                if let SlotState::Running {
                    tool,
                    arguments,
                    inspection,
                    ..
                } = &slot.state
                {
                    let call = (slot.call.id.clone(), tool.clone());
                    let content = (Arc::clone(arguments), inspection.clone());
                    stored.push((frame.id.clone(), frame.agent.clone(), call, content));
                }
            }
        }
        for (frame, agent, (call, tool), (arguments, inspection)) in stored {
            if let Some(why) = self.why_not(&agent, &tool, &arguments, &inspection) {
                self.refuse(&frame, &agent, &call, format!("not run: {why}"));
            }
        }
    }

    /// Why a call cannot be run any more.
    fn why_not(
        &self,
        agent: &AgentName,
        tool: &ToolName,
        arguments: &Value,
        inspection: &Inspection,
    ) -> Option<String> {
        let Some(spec) = self.spec_of(agent, tool) else {
            return Some(format!("the tool `{tool}` is not there any more"));
        };
        match self.rules.decide(agent, &spec, arguments, inspection) {
            Decision::Deny { reason } => Some(format!("{reason} forbids it")),
            Decision::Run | Decision::Ask { .. } => None,
        }
    }

    pub(super) fn spec_of(&self, agent: &AgentName, tool: &ToolName) -> Option<Arc<ToolSpec>> {
        let agent = self.tree.agent(agent.as_str())?;
        Some(Arc::clone(&agent.tool(tool.as_str())?.spec))
    }

    fn open_frames(&self) -> impl Iterator<Item = &Frame> {
        self.state.frames.iter().filter(|frame| frame.is_open())
    }
}
