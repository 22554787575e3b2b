//! Handles results: replies of models, answers of remote agents, results of tools.

use super::Turn;
use super::cut_off::cut_off;
use super::frame::{Frame, FrameEnd};
use super::request_size;
use super::steps::{ModelStep, RemoteStep, ToolStep};
use crate::rejection;
use lango_core::{
    AgentName, Attachment, Call, CallId, CallStatus, EventBody, FrameId, Inspection, Limit,
    ModelError, ModelFault, ModelReply, Outcome, RemoteAnswer, RemoteError, RemoteThread,
    StopReason, Text, Trust, TurnFault,
};

/// The meaning of a reply without calls.
enum ReplyKind {
    Answer,
    Rejection(Text),
    /// A rejection by an agent that must not reject.
    StrayRejection,
    /// An answer that does not match the schema of the turn, with the reason.
    Invalid(String),
    Nothing,
    /// No text, because the reply reached the output limit before any text came.
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
        // A limit may have ended the frame while its model was running. Such a reply is stored and paid for, but has no
        // effect.
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
            self.normalize_calls(calls)
        };

        let text = if calls.is_empty() {
            self.answer_text(&step.frame, text)
        } else {
            text
        };
        let kind = match self.classify(&step.frame, &text) {
            ReplyKind::Nothing if stop == StopReason::OutputLimit => ReplyKind::OutputLimit,
            ReplyKind::Answer if is_cut && self.answer_schema_of(&step.frame).is_some() => {
                ReplyKind::Invalid("the reply was cut off before its end".to_owned())
            }
            kind => kind,
        };
        let is_final = !is_late && calls.is_empty() && matches!(kind, ReplyKind::Answer);
        let text: Text = match &stop {
            StopReason::OutputLimit if is_final => {
                cut_off(&text, "it reached the output limit").into()
            }
            StopReason::Filtered { detail } if is_final => cut_off(&text, detail).into(),
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
            let detail = format!("{dropped} calls were dropped: the request offered no functions");
            self.correct(&step.frame, TurnFault::CallsNotOffered, None, detail);
        }
        if surplus > 0 {
            let detail = format!(
                "{surplus} calls were dropped: a reply may have at most {}",
                Self::CALLS_PER_REPLY
            );
            self.correct(&step.frame, TurnFault::TooManyCalls, None, detail);
        }
        if is_cut {
            for call in &calls {
                let detail = "not run: the reply was cut off, so this call may be incomplete; repeat it with shorter arguments";
                let id = Some(call.id.clone());
                self.correct(&step.frame, TurnFault::BadArguments, id, detail.to_owned());
            }
        }
        if calls.is_empty() {
            self.frame_replied(&step.frame, &step.agent, kind, seq, step.offer.limit);
        } else if !is_cut {
            self.handle_calls(step, &calls, inspections);
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
        self.correct(&step.frame, TurnFault::ModelFailed, None, error.to_string());
        if step.frame.is_root() {
            let (setup, fault) = (error.fault.is_setup_error(), error.fault.name());
            self.fail(error.to_string(), setup, Some(fault.into()));
        }
    }

    /// Makes the next request of a frame shorter, but only once. Returns whether it did.
    fn shorten(&mut self, step: &ModelStep, limit: Option<u64>, error: &ModelError) -> bool {
        let Some(frame) = self.state.frame(&step.frame) else {
            return false;
        };
        let request = self.request_of(frame, step.offer);
        if frame.context_tokens.is_some() || !request_size::can_be_shorter(&request) {
            return false;
        }
        // Requests fill at most three quarters of the window, so two thirds of this one fill at most half of it.
        let sent = request_size::tokens(request_size::bytes_of(&request));
        let most = (sent / 3 * 2).max(1);
        let body = EventBody::TurnCorrected {
            fault: TurnFault::ContextTooLong,
            call: None,
            detail: format!("{error}; retried with a shorter request").into(),
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
        let running = |frame: &Frame| {
            let mut slots = frame.slots().iter();
            slots.any(|slot| slot.is_running() && slot.call.id == step.call)
        };
        if !self.state.frame(&step.frame).is_some_and(running) {
            return;
        }
        // Calls that waited for this one may start now.
        self.check_stored_calls();
        let body = EventBody::ToolReturned {
            call: step.call.clone(),
            status,
            output,
            trust,
            attachments: self.name_attachments(attachments),
        };
        self.emit(step.frame.clone(), step.agent.clone(), body);
        let in_circle = |frame: &Frame| {
            frame.awaits_model() && !frame.repetition.found && frame.repetition.is_circle()
        };
        if self.state.frame(&step.frame).is_some_and(in_circle) {
            let detail = "the same calls returned the same results several times".to_owned();
            self.correct(&step.frame, TurnFault::Repetition, None, detail);
        }
    }

    pub(super) fn remote_accepted(&mut self, step: &RemoteStep, thread: RemoteThread) {
        let is_new = |frame: &Frame| {
            frame.is_remote && frame.is_open() && frame.thread.as_ref() != Some(&thread)
        };
        if self.state.frame(&step.frame).is_some_and(is_new) {
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
            .is_some_and(|frame| frame.is_remote && frame.is_open())
        {
            return;
        }
        let (status, output, kind, thread) = match result {
            Ok(RemoteAnswer { text, thread, .. }) => {
                let kind = self.classify(&step.frame, &text);
                (CallStatus::Ok, Text::from(text), kind, thread)
            }
            Err(error) => {
                let status = if error.is_unknown {
                    CallStatus::Unknown
                } else {
                    CallStatus::Error
                };
                (status, error.detail.into(), ReplyKind::Nothing, None)
            }
        };
        let is_final = matches!(kind, ReplyKind::Answer);
        let is_question = is_final && thread.as_ref().is_some_and(|thread| thread.task.is_some());
        let body = EventBody::RemoteReturned {
            status,
            output,
            is_final,
            thread,
            attachments: self.name_attachments(attachments),
        };
        let seq = self.emit(step.frame.clone(), step.agent.clone(), body);
        // A question goes to the user, unless other agents were called at the same time. Then the orchestrator asks it.
        let is_alone = || {
            let root = self.state.frame(&FrameId::root());
            root.is_some_and(|root| root.slots().len() == 1)
        };
        match kind {
            ReplyKind::Answer if is_question && is_alone() && !self.has_answer_schema() => {
                let limit = self.state.limit_hit;
                self.finish(Outcome::Answered { limit }, Some(seq));
            }
            ReplyKind::Answer | ReplyKind::Rejection(_) => {
                self.frame_replied(&step.frame, &step.agent, kind, seq, None)
            }
            // The `remote.returned` event already ended the frame.
            ReplyKind::Nothing
            | ReplyKind::StrayRejection
            | ReplyKind::Invalid(_)
            | ReplyKind::OutputLimit => {}
        }
    }

    fn classify(&self, frame: &FrameId, text: &str) -> ReplyKind {
        match rejection::reason(text) {
            Some(_) if frame.is_root() => ReplyKind::StrayRejection,
            Some("") => ReplyKind::Rejection("no reason given".into()),
            Some(reason) => ReplyKind::Rejection(reason.into()),
            None if text.trim().is_empty() => ReplyKind::Nothing,
            None => match self.answer_problem(frame, text) {
                Some(problem) => ReplyKind::Invalid(problem),
                None => ReplyKind::Answer,
            },
        }
    }

    /// Handles a reply without calls.
    fn frame_replied(
        &mut self,
        frame: &FrameId,
        agent: &AgentName,
        kind: ReplyKind,
        seq: u64,
        limit: Option<Limit>,
    ) {
        match kind {
            ReplyKind::Answer => {
                let answers_user = self
                    .state
                    .frame(frame)
                    .is_some_and(|frame| frame.id.is_root() || frame.finish);
                if answers_user {
                    let limit = limit.or(self.state.limit_hit);
                    self.finish(Outcome::Answered { limit }, Some(seq));
                }
            }
            ReplyKind::Rejection(reason) => {
                self.emit(
                    frame.clone(),
                    agent.clone(),
                    EventBody::AgentRejected { reason },
                );
            }
            ReplyKind::Invalid(problem) => self.invalid_answer(frame, problem),
            ReplyKind::Nothing => {
                self.retry_or_fail(frame, TurnFault::EmptyReply, "the model replied with nothing")
            }
            ReplyKind::OutputLimit => self.retry_or_fail(
                frame,
                TurnFault::OutputLimit,
                "the model reached its output limit before it wrote an answer (raise `agent.maxOutputTokens`, or lower \
                 `agent.reasoningEffort`)",
            ),
            ReplyKind::StrayRejection => {
                self.retry_or_fail(
                    frame,
                    TurnFault::StrayRejection,
                    "the model rejected the task, but only an answer is possible",
                );
            }
        }
    }

    /// Asks the model once more. If that was already done, fails the frame, and for the root frame the whole turn.
    fn retry_or_fail(&mut self, frame: &FrameId, fault: TurnFault, detail: &str) {
        self.correct(frame, fault, None, detail.to_owned());
        let failed = self
            .state
            .frame(frame)
            .is_some_and(|frame| matches!(frame.end, Some(FrameEnd::Failed(_))));
        if failed && frame.is_root() {
            self.fail(format!("{detail}, twice"), false, None);
        }
    }

    /// Gives every call an id that is unique in the turn, and drops calls beyond the limit.
    fn normalize_calls(&self, mut calls: Vec<Call>) -> (Vec<Call>, usize) {
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
                // Nine letters and digits satisfy the strictest provider, Mistral.
                *id = CallId::new(format!("call{number:05}"));
            }
        }
        (calls, surplus)
    }

    /// The maximum number of calls in one reply; further ones are dropped.
    const CALLS_PER_REPLY: usize = 32;

    pub(super) fn correct(
        &mut self,
        frame: &FrameId,
        fault: TurnFault,
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
