//! Attaches results to calls and ends frames. The end of a sub-agent's frame is the result of the call that opened it.

use super::frame::{FrameEnd, SlotState};
use super::state::State;
use crate::instruction;
use crate::rejection;
use lango_core::{Attachment, CallId, CallStatus, FrameId, Limit, Text};
use std::sync::Arc;

impl State {
    pub(crate) fn remote_returned(
        &mut self,
        frame: &FrameId,
        status: CallStatus,
        output: &Text,
        is_final: bool,
    ) {
        let end = match status {
            _ if is_final => FrameEnd::Answered(Arc::clone(output)),
            // The next event stores the rejection.
            CallStatus::Ok if rejection::reason(output).is_some() => return,
            CallStatus::Ok => FrameEnd::Failed("its answer was empty".into()),
            _ => FrameEnd::Failed(Arc::clone(output)),
        };
        self.end(frame, end);
    }

    /// Attaches a result to its call, in the frame that made the call.
    pub(crate) fn answer(
        &mut self,
        frame: &FrameId,
        call: &CallId,
        text: Text,
        failed: bool,
        attachments: Vec<Attachment>,
    ) {
        let now = self.events;
        self.change(frame, |frame| {
            let Some(slot) = frame.slot_mut(call) else {
                return;
            };
            let answered = SlotState::Answered {
                text: Arc::clone(&text),
                failed,
                attachments,
                at: now,
            };
            match std::mem::replace(&mut slot.state, answered) {
                SlotState::Running {
                    tool, arguments, ..
                } => {
                    frame.repetition.push(tool, arguments, text);
                    frame.faulty_replies = 0;
                }
                SlotState::Delegated => frame.faulty_replies = 0,
                SlotState::Open
                | SlotState::AwaitingApproval { .. }
                | SlotState::Answered { .. } => {}
            }
            frame.waiting_since = now;
        });
    }

    pub(crate) fn end_at(&mut self, frame: &FrameId, limit: Limit) {
        self.limit_hit = Some(limit);
        self.end(frame, FrameEnd::Limited(limit));
    }

    /// Ends a frame. For a sub-agent, this answers the call that opened it.
    pub(crate) fn end(&mut self, frame: &FrameId, end: FrameEnd) {
        if !frame.is_root() {
            let ended = self.frame(frame);
            let agent = ended.map_or(&self.root, |frame| &frame.agent).clone();
            let open_task = ended.and_then(|frame| frame.thread.as_ref()?.task.as_ref());
            let is_remote = ended.is_some_and(|frame| frame.is_remote);
            let is_question = open_task.is_some();
            let (text, failed): (Text, bool) = match &end {
                FrameEnd::Answered(text) => (Arc::clone(text), false),
                FrameEnd::Rejected(reason) => {
                    (format!("{agent} rejected the task: {reason}").into(), true)
                }
                FrameEnd::Limited(limit) => (
                    format!(
                        "{agent} was stopped by a limit of this turn ({})",
                        limit.key()
                    )
                    .into(),
                    true,
                ),
                FrameEnd::Failed(detail) => {
                    (format!("{agent} gave no answer: {detail}").into(), true)
                }
            };
            let text = if is_remote {
                instruction::from_outside(&agent, &text, is_question && !failed)
            } else {
                text
            };
            let returned = ended.map_or_else(Vec::new, |frame| frame.returned.clone());
            let call = CallId::from(frame);
            self.answer(&FrameId::root(), &call, text, failed, returned);
            self.lower_trust(&FrameId::root(), self.trust_of(frame));
        }
        self.change(frame, |frame| frame.end = Some(end));
    }
}
