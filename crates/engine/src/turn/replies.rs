//! Judging what came back: a reply of a model, the word of a remote agent, the result of a tool.

use super::Turn;
use super::frame::FrameEnd;
use super::steps::{ModelStep, RemoteStep, ToolStep};
use crate::rejection;
use lango_core::{
    AgentName, Attachment, Call, CallId, CallStatus, EventBody, Fault, FrameId, Inspection, Limit,
    ModelError, ModelFault, ModelReply, Outcome, RemoteAnswer, RemoteError, RemoteThread,
    StopReason, Text, Trust,
};

/// What a reply without calls is.
enum Verdict {
    Answer,
    Rejection(Text),
    /// A refusal by the one who cannot refuse.
    StrayRejection,
    /// An answer that does not satisfy the schema of the turn, and why.
    Invalid(String),
    Nothing,
    /// Nothing, because the output limit was reached before any text.
    OutputLimit,
}

impl Turn {
    pub(super) fn model_replied(
        &mut self,
        step: &ModelStep,
        mut reply: ModelReply,
        model: &Text,
        inspections: Vec<Inspection>,
    ) {
        let Some(frame) = self.state.frame(&step.frame) else {
            return;
        };
        // A limit may have ended the frame while its model was at work: what came is paid for, and stored, and no more.
        let is_late = !frame.awaits_model();
        if is_late {
            reply.calls.clear();
        }
        let ModelReply {
            text,
            calls,
            usage,
            cost_micros,
            stop,
            opaque,
            model: replied,
        } = reply;
        let is_cut = !stop.is_finished();
        let offers_nothing = !step.offer.delegate && !step.offer.tools;
        let dropped = if offers_nothing { calls.len() } else { 0 };
        let (calls, surplus) = if offers_nothing {
            (Vec::new(), 0)
        } else {
            self.readable_calls(calls)
        };

        let text = match calls.is_empty() {
            true => self.answer_text(&step.frame, text),
            false => text,
        };
        let verdict = match self.judge(&step.frame, &text) {
            Verdict::Nothing if stop == StopReason::OutputLimit => Verdict::OutputLimit,
            Verdict::Answer if is_cut && self.answer_schema_of(&step.frame).is_some() => {
                Verdict::Invalid("the reply was cut off before its end".to_owned())
            }
            verdict => verdict,
        };
        let is_final = !is_late && calls.is_empty() && matches!(verdict, Verdict::Answer);
        let text: Text = match &stop {
            StopReason::OutputLimit if is_final => {
                format!("{text}\n\n[the answer was cut off here: it reached the output limit]")
                    .into()
            }
            StopReason::Filtered { detail } if is_final => {
                format!("{text}\n\n[the answer was cut off here: {detail}]").into()
            }
            _ => text.into(),
        };
        let message = EventBody::AgentMessage {
            text,
            calls: calls.clone(),
            is_final,
            model: Some(replied.unwrap_or_else(|| Text::clone(model))),
            usage,
            cost_micros,
            opaque,
            stop,
            trust: self.trust_of_reply(&step.frame, &step.agent),
        };
        let seq = self.emit(step.frame.clone(), step.agent.clone(), message);
        if is_late {
            return;
        }
        if dropped > 0 {
            let detail = format!("{dropped} calls were left out: nothing could be called any more");
            self.correct(&step.frame, Fault::CallsNotOffered, None, detail);
        }
        if surplus > 0 {
            let detail = format!(
                "{surplus} calls were left out: a reply may hold {} at most",
                Self::CALLS_PER_REPLY
            );
            self.correct(&step.frame, Fault::TooManyCalls, None, detail);
        }
        if is_cut {
            for call in &calls {
                let detail = "not run: the reply was cut off, so this call may not be whole; make it again, shorter";
                let id = Some(call.id.clone());
                self.correct(&step.frame, Fault::BadArguments, id, detail.to_owned());
            }
        }
        if calls.is_empty() {
            self.frame_replied(&step.frame, &step.agent, verdict, seq, step.offer.limit);
        } else if !is_cut {
            self.take_calls(step, &calls, inspections);
        }
    }

    pub(super) fn model_failed(&mut self, step: &ModelStep, error: &ModelError) {
        if !self
            .state
            .frame(&step.frame)
            .is_some_and(|frame| frame.awaits_model())
        {
            return;
        }
        if let ModelFault::ContextTooLong { limit_tokens, .. } = &error.fault
            && self.shorten(step, *limit_tokens, error)
        {
            return;
        }
        self.correct(&step.frame, Fault::ModelFailed, None, error.to_string());
        if step.frame.is_root() {
            self.fail(error.to_string(), error.fault.is_of_the_setup());
        }
    }

    /// Makes the next request of a frame shorter, once. Returns whether it did.
    fn shorten(&mut self, step: &ModelStep, limit: Option<u64>, error: &ModelError) -> bool {
        let Some(frame) = self.state.frame(&step.frame) else {
            return false;
        };
        if frame.context_tokens.is_some() {
            return false;
        }
        // Three quarters of a window are filled, so two thirds of what was sent come down to half of it.
        let sent = self.sent_tokens(frame, step.offer);
        let most = (sent / 3 * 2).max(1);
        let body = EventBody::TurnCorrected {
            fault: Fault::ContextTooLong,
            call: None,
            detail: format!("{error}; asked again with a shorter request").into(),
            context_tokens: Some(limit.map_or(most, |limit| limit.min(most))),
        };
        self.emit_as_root(step.frame.clone(), body);
        true
    }

    pub(super) fn tool_returned(
        &mut self,
        step: &ToolStep,
        status: CallStatus,
        output: Text,
        trust: Trust,
        attachments: Vec<Attachment>,
    ) {
        let running = |frame: &super::frame::Frame| {
            let mut slots = frame.slots().iter();
            slots.any(|slot| slot.is_running() && slot.call.id == step.call)
        };
        if !self.state.frame(&step.frame).is_some_and(running) {
            return;
        }
        let body = EventBody::ToolReturned {
            call: step.call.clone(),
            status,
            output,
            trust,
            attachments: self.name_attachments(attachments),
        };
        self.emit(step.frame.clone(), step.agent.clone(), body);
        let in_circle = |frame: &super::frame::Frame| {
            frame.awaits_model() && !frame.repetition.found && frame.repetition.is_circle()
        };
        if self.state.frame(&step.frame).is_some_and(in_circle) {
            let detail = "the same calls gave the same results again and again".to_owned();
            self.correct(&step.frame, Fault::Repetition, None, detail);
        }
    }

    pub(super) fn remote_accepted(&mut self, step: &RemoteStep, thread: RemoteThread) {
        let is_news = |frame: &super::frame::Frame| {
            frame.remote && frame.is_open() && frame.thread.as_ref() != Some(&thread)
        };
        if self.state.frame(&step.frame).is_some_and(is_news) {
            let body = EventBody::RemoteAccepted { thread };
            self.emit(step.frame.clone(), step.agent.clone(), body);
        }
    }

    pub(super) fn remote_returned(
        &mut self,
        step: &RemoteStep,
        result: Result<RemoteAnswer, RemoteError>,
        attachments: Vec<Attachment>,
    ) {
        if !self
            .state
            .frame(&step.frame)
            .is_some_and(|frame| frame.remote && frame.is_open())
        {
            return;
        }
        let (status, output, verdict, thread) = match result {
            Ok(RemoteAnswer { text, thread, .. }) => {
                let verdict = self.judge(&step.frame, &text);
                (CallStatus::Ok, Text::from(text), verdict, thread)
            }
            Err(error) => {
                let status = match error.is_unknown {
                    true => CallStatus::Unknown,
                    false => CallStatus::Error,
                };
                (status, error.detail.into(), Verdict::Nothing, None)
            }
        };
        let is_final = matches!(verdict, Verdict::Answer);
        let asks = is_final && thread.as_ref().is_some_and(|thread| thread.task.is_some());
        let body = EventBody::RemoteReturned {
            status,
            output,
            is_final,
            thread,
            attachments: self.name_attachments(attachments),
        };
        let seq = self.emit(step.frame.clone(), step.agent.clone(), body);
        // A question goes to the person, unless others were asked at the same time: then the orchestrator puts it.
        let is_alone = || {
            let root = self.state.frame(&FrameId::root());
            root.is_some_and(|root| root.slots().len() == 1)
        };
        match verdict {
            Verdict::Answer if asks && is_alone() && !self.has_answer_schema() => {
                let limit = self.state.limit_hit;
                self.finish(Outcome::Answered { limit }, Some(seq));
            }
            Verdict::Answer | Verdict::Rejection(_) => {
                self.frame_replied(&step.frame, &step.agent, verdict, seq, None)
            }
            // The event itself ended the frame.
            Verdict::Nothing
            | Verdict::StrayRejection
            | Verdict::Invalid(_)
            | Verdict::OutputLimit => {}
        }
    }

    fn judge(&self, frame: &FrameId, text: &str) -> Verdict {
        match rejection::reason(text) {
            Some(_) if frame.is_root() => Verdict::StrayRejection,
            Some("") => Verdict::Rejection("no reason given".into()),
            Some(reason) => Verdict::Rejection(reason.into()),
            None if text.trim().is_empty() => Verdict::Nothing,
            None => match self.answer_problem(frame, text) {
                Some(problem) => Verdict::Invalid(problem),
                None => Verdict::Answer,
            },
        }
    }

    /// What follows from a reply that calls nothing.
    fn frame_replied(
        &mut self,
        frame: &FrameId,
        agent: &AgentName,
        verdict: Verdict,
        seq: u64,
        limit: Option<Limit>,
    ) {
        match verdict {
            Verdict::Answer => {
                let answers_the_person = self
                    .state
                    .frame(frame)
                    .is_some_and(|frame| frame.id.is_root() || frame.finish);
                if answers_the_person {
                    let limit = limit.or(self.state.limit_hit);
                    self.finish(Outcome::Answered { limit }, Some(seq));
                }
            }
            Verdict::Rejection(reason) => {
                self.emit(
                    frame.clone(),
                    agent.clone(),
                    EventBody::AgentRejected { reason },
                );
            }
            Verdict::Invalid(problem) => self.invalid_answer(frame, problem),
            Verdict::Nothing => {
                self.no_reply(frame, Fault::EmptyReply, "the model replied with nothing")
            }
            Verdict::OutputLimit => self.no_reply(
                frame,
                Fault::OutputLimit,
                "the model reached its output limit before it wrote an answer (raise `agent.maxOutputTokens`, or lower \
                 `agent.reasoningEffort`)",
            ),
            Verdict::StrayRejection => {
                self.no_reply(
                    frame,
                    Fault::StrayRejection,
                    "the model refused where only an answer is possible",
                );
            }
        }
    }

    /// Asks once more; the second time the frame has failed, and with the root's frame the turn.
    fn no_reply(&mut self, frame: &FrameId, fault: Fault, detail: &str) {
        self.correct(frame, fault, None, detail.to_owned());
        let failed = self
            .state
            .frame(frame)
            .is_some_and(|frame| matches!(frame.end, Some(FrameEnd::Failed(_))));
        if failed && frame.is_root() {
            self.fail(format!("{detail}, twice"), false);
        }
    }

    /// Gives every call an id that is its own within the turn, and leaves out what is past the bound.
    fn readable_calls(&self, mut calls: Vec<Call>) -> (Vec<Call>, usize) {
        let surplus = calls.len().saturating_sub(Self::CALLS_PER_REPLY);
        calls.truncate(Self::CALLS_PER_REPLY);
        let mut number = self.state.calls_seen.len();
        for at in 0..calls.len() {
            let (before, rest) = calls.split_at_mut(at);
            let taken = |id: &CallId| {
                self.state.calls_seen.contains(id) || before.iter().any(|call| call.id == *id)
            };
            let id = &mut rest[0].id;
            while id.as_str().is_empty() || id.as_str().len() > 128 || taken(id) {
                number += 1;
                // Nine letters and digits: no provider is stricter than Mistral.
                *id = CallId::new(format!("call{number:05}"));
            }
        }
        (calls, surplus)
    }

    /// Calls that are read of one reply; the rest is left out.
    const CALLS_PER_REPLY: usize = 32;

    pub(super) fn correct(
        &mut self,
        frame: &FrameId,
        fault: Fault,
        call: Option<CallId>,
        detail: String,
    ) {
        self.emit_as_root(
            frame.clone(),
            EventBody::TurnCorrected {
                fault,
                call,
                detail: detail.into(),
                context_tokens: None,
            },
        );
    }
}
