//! What happens in a turn: the lines that stay on the screen, and the rows that show what is running now.
//!
//! This is the only place that turns updates of a turn into text for the user. Lines are printed as soon as a step has
//! ended; running steps appear only in [`Activity::rows`], which a live screen draws below the lines.

mod agent_frames;
mod answer_line;
mod call_lines;
mod full_results;
mod live_rows;
mod report_text;

use super::one_line;
use super::output_tail::OutputTail;
use super::tool_call::call_text;
use super::tool_line::{
    REPORTED_SYMBOL, has_failed, last_lines, refusal_text, result_text, status_symbol,
};
use crate::terminal::{Colour, Palette};
use agent_frames::{AgentFrame, AgentFrames, ModelCall};
pub use answer_line::QuestionEnd;
use answer_line::{answer_line, closing_line};
use full_results::FullResults;
use lango::app::attach::attachment_line;
use lango_core::text::sanitize;
use lango_core::{
    AgentName, ApprovalAnswer, ApprovalId, ApprovalRequest, CallId, CallStatus, Event, EventBody,
    FrameId, Text, Timestamp, ToolName, TurnFault,
};
use lango_engine::{TurnUpdate, rejection_reason};
use report_text::without_markup;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The characters of a task that tell two delegations to the same agent apart.
const TASK_CHARACTERS: usize = 40;

/// The characters of a task and of a correction that are shown; [`Activity::full_result`] shows all.
const SHOWN_TASK_CHARACTERS: usize = 80;
const CORRECTION_CHARACTERS: usize = 100;

/// The characters of an agent's report that are shown; [`Activity::full_result`] shows all.
const REPORT_CHARACTERS: usize = 200;

/// The bytes of a running model call that are counted as one token, until the provider reports the real number.
const BYTES_PER_TOKEN: usize = 4;

/// A step that runs this long gets a line on a plain screen, and then another one at each interval.
const SLOW_AFTER: Duration = Duration::from_secs(2);
const SLOW_AGAIN: Duration = Duration::from_secs(30);

/// The activity of one turn.
pub struct Activity {
    palette: Palette,
    started: Instant,
    frames: AgentFrames,
    /// The calls that agents have made, until they return.
    made: HashMap<CallId, MadeCall>,
    calls: HashMap<CallId, RunningCall>,
    /// The calls that the user was asked about, until there is an answer.
    asked: HashMap<ApprovalId, AskedCall>,
    /// The answers whose line is on the screen already.
    closed: HashMap<ApprovalId, ApprovalAnswer>,
    /// What the user reported about calls with an unknown outcome, until they return.
    reports: HashMap<CallId, Text>,
    /// The tokens that providers reported.
    reported_tokens: u64,
    results: FullResults,
}

/// A call as its agent made it.
struct MadeCall {
    tool: String,
    arguments: Value,
}

/// A call that the user is asked about.
struct AskedCall {
    call: CallId,
    text: String,
}

struct RunningCall {
    frame: FrameId,
    tool: ToolName,
    arguments: Arc<Value>,
    stored: Timestamp,
    started: Instant,
    /// When a plain screen prints the next line about it.
    next_notice: Instant,
    output: OutputTail,
}

impl Activity {
    pub fn new(palette: Palette) -> Self {
        Self {
            palette,
            started: Instant::now(),
            frames: AgentFrames::default(),
            made: HashMap::new(),
            calls: HashMap::new(),
            asked: HashMap::new(),
            closed: HashMap::new(),
            reports: HashMap::new(),
            reported_tokens: 0,
            results: FullResults::default(),
        }
    }

    /// Starts another turn. Results of the last one can still be shown in full.
    pub fn begin_turn(&mut self) {
        self.started = Instant::now();
        self.frames.clear();
        self.made.clear();
        self.calls.clear();
        self.asked.clear();
        self.closed.clear();
        self.reports.clear();
        self.reported_tokens = 0;
    }

    /// Returns how long the turn has been running.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the lines that an update adds to the screen. Most messages have none, because the answer is shown
    /// separately.
    pub fn update(&mut self, update: &TurnUpdate) -> Vec<String> {
        match update {
            TurnUpdate::Stored(events) => {
                self.mark_answer(events);
                let lines = events.iter().flat_map(|event| self.event(event));
                lines.collect()
            }
            TurnUpdate::ModelStarted {
                frame,
                agent,
                model,
            } => {
                self.palette.add_agent(agent);
                self.frames.enter(frame, agent).model = Some(ModelCall::start(model));
                Vec::new()
            }
            TurnUpdate::ModelProgress { frame, bytes } => {
                let frame = self.frames.find(frame);
                if let Some(call) = frame.and_then(|frame| frame.model.as_mut()) {
                    call.bytes += bytes;
                }
                Vec::new()
            }
            TurnUpdate::ToolOutput { call, text } => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.output.push(text);
                }
                Vec::new()
            }
            TurnUpdate::Retrying { agent, reason } => {
                let line = format!("{}: {}", agent, one_line(reason, 200));
                vec![self.warning(&line)]
            }
            TurnUpdate::Queued => vec![super::QUEUED_NOTICE.to_owned()],
            TurnUpdate::Draft { .. } | TurnUpdate::DraftWithdrawn => Vec::new(),
        }
    }

    /// Returns the full output of the last call; each further time that of the call before.
    pub fn full_result(&mut self) -> Option<String> {
        let result = self.results.next_older()?;
        let output = sanitize(&result.output);
        let output = output.trim_end();
        Some(format!("{}\n{output}", self.palette.bold(&result.title)))
    }

    /// Adds a pending question of the turn. Those that are asked during the turn are added with its updates.
    pub fn add_request(&mut self, request: &ApprovalRequest) {
        let tool = request.tool.as_str();
        let asked = AskedCall {
            call: request.call.clone(),
            text: call_text(tool, &request.arguments),
        };
        self.asked.insert(request.id.clone(), asked);
        // After a restart, nothing else says what the call was.
        let made = || MadeCall {
            tool: tool.to_owned(),
            arguments: (*request.arguments).clone(),
        };
        self.made.entry(request.call.clone()).or_insert_with(made);
    }

    /// Returns the line that closes the box of a question. The stored answer gets no second one.
    pub fn closing_line(&mut self, request: &ApprovalId, end: QuestionEnd) -> String {
        let asked = self.asked.get(request);
        let call = asked.map_or("", |asked| asked.text.as_str());
        let line = closing_line(&end, call, &self.palette);
        if let QuestionEnd::Answered(answer) = end {
            self.closed.insert(request.clone(), answer);
        }
        line
    }

    /// Marks the frame whose message is the answer: the last one before the end of the turn. The delegation says so too,
    /// but may have been shown before the turn had to wait.
    fn mark_answer(&mut self, events: &[Event]) {
        let is_end = |event: &&Event| matches!(event.body, EventBody::TurnFinished { .. });
        let is_message = |event: &&Event| matches!(event.body, EventBody::AgentMessage { .. });
        if events.iter().any(|event| is_end(&event))
            && let Some(last) = events.iter().rev().find(is_message)
        {
            self.frames.enter(&last.frame, &last.author).is_answer = true;
        }
    }

    fn event(&mut self, event: &Event) -> Vec<String> {
        let who = &event.author;
        self.palette.add_agent(who);
        let mut lines = match &event.body {
            EventBody::AgentDelegated { agent, task, .. } => self.delegated(event, agent, task),
            EventBody::AgentRejected { reason } => {
                let reason = one_line(reason, 80);
                let who = self.palette.agent(who);
                self.frames.remove(&event.frame);
                vec![format!("  {who} declined: {reason}")]
            }
            EventBody::AgentMessage {
                text,
                calls,
                usage,
                is_final,
                ..
            } => {
                self.reported_tokens += usage.input_tokens + usage.output_tokens;
                for call in calls {
                    let made = MadeCall {
                        tool: call.name.to_string(),
                        arguments: serde_json::from_str(&call.arguments).unwrap_or_default(),
                    };
                    self.made.insert(call.id.clone(), made);
                }
                let frame = self.frames.enter(&event.frame, who);
                frame.model = None;
                // A rejection has a line of its own.
                let is_rejection = calls.is_empty() && rejection_reason(text).is_some();
                let is_report = !frame.is_answer && !is_rejection && !text.trim().is_empty();
                let mut lines = Vec::new();
                if is_report {
                    lines.push(self.reported(event, text));
                }
                if *is_final {
                    lines.extend(self.close_frame(event, CallStatus::Ok));
                }
                lines
            }
            EventBody::ApprovalRequested(request) => {
                self.frames
                    .enter(&event.frame, who)
                    .start_waiting(event.time);
                self.add_request(request);
                Vec::new()
            }
            EventBody::ToolCalled {
                call,
                tool,
                arguments,
                ..
            } => {
                self.frames.enter(&event.frame, who);
                let running = RunningCall {
                    frame: event.frame.clone(),
                    tool: tool.clone(),
                    arguments: Arc::clone(arguments),
                    stored: event.time,
                    started: Instant::now(),
                    next_notice: Instant::now() + SLOW_AFTER,
                    output: OutputTail::default(),
                };
                self.calls.insert(call.clone(), running);
                Vec::new()
            }
            EventBody::ToolReturned {
                call,
                status,
                output,
                ..
            } => self.returned(event, call, *status, output),
            EventBody::RemoteReturned {
                status, is_final, ..
            } => {
                let line = format!(
                    "  {} {} (remote)",
                    self.palette.agent(who),
                    self.symbol(*status)
                );
                let mut lines = vec![line];
                if *is_final {
                    lines.extend(self.close_frame(event, *status));
                }
                lines
            }
            // The end of the turn says the same.
            EventBody::TurnCorrected {
                fault: TurnFault::ModelFailed | TurnFault::Cancelled,
                ..
            } if event.frame.is_root() => Vec::new(),
            EventBody::TurnCorrected { fault, detail, .. } => {
                if detail.chars().count() > CORRECTION_CHARACTERS {
                    self.results.add(format!("{who} was told:"), detail);
                }
                let mut lines = vec![self.warning(&one_line(detail, CORRECTION_CHARACTERS))];
                if ends_frame(*fault) {
                    lines.extend(self.close_frame(event, CallStatus::Error));
                }
                lines
            }
            EventBody::ApprovalAnswered {
                request,
                answer,
                by,
                ..
            } => {
                if let Some(frame) = self.frames.find(&event.frame) {
                    frame.stop_waiting(event.time);
                }
                let asked = self.asked.remove(request);
                if let (Some(asked), ApprovalAnswer::Happened { text }) = (&asked, answer) {
                    self.reports.insert(asked.call.clone(), Text::clone(text));
                }
                let call = asked.map_or(String::new(), |asked| asked.text);
                match self.closed.remove(request) {
                    Some(shown) if shown == *answer => Vec::new(),
                    _ => answer_line(answer, by, &call, &self.palette)
                        .into_iter()
                        .collect(),
                }
            }
            _ => Vec::new(),
        };
        let attachments = event.body.attachments().iter();
        lines.extend(attachments.map(|file| format!("  {}", attachment_line(file))));
        lines
    }

    fn delegated(&mut self, event: &Event, agent: &AgentName, task: &str) -> Vec<String> {
        let EventBody::AgentDelegated { call, finish, .. } = &event.body else {
            return Vec::new();
        };
        let id = FrameId::from(call);
        if task.chars().count() > SHOWN_TASK_CHARACTERS {
            self.results
                .add(format!("{} → {agent}", event.author), task);
        }
        let task = one_line(task, SHOWN_TASK_CHARACTERS);
        self.palette.add_agent(agent);
        let frame = self.frames.enter(&id, agent);
        frame.is_answer = *finish;
        frame.task.clone_from(&task);
        frame.delegated = Some(event.time);
        self.frames.mark_parallel(agent);
        let (from, to) = (self.palette.agent(&event.author), self.palette.agent(agent));
        vec![format!("● {from} → {to}  {task}")]
    }

    fn returned(
        &mut self,
        event: &Event,
        call: &CallId,
        status: CallStatus,
        output: &str,
    ) -> Vec<String> {
        let who = self.palette.agent(&event.author);
        let made = self.made.remove(call);
        // A call that never ran has no duration.
        let Some(ran) = self.calls.remove(call) else {
            let text = made.map_or(String::new(), |made| call_text(&made.tool, &made.arguments));
            let (symbol, result) = match self.reports.remove(call) {
                Some(report) => (
                    Cow::Borrowed(REPORTED_SYMBOL),
                    format!("reported: {}", one_line(&report, REPORT_CHARACTERS)),
                ),
                None => (self.symbol(status).into(), refusal_text(output)),
            };
            self.results.add(format!("{} {text}", event.author), output);
            let parts = [format!("  {who} {symbol} {text}"), result];
            return vec![parts.join("  ")];
        };
        let tool = ran.tool.as_str();
        let text = call_text(tool, &ran.arguments);
        let result = result_text(tool, &ran.arguments, status, output);
        let time = self.palette.dim(&time_between(ran.stored, event.time));
        let symbol = if has_failed(tool, status, output) && status == CallStatus::Ok {
            self.symbol(CallStatus::Error)
        } else {
            self.symbol(status)
        };
        let parts = [format!("  {who} {symbol} {text}"), result, time];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let mut lines = vec![parts.join("  ")];
        let end = if has_failed(tool, status, output) {
            last_lines(tool, output)
        } else {
            Vec::new()
        };
        self.results.add(format!("{} {text}", event.author), output);
        lines.extend(
            end.iter()
                .map(|line| self.palette.dim(&format!("      {line}"))),
        );
        lines
    }

    /// Shows what a sub-agent told the orchestrator: its first line, and everything on request.
    fn reported(&mut self, event: &Event, text: &str) -> String {
        self.results.add(format!("{} says:", event.author), text);
        let who = self.palette.agent(&event.author);
        let said = one_line(&without_markup(text), REPORT_CHARACTERS);
        format!("  {who}: {}", self.palette.dim(&said))
    }

    /// Ends an agent's part. Returns a line only if agents worked at the same time, because the others then go on.
    fn close_frame(&mut self, event: &Event, status: CallStatus) -> Vec<String> {
        let frame = self.frames.remove(&event.frame);
        let Some(frame) = frame.filter(|frame| frame.is_parallel) else {
            return Vec::new();
        };
        let Some(started) = frame.started_work() else {
            return Vec::new();
        };
        let time = self.palette.dim(&time_between(started, event.time));
        let (symbol, agent) = (self.symbol(status), self.frame_label(&frame));
        vec![format!("{symbol} {agent}  {time}")]
    }

    /// Returns the agent of a frame, with its task if the name does not tell which delegation it is.
    fn frame_label(&self, frame: &AgentFrame) -> String {
        let agent = self.palette.agent(&frame.agent);
        if !frame.shares_agent {
            return agent;
        }
        let task = one_line(&frame.task, TASK_CHARACTERS);
        format!("{agent} {}", self.palette.dim(&format!("({task})")))
    }

    /// Returns a line about something that went wrong. Only its mark is coloured: the text can quote a model, and nothing
    /// of a model has the colour of a question.
    fn warning(&self, text: &str) -> String {
        format!("  {} {text}", self.palette.colour("!", Colour::Yellow))
    }

    fn symbol(&self, status: CallStatus) -> String {
        let colour = match status {
            CallStatus::Ok => Colour::Green,
            CallStatus::Error => Colour::Red,
            CallStatus::Denied | CallStatus::Unknown => Colour::Yellow,
        };
        self.palette.colour(status_symbol(status), colour)
    }
}

/// Whether this fault ends the agent's part without an answer.
fn ends_frame(fault: TurnFault) -> bool {
    matches!(
        fault,
        TurnFault::ModelFailed
            | TurnFault::ModelCallLimit
            | TurnFault::TokenLimit
            | TurnFault::CostLimit
    )
}

/// Formats the time between two events. Every duration of a finished step comes from the log, so that they agree.
fn time_between(start: Timestamp, end: Timestamp) -> String {
    short_time(Duration::from_millis(end.0.saturating_sub(start.0)))
}

/// Formats a duration: `33 ms`, `4.2 s`, `2 min 05 s`.
pub fn short_time(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

/// Formats a number: `950`, `3.1k`, `2.4M`.
pub fn short_number(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..1_000_000 => format!("{:.1}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}
