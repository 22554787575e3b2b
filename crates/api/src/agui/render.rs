//! Renders a turn as the events of a run.

use super::events;
use super::interrupt;
use super::outline::Outline;
use super::run_input::RunInput;
use crate::problem::Problem;
use crate::protocol::{AnswerRemainder, Frames, Renderer, StreamedText};
use lango_core::{AgentName, CallId, Event, EventBody, FrameId, Outcome, TurnId, Usage};
use lango_engine::{TurnEnd, TurnReport, TurnUpdate};
use serde_json::{Value, json};

/// Writes a turn as the events of an AG-UI run.
pub(super) struct RunRenderer {
    started: Value,
    finished: Value,
    is_version_1: bool,
    turn: TurnId,
    outline: Outline,
    /// Open steps with their names, which are unique.
    steps: Vec<(FrameId, String)>,
    /// The id of the run. Message ids contain it, because several runs can show the same turn.
    run: String,
    /// The id of the text message that is being written.
    message: Option<String>,
    next_message: usize,
    text: StreamedText,
}

/// Returns the id of a call, which is unique in its thread.
pub(super) fn call_id(turn: &TurnId, call: &CallId) -> String {
    format!("{turn}:{call}")
}

impl RunRenderer {
    /// Creates a renderer for a turn. `outline` is what earlier runs have already shown of it.
    pub(super) fn new(run: &RunInput, turn: TurnId, outline: Outline) -> Self {
        Self {
            started: events::run_started(run),
            finished: events::run_finished(run, events::success()),
            is_version_1: run.is_version_1,
            turn,
            outline,
            steps: Vec::new(),
            run: run.run.clone(),
            message: None,
            next_message: 1,
            text: StreamedText::default(),
        }
    }

    fn stored(&mut self, event: &Event, frames: &mut Frames) {
        self.outline.note(event);
        if let EventBody::AgentDelegated { call, .. } = &event.body {
            self.open_step(&FrameId::from(call), frames);
        } else {
            self.open_step(&event.frame, frames);
        }
        match &event.body {
            EventBody::ApprovalRequested(request) => {
                let arguments = request.arguments.to_string();
                self.show_call(&request.call, request.tool.as_str(), &arguments, frames);
            }
            EventBody::ToolCalled {
                call,
                tool,
                arguments,
                ..
            } => self.show_call(call, tool.as_str(), &arguments.to_string(), frames),
            EventBody::ToolReturned { call, output, .. } => {
                if let Some((tool, arguments)) = self.outline.written(call) {
                    self.show_call(call, tool.as_str(), &arguments, frames);
                }
                let id = call_id(&self.turn, call);
                frames.push(None, &events::tool_result(&id, output));
            }
            _ => {}
        }
        self.close_step_if_ended(&event.frame, frames);
    }

    /// Shows a call unless it was shown before.
    fn show_call(&mut self, call: &CallId, tool: &str, arguments: &str, frames: &mut Frames) {
        if self.outline.show(call) {
            for event in events::tool_call(&call_id(&self.turn, call), tool, arguments) {
                frames.push(None, &event);
            }
        }
    }

    /// Opens the step of a delegation, if it is not open. A run that continues a turn opens the step only when an event
    /// of the delegation arrives.
    fn open_step(&mut self, frame: &FrameId, frames: &mut Frames) {
        let is_open = self.steps.iter().any(|(open, _)| open == frame);
        let delegation = self.outline.delegation(frame);
        let Some(delegation) = delegation.filter(|_| !is_open) else {
            return;
        };
        let name = self.step_name(&delegation.agent);
        frames.push(None, &events::step_started(&name));
        frames.push(None, &self.activity(frame, &delegation.content()));
        self.steps.push((frame.clone(), name));
    }

    /// Returns a name for the agent's step. Adds a number if another step has that name, because clients refuse two
    /// open steps with the same name.
    fn step_name(&self, agent: &AgentName) -> String {
        let is_free = |name: &String| self.steps.iter().all(|(_, open)| open != name);
        let numbered = (2..).map(|number| format!("{agent} ({number})"));
        let mut names = std::iter::once(agent.to_string()).chain(numbered);
        names.find(is_free).unwrap_or_default()
    }

    fn close_step_if_ended(&mut self, frame: &FrameId, frames: &mut Frames) {
        let ended = self.outline.delegation(frame);
        let Some(ended) = ended.filter(|delegation| !delegation.is_running()) else {
            return;
        };
        let Some(place) = self.steps.iter().position(|(open, _)| open == frame) else {
            return;
        };
        frames.push(None, &self.activity(frame, &ended.content()));
        let (_, name) = self.steps.remove(place);
        frames.push(None, &events::step_finished(&name));
    }

    fn activity(&self, frame: &FrameId, content: &Value) -> Value {
        let id = call_id(&self.turn, &CallId::from(frame));
        events::activity(&format!("{id}:delegation"), content)
    }

    fn push_text(&mut self, text: &str, frames: &mut Frames) {
        if text.is_empty() {
            return;
        }
        let message = match &self.message {
            Some(message) => message,
            None => {
                let number = self.next_message;
                self.next_message += 1;
                let id = format!("{}:{}:text:{number}", self.turn, self.run);
                frames.push(None, &events::text_start(&id));
                self.message.insert(id)
            }
        };
        frames.push(None, &events::text_content(message, text));
    }

    fn end_text(&mut self, frames: &mut Frames) {
        self.text.withdraw();
        if let Some(message) = self.message.take() {
            frames.push(None, &events::text_end(&message));
        }
    }

    /// Writes the part of the answer that was not already written as a draft.
    fn answer(&mut self, report: &TurnReport, frames: &mut Frames) {
        let answer = report.answer.as_deref().unwrap_or_default();
        let rest = match self.text.rest(answer) {
            AnswerRemainder::Continues(rest) => rest,
            AnswerRemainder::Replaced(answer) => {
                self.end_text(frames);
                answer
            }
        };
        self.push_text(rest, frames);
        self.end_text(frames);
    }

    /// Returns the last event for a turn that has ended.
    fn last(&self, report: &TurnReport) -> Value {
        match &report.outcome {
            Outcome::Answered { limit } => self.success(report, limit.as_ref()),
            Outcome::Limited { limit } => self.success(report, Some(limit)),
            Outcome::Failed { error, setup, .. } => {
                let code = if *setup {
                    "setup_needed"
                } else {
                    "turn_failed"
                };
                events::run_error(error, code)
            }
            Outcome::Cancelled if self.is_version_1 => {
                self.finished_with(json!({ "type": "cancelled" }), report.usage)
            }
            Outcome::Cancelled => events::run_error("the turn was cancelled", "turn_cancelled"),
            Outcome::Interrupted => events::run_error(
                "the turn was interrupted and did not go on",
                "turn_interrupted",
            ),
        }
    }

    fn success(&self, report: &TurnReport, limit: Option<&lango_core::Limit>) -> Value {
        let mut event = self.finished_with(events::success(), report.usage);
        event["result"] = json!({ "session": report.session, "turn": report.turn });
        if let Some(limit) = limit {
            event["result"]["limit"] = json!(limit);
        }
        event
    }

    fn finished_with(&self, outcome: Value, usage: Usage) -> Value {
        let mut event = self.finished.clone();
        event["outcome"] = outcome;
        if self.is_version_1 {
            event["usage"] = events::usage(usage);
        }
        event
    }
}

impl Renderer for RunRenderer {
    fn start(&mut self, frames: &mut Frames) {
        frames.push(None, &self.started);
    }

    fn shown(&mut self, shown: &TurnUpdate, frames: &mut Frames) {
        match shown {
            TurnUpdate::Stored(batch) => {
                for event in batch.iter() {
                    self.stored(event, frames);
                }
            }
            TurnUpdate::Draft { author, text, .. } => {
                if !self.text.is_by(author) {
                    self.end_text(frames);
                }
                self.text.push(author, text);
                self.push_text(text, frames);
            }
            TurnUpdate::DraftWithdrawn => self.end_text(frames),
            TurnUpdate::Queued
            | TurnUpdate::Retrying { .. }
            | TurnUpdate::ModelStarted { .. }
            | TurnUpdate::ModelProgress { .. }
            | TurnUpdate::ToolOutput { .. } => {}
        }
    }

    fn end(&mut self, end: Result<TurnEnd, Problem>, usage: Usage, frames: &mut Frames) {
        if let Ok(TurnEnd::Finished(report)) = &end {
            self.answer(report, frames);
        }
        self.end_text(frames);
        for (_, name) in std::mem::take(&mut self.steps) {
            frames.push(None, &events::step_finished(&name));
        }
        let last = match &end {
            Ok(TurnEnd::Finished(report)) => self.last(report),
            Ok(TurnEnd::Waiting(waiting)) => self.finished_with(interrupt::outcome(waiting), usage),
            Err(problem) => events::problem(problem),
        };
        frames.push(None, &last);
    }
}
