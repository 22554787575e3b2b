//! Ends a turn: with an answer, at a limit, with an error, or because it was cancelled. If no agent answered, lango
//! summarizes what was done.

use super::Turn;
use super::cut_off::cut_off;
use super::frame::FrameEnd;
use super::printed::{PrintedOutput, stopped_result};
use super::request_size;
use super::steps::PartialReply;
use lango_core::{
    AnswerSource, CallStatus, EventBody, FrameId, Limit, Outcome, StopReason, Text, TurnFault,
    Usage,
};
use std::fmt::Write;

impl Turn {
    /// Ends the frames for which no model call is left.
    pub(super) fn end_exhausted_frames(&mut self) {
        while self.outcome().is_none() {
            let stuck = self
                .ready_frames()
                .into_iter()
                .find(|frame| self.offer(frame).is_none());
            let Some((frame, limit)) =
                stuck.map(|frame| (frame.id.clone(), self.allowance(frame).1))
            else {
                return;
            };
            if frame.is_root() {
                self.limited(limit, &[]);
                continue;
            }
            let fault = match limit {
                Limit::Tokens => TurnFault::TokenLimit,
                Limit::Cost => TurnFault::CostLimit,
                _ => TurnFault::ModelCallLimit,
            };
            let detail = format!("no model call is left for this agent ({})", limit.key());
            self.correct(&frame, fault, None, detail);
        }
    }

    pub(super) fn finish(&mut self, outcome: Outcome, answer: Option<u64>) {
        let body = EventBody::TurnFinished {
            outcome,
            answer,
            usage: self.state.usage,
            cost_micros: self.state.cost_micros,
            model_calls: self.state.model_calls,
            tool_calls: self.state.tool_calls,
            rounds: self.state.rounds,
        };
        self.emit_as_root(FrameId::root(), body);
    }

    pub(super) fn fail(&mut self, error: String, setup: bool, fault: Option<Text>) {
        let answer = self.store_notice(&failure_notice(&error), &[]);
        self.finish(
            Outcome::Failed {
                error: error.into(),
                setup,
                fault,
            },
            Some(answer),
        );
    }

    fn limited(&mut self, limit: Limit, printed: &[PrintedOutput]) {
        let cause = match limit {
            _ if self.is_zero(limit) => {
                format!("No model was called, because {} is 0.", limit.key())
            }
            _ => format!(
                "There is no answer: a limit of this turn was reached ({}).",
                limit.key()
            ),
        };
        let answer = self.store_notice(&cause, printed);
        self.finish(Outcome::Limited { limit }, Some(answer));
    }

    pub(super) fn time_spent(&mut self, printed: &[PrintedOutput]) {
        self.stop_calls("stopped: the time limit of the turn has passed", printed);
        self.correct(
            &FrameId::root(),
            TurnFault::TimeLimit,
            None,
            "the time limit of the turn has passed".to_owned(),
        );
        self.limited(Limit::Time, printed);
    }

    /// Ends a turn because the user stopped it. What the user has seen of the answer becomes the answer, so that the
    /// next message can refer to it.
    pub(super) fn cancel(&mut self, partial: Vec<PartialReply>, printed: &[PrintedOutput]) {
        let mut answer = None;
        for reply in partial {
            answer = self.store_partial(reply, printed).or(answer);
        }
        self.stop_calls("stopped by the user", printed);
        self.correct(
            &FrameId::root(),
            TurnFault::Cancelled,
            None,
            "stopped by the user".to_owned(),
        );
        let answer = answer.or_else(|| {
            let cause = "The request was stopped before it was answered.";
            self.store_effects_notice(cause, printed)
        });
        self.finish(Outcome::Cancelled, answer);
    }

    /// Stores what a stopped reply has cost and, if it is the beginning of the answer, its text with a list of what was
    /// done before. Returns the `seq` of the answer.
    fn store_partial(&mut self, partial: PartialReply, printed: &[PrintedOutput]) -> Option<u64> {
        let PartialReply {
            frame: id,
            agent,
            model,
            bytes,
            text,
        } = partial;
        let frame = self.state.frame(&id).filter(|frame| frame.is_open())?;
        let (is_remote, awaits_model) = (frame.is_remote, frame.awaits_model());
        let is_answer = !text.trim().is_empty();
        let text: Text = if is_answer {
            let effects = self.state.effects.describe(printed);
            let effects = effects.map(|done| format!("\n\n{done}"));
            (cut_off(&text, "the user stopped it") + &effects.unwrap_or_default()).into()
        } else {
            "".into()
        };
        let body = if is_remote && is_answer {
            EventBody::RemoteReturned {
                status: CallStatus::Unknown,
                output: text,
                is_final: true,
                thread: None,
                attachments: Vec::new(),
            }
        } else if awaits_model && (bytes > 0 || is_answer) {
            // The provider reports the usage at the end of a reply, so it is estimated.
            let usage = Usage {
                input_tokens: self.estimated_tokens(frame, self.state.events),
                output_tokens: request_size::tokens(bytes),
                ..Usage::default()
            };
            EventBody::AgentMessage {
                text,
                calls: Vec::new(),
                is_final: is_answer,
                model: Some(model),
                usage,
                cost_micros: (self.state.setup.price_of(&agent)).map(|price| price.cost(&usage)),
                opaque: None,
                stop: StopReason::Cancelled,
                trust: self.trust_of_reply(&id, &agent),
            }
        } else {
            return None;
        };
        let seq = self.emit(id, agent, body);
        is_answer.then_some(seq)
    }

    pub(super) fn interrupt(&mut self) {
        self.stop_calls("the process ended before a result was stored", &[]);
        let detail = "the process ended during the turn".to_owned();
        self.correct(&FrameId::root(), TurnFault::Interrupted, None, detail);
        let answer =
            self.store_effects_notice("The process ended before the request was answered.", &[]);
        self.finish(Outcome::Interrupted, answer);
    }

    /// Ends a turn because an approval expired. Pending approvals are denied, and no model is called again.
    pub(super) fn expire(&mut self) {
        let cause = "an approval was not answered in time (approval.expiry)";
        self.close_requests(cause, &AnswerSource::Expired);
        self.stop_calls(cause, &[]);
        self.fail(cause.to_owned(), false, None);
    }

    /// Closes every running call and every pending approval. A running call with effects gets an unknown outcome. What
    /// calls had printed becomes part of their results.
    fn stop_calls(&mut self, detail: &str, printed: &[PrintedOutput]) {
        self.close_requests(detail, &AnswerSource::TurnEnded);
        let mut stopped = Vec::new();
        for frame in self.state.frames.iter().filter(|frame| frame.is_open()) {
            if frame.is_remote {
                let body = EventBody::RemoteReturned {
                    status: CallStatus::Unknown,
                    output: detail.into(),
                    is_final: false,
                    thread: None,
                    attachments: Vec::new(),
                };
                stopped.push((frame.id.clone(), frame.agent.clone(), body));
            }
            let started = frame.startable();
            for slot in frame.slots().iter().filter(|slot| slot.is_running()) {
                let may_have_happened =
                    slot.has_effect() && started.iter().any(|other| other.call.id == slot.call.id);
                let status = if may_have_happened {
                    CallStatus::Unknown
                } else {
                    CallStatus::Error
                };
                let (output, trust) = stopped_result(detail, &slot.call.id, printed);
                let body = EventBody::ToolReturned {
                    call: slot.call.id.clone(),
                    status,
                    output,
                    trust,
                    attachments: Vec::new(),
                };
                stopped.push((frame.id.clone(), frame.agent.clone(), body));
            }
        }
        for (frame, agent, body) in stopped {
            self.emit(frame, agent, body);
        }
    }

    /// Stores a summary of the effects of an unanswered turn, if it had any, so that neither the user nor a model
    /// assumes that nothing was done.
    fn store_effects_notice(&mut self, cause: &str, printed: &[PrintedOutput]) -> Option<u64> {
        self.state.effects.describe(printed)?;
        let cause = format!("{cause} To continue, ask for it again.");
        Some(self.store_notice(&cause, printed))
    }

    /// Stores a message of lango itself: the cause, what was done before, and what stopped calls had printed.
    fn store_notice(&mut self, cause: &str, printed: &[PrintedOutput]) -> u64 {
        let mut text = cause.to_owned();
        for frame in self.state.frames.iter().filter(|frame| !frame.id.is_root()) {
            let agent = &frame.agent;
            let _ = match &frame.end {
                Some(FrameEnd::Answered(answer)) => {
                    write!(text, "\n\n{agent} found:\n{}", truncated(answer))
                }
                Some(FrameEnd::Rejected(_)) => write!(text, "\n\n{agent} declined the task."),
                Some(FrameEnd::Limited(_)) => write!(text, "\n\n{agent} could not finish."),
                Some(FrameEnd::Failed(detail)) if cause.contains(&**detail) => {
                    write!(text, "\n\n{agent} failed with the same error.")
                }
                Some(FrameEnd::Failed(detail)) => {
                    write!(text, "\n\n{agent} failed: {}", truncated(detail))
                }
                None => write!(text, "\n\n{agent} was still working."),
            };
        }
        if self.state.tool_calls > 0 {
            let _ = write!(text, "\n\nTool calls made: {}.", self.state.tool_calls);
        }
        if let Some(effects) = self.state.effects.describe(printed) {
            let _ = write!(text, "\n\n{effects}");
        }
        let body = EventBody::AgentMessage {
            text: text.into(),
            calls: Vec::new(),
            is_final: true,
            model: None,
            usage: Usage::default(),
            cost_micros: Some(0),
            opaque: None,
            trust: self.state.trust_of_all(),
            stop: StopReason::Finished,
        };
        self.emit_as_root(FrameId::root(), body)
    }
}

/// Returns the beginning of lango's message for a turn that failed.
pub(crate) fn failure_notice(error: &str) -> String {
    format!("There is no answer: {error}.")
}

fn truncated(text: &str) -> String {
    const MAX_CHARS: usize = 2000;
    let mut beginning: String = text.chars().take(MAX_CHARS).collect();
    if beginning.len() < text.len() {
        beginning.push('…');
    }
    beginning
}
