//! What is running now, for the live part of the screen.

use super::agent_frames::AgentFrame;
use super::{Activity, BYTES_PER_TOKEN, RunningCall, SLOW_AGAIN, short_number, short_time};
use crate::screen::tool_call::call_text;
use crate::screen::{count, one_line};
use crate::terminal::{fit, width};
use lango_core::AgentName;
use std::time::Instant;

/// What the agent does gets at least so many columns before the tokens and the time do.
const MIN_WORK_COLUMNS: usize = 24;

impl Activity {
    /// Returns the rows that show what is running: one per delegation with the output of its command, and a last row
    /// with the spinner, the agent, what it does, the time and the tokens so far.
    pub fn rows(&self, spinner: &str, hint: &str, columns: usize) -> Vec<String> {
        let delegated: Vec<&AgentFrame> = self.frames.delegated().collect();
        if delegated.len() > 1 {
            return self.tree_rows(&delegated, spinner, hint, columns);
        }
        let root = self.frames.iter().next();
        let Some(frame) = delegated.first().copied().or(root) else {
            return vec![self.status_row(spinner, "starting", hint, columns)];
        };
        let mut rows = self.output_rows(frame, "  ");
        let agent = self.palette.agent(&frame.agent);
        let work = format!("{agent}  {}", self.work_of(frame));
        rows.push(self.status_row(spinner, &work, hint, columns));
        rows
    }

    /// Returns the rows of delegations that run at the same time.
    fn tree_rows(
        &self,
        delegated: &[&AgentFrame],
        spinner: &str,
        hint: &str,
        columns: usize,
    ) -> Vec<String> {
        let mut rows = Vec::new();
        for (position, frame) in delegated.iter().enumerate() {
            let is_last = position + 1 == delegated.len();
            let (branch, below) = if is_last {
                ("└─", "  ")
            } else {
                ("├─", "│ ")
            };
            let mark = if frame.waiting > 0 { "?" } else { spinner };
            let (agent, work) = (self.frame_label(frame), self.work_of(frame));
            rows.push(format!("{branch} {mark} {agent}  {work}"));
            rows.extend(self.output_rows(frame, below));
        }
        let working = delegated.iter().filter(|frame| frame.waiting == 0).count();
        rows.push(self.agents_row(spinner, working, hint, columns));
        rows
    }

    /// Returns a line for each slow step that is due for one, for a plain screen.
    pub fn slow_lines(&mut self) -> Vec<String> {
        let now = Instant::now();
        let mut lines = Vec::new();
        for call in self.calls.values_mut().filter(|it| it.next_notice <= now) {
            call.next_notice = now + SLOW_AGAIN;
            let mut frames = self.frames.iter();
            let frame = frames.find(|frame| frame.id == call.frame);
            let agent = frame.map_or("", |frame| frame.agent.as_str());
            let text = call_text(call.tool.as_str(), &call.arguments);
            let time = short_time(call.started.elapsed());
            lines.push(format!("  {agent} … {text}  running for {time}"));
        }
        for frame in self.frames.iter_mut() {
            let Some(call) = &mut frame.model else {
                continue;
            };
            // The text of the answer appears while it is written.
            if call.next_notice <= now && !(frame.is_answer && call.bytes > 0) {
                call.next_notice = now + SLOW_AGAIN;
                let (agent, time) = (&frame.agent, short_time(call.started.elapsed()));
                lines.push(format!("  {agent} … {}  running for {time}", call.model));
            }
        }
        lines
    }

    /// Returns the number of questions that wait for the user.
    pub fn waiting(&self) -> usize {
        self.frames.iter().map(|frame| frame.waiting).sum()
    }

    /// Returns the row about the agents that work while a question waits, if there are any.
    pub fn others_row(&self, spinner: &str, columns: usize) -> Option<String> {
        let is_working = |frame: &&AgentFrame| {
            let mut calls = self.calls.values();
            frame.waiting == 0 || calls.any(|call| call.frame == frame.id)
        };
        let working = self.frames.delegated().filter(is_working).count();
        (working > 0).then(|| self.agents_row(spinner, working, "shown after your answer", columns))
    }

    fn agents_row(&self, spinner: &str, working: usize, hint: &str, columns: usize) -> String {
        let agents = count(working as u64, "agent");
        self.status_row(spinner, &format!("{agents} at work"), hint, columns)
    }

    /// Returns the agent that acts now, for the title of the window.
    pub fn acting_agent(&self) -> Option<&AgentName> {
        self.frames.iter().last().map(|frame| &frame.agent)
    }

    /// Returns the last row. In a narrow window the tokens are left out first, then the time, then what the agent does is
    /// shortened, so that the hint stays visible.
    fn status_row(&self, spinner: &str, work: &str, hint: &str, columns: usize) -> String {
        let running = self.frames.iter().filter_map(|frame| frame.model.as_ref());
        let running: usize = running.map(|call| call.bytes / BYTES_PER_TOKEN).sum();
        let tokens = self.reported_tokens + running as u64;
        let time = format!(" · turn {}", short_time(self.elapsed()));
        let tokens = match tokens {
            0 => String::new(),
            tokens => format!(" · {} tokens", short_number(tokens)),
        };
        let hint = format!(" · {hint}");
        let room_beside = |rest: &str| columns.saturating_sub(rest.chars().count() + 2);
        let rests = [
            format!("{time}{tokens}{hint}"),
            format!("{time}{hint}"),
            hint,
        ];
        let is_enough = |rest: &&String| room_beside(rest) >= width(work).min(MIN_WORK_COLUMNS);
        let rest = rests.iter().find(is_enough).unwrap_or(&rests[2]);
        let work = fit(work, room_beside(rest).max(10));
        format!("{spinner} {work}{}", self.palette.dim(rest))
    }

    /// Describes what an agent does now: its running call, or its model.
    fn work_of(&self, frame: &AgentFrame) -> String {
        let mut calls: Vec<&RunningCall> = self
            .calls
            .values()
            .filter(|call| call.frame == frame.id)
            .collect();
        calls.sort_by_key(|call| call.started);
        if let Some(call) = calls.first() {
            let more = match calls.len() - 1 {
                0 => String::new(),
                more => format!(" and {}", count(more as u64, "more call")),
            };
            let text = call_text(call.tool.as_str(), &call.arguments);
            let time = short_time(call.started.elapsed());
            return format!("{text}{more}  {}", self.palette.dim(&time));
        }
        match &frame.model {
            Some(call) => {
                let verb = if call.bytes > 0 {
                    "writing"
                } else {
                    "thinking"
                };
                let time = short_time(call.started.elapsed());
                format!(
                    "{verb}  {}",
                    self.palette.dim(&format!("{} {time}", call.model))
                )
            }
            None if frame.waiting > 0 => "waits for your answer".to_owned(),
            None if frame.task.is_empty() => "working".to_owned(),
            None => one_line(&frame.task, 60),
        }
    }

    /// Returns the last lines that the running command of an agent has printed.
    fn output_rows(&self, frame: &AgentFrame, indent: &str) -> Vec<String> {
        let mut calls = self.calls.values().filter(|call| call.frame == frame.id);
        let Some(call) = calls.find(|call| !call.output.is_empty()) else {
            return Vec::new();
        };
        let lines = call.output.lines();
        lines
            .map(|line| self.palette.dim(&format!("{indent}  {line}")))
            .collect()
    }
}
