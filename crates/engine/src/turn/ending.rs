//! How a turn ends: with an answer, at a limit, in failure, or because it was stopped. When no agent found words, lango
//! says in its own what was done.

use super::Turn;
use super::frame::FrameEnd;
use lango_core::{
    AnsweredBy, CallStatus, EventBody, Fault, FrameId, Limit, Outcome, Text, Trust, Usage,
};
use std::fmt::Write;

impl Turn {
    /// Ends what no model call is left for.
    pub(super) fn settle(&mut self) {
        while self.outcome().is_none() {
            let stuck = self
                .in_line()
                .into_iter()
                .find(|frame| self.offer(frame).is_none());
            let Some((frame, limit)) =
                stuck.map(|frame| (frame.id.clone(), self.allowance(frame).1))
            else {
                return;
            };
            if frame.is_root() {
                self.limited(limit);
                continue;
            }
            let fault = match limit {
                Limit::Tokens => Fault::TokenLimit,
                Limit::Cost => Fault::CostLimit,
                _ => Fault::ModelCallLimit,
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

    pub(super) fn fail(&mut self, error: String, setup: bool) {
        let answer = self.say(&format!("There is no answer: {error}."));
        self.finish(
            Outcome::Failed {
                error: error.into(),
                setup,
            },
            Some(answer),
        );
    }

    fn limited(&mut self, limit: Limit) {
        let cause = match limit {
            _ if self.is_zero(limit) => {
                format!("No model was asked, because {} is 0.", limit.key())
            }
            _ => format!(
                "There is no answer: a limit of this turn was reached ({}).",
                limit.key()
            ),
        };
        let answer = self.say(&cause);
        self.finish(Outcome::Limited { limit }, Some(answer));
    }

    pub(super) fn time_spent(&mut self) {
        self.stop_calls("stopped: the time of the turn is over");
        self.correct(
            &FrameId::root(),
            Fault::TimeLimit,
            None,
            "the time of the turn is over".to_owned(),
        );
        self.limited(Limit::Time);
    }

    pub(super) fn cancel(&mut self) {
        self.stop_calls("stopped by the user");
        self.correct(
            &FrameId::root(),
            Fault::Cancelled,
            None,
            "stopped by the user".to_owned(),
        );
        let answer = self.say_deeds("The request was stopped before it was answered.");
        self.finish(Outcome::Cancelled, answer);
    }

    pub(super) fn interrupt(&mut self) {
        self.stop_calls("the process ended before a result was stored");
        let detail = "the process ended in the middle of the turn".to_owned();
        self.correct(&FrameId::root(), Fault::Interrupted, None, detail);
        let answer = self.say_deeds("The process ended before the request was answered.");
        self.finish(Outcome::Interrupted, answer);
    }

    /// Ends a turn whose approvals expired: they are denied, and no model is called again.
    pub(super) fn expire(&mut self) {
        let cause = "an approval was not answered in time (approval.expiry)";
        self.close_requests(cause, &AnsweredBy::Expired);
        self.stop_calls(cause);
        self.fail(cause.to_owned(), false);
    }

    /// Closes every call that was started or asked for. Of a started one with effect nobody can know whether it happened.
    fn stop_calls(&mut self, detail: &str) {
        self.close_requests(detail, &AnsweredBy::TurnEnded);
        let mut stopped = Vec::new();
        for frame in self.state.frames.iter().filter(|frame| frame.is_open()) {
            let detail = || Text::from(detail);
            if frame.remote {
                let body = EventBody::RemoteReturned {
                    status: CallStatus::Unknown,
                    output: detail(),
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
                let status = match may_have_happened {
                    true => CallStatus::Unknown,
                    false => CallStatus::Error,
                };
                let body = EventBody::ToolReturned {
                    call: slot.call.id.clone(),
                    status,
                    output: detail(),
                    trust: Trust::Trusted,
                    attachments: Vec::new(),
                };
                stopped.push((frame.id.clone(), frame.agent.clone(), body));
            }
        }
        for (frame, agent, body) in stopped {
            self.emit(frame, agent, body);
        }
    }

    /// Says what a request that is not answered has changed until it ended, if anything: whoever reads on, a person or a
    /// model, must not take it for undone.
    fn say_deeds(&mut self, cause: &str) -> Option<u64> {
        self.state.deeds.told()?;
        let cause = format!("{cause} It is not to be done any more, unless it is asked for again.");
        Some(self.say(&cause))
    }

    /// Stores lango's own words: the cause, and what was done until then.
    fn say(&mut self, cause: &str) -> u64 {
        let mut text = cause.to_owned();
        for frame in self.state.frames.iter().filter(|frame| !frame.id.is_root()) {
            let agent = &frame.agent;
            let _ = match &frame.end {
                Some(FrameEnd::Answered(answer)) => {
                    write!(text, "\n\n{agent} found:\n{}", beginning(answer))
                }
                Some(FrameEnd::Rejected(_)) => write!(text, "\n\n{agent} declined the task."),
                Some(FrameEnd::Limited(_)) => write!(text, "\n\n{agent} could not finish."),
                Some(FrameEnd::Failed(detail)) => {
                    write!(text, "\n\n{agent} failed: {}", beginning(detail))
                }
                None => write!(text, "\n\n{agent} was still at work."),
            };
        }
        if self.state.tool_calls > 0 {
            let _ = write!(
                text,
                "\n\nTool calls that were made: {}.",
                self.state.tool_calls
            );
        }
        if let Some(deeds) = self.state.deeds.told() {
            let _ = write!(text, "\n\n{deeds}");
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
            stop: lango_core::StopReason::Finished,
        };
        self.emit_as_root(FrameId::root(), body)
    }
}

fn beginning(text: &str) -> String {
    const MOST: usize = 2000;
    let mut beginning: String = text.chars().take(MOST).collect();
    if beginning.len() < text.len() {
        beginning.push('…');
    }
    beginning
}
