//! A stored session as text: every message under its author, with delegations and tool calls in between.

use super::tool_line::{REPORTED_SYMBOL, brief_arguments, first_line, has_failed, status_symbol};
use super::{one_line, subject_line};
use lango::app::attach::attachment_line;
use lango_core::text::sanitize;
use lango_core::{
    AnswerSource, ApprovalAnswer, ApprovalId, ApprovalQuestion, ApprovalRequest, CallId,
    CallStatus, Event, EventBody, Outcome, ToolName,
};
use std::collections::{HashMap, HashSet};

/// The model of a turn that runs a command which the user typed.
pub const TYPED_COMMAND_MODEL: &str = "user/command";

#[derive(Default)]
pub struct Transcript {
    has_started: bool,
    /// Whether the turn runs a command that the user typed.
    is_typed: bool,
    /// The requests that were never shown, because the user typed the command.
    typed: HashSet<ApprovalId>,
    /// The calls of the other requests, until there is an answer.
    asked: HashMap<ApprovalId, CallId>,
    /// The calls that the user reported on, until they return.
    reported: HashSet<CallId>,
    /// The tools of running calls.
    running: HashMap<CallId, ToolName>,
}

impl Transcript {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the lines for one event.
    pub fn lines(&mut self, event: &Event) -> Vec<String> {
        self.note(event);
        let mut lines = self.event_lines(event);
        let attachments = event.body.attachments().iter();
        lines.extend(attachments.map(|file| format!("  {}", attachment_line(file))));
        lines
    }

    /// Notes whose turn it is. Must see every event, also one whose text is shown otherwise.
    pub(super) fn note(&mut self, event: &Event) {
        match &event.body {
            EventBody::UserMessage { .. } => self.is_typed = false,
            EventBody::AgentMessage { model, .. } => {
                self.is_typed |= model.as_deref() == Some(TYPED_COMMAND_MODEL);
            }
            _ => {}
        }
    }

    /// Returns the symbol for the result of a call, as the screen of a turn shows it.
    fn symbol(&mut self, call: &CallId, status: CallStatus, output: &str) -> &'static str {
        let tool = self.running.remove(call);
        if self.reported.remove(call) {
            return REPORTED_SYMBOL;
        }
        match tool {
            Some(tool) if has_failed(tool.as_str(), status, output) && status == CallStatus::Ok => {
                status_symbol(CallStatus::Error)
            }
            _ => status_symbol(status),
        }
    }

    fn event_lines(&mut self, event: &Event) -> Vec<String> {
        let who = &event.author;
        match &event.body {
            EventBody::UserMessage { text, .. } => {
                let mut lines = if self.has_started {
                    vec![String::new()]
                } else {
                    Vec::new()
                };
                self.has_started = true;
                lines.extend(message(event, text));
                lines
            }
            EventBody::AgentMessage { text, .. } if !text.trim().is_empty() => message(event, text),
            EventBody::AgentMessage { .. }
            | EventBody::RemoteCalled { .. }
            | EventBody::RemoteAccepted { .. } => Vec::new(),
            EventBody::AgentDelegated { agent, task, .. } => {
                vec![format!("{who} → {agent}: {}", one_line(task, 100))]
            }
            EventBody::AgentRejected { reason } => {
                vec![format!("{who} declined: {}", one_line(reason, 100))]
            }
            EventBody::ToolCalled {
                call,
                tool,
                arguments,
                ..
            } => {
                self.running.insert(call.clone(), tool.clone());
                vec![format!(
                    "{who} calls {tool} {}",
                    one_line(&brief_arguments(arguments), 80)
                )]
            }
            EventBody::ToolReturned {
                call,
                status,
                output,
                ..
            } => {
                let first = one_line(first_line(output), 100);
                let symbol = self.symbol(call, *status, output);
                vec![format!("{who} {symbol} {first}")]
            }
            EventBody::ApprovalRequested(request) if self.is_typed && is_permitted(request) => {
                self.typed.insert(request.id.clone());
                Vec::new()
            }
            EventBody::ApprovalRequested(request) => {
                self.asked.insert(request.id.clone(), request.call.clone());
                vec![format!(
                    "needs approval: {} {}",
                    request.id,
                    subject_line(request)
                )]
            }
            EventBody::ApprovalAnswered {
                request,
                answer,
                by,
            } => {
                let call = self.asked.remove(request);
                if self.typed.remove(request) && *by == AnswerSource::Person {
                    return Vec::new();
                }
                let report = match answer {
                    ApprovalAnswer::Happened { text } => {
                        self.reported.extend(call);
                        format!(": {}", one_line(text, 100))
                    }
                    _ => String::new(),
                };
                let by = match by {
                    AnswerSource::Person => "",
                    AnswerSource::Grant { .. } => " (by an earlier grant)",
                    AnswerSource::Unattended => " (no user could be asked)",
                    AnswerSource::TurnEnded => " (the turn ended)",
                    AnswerSource::Expired => " (no answer in time)",
                };
                vec![format!(
                    "{who} answers {request}: {}{report}{by}",
                    answer.name()
                )]
            }
            EventBody::RemoteReturned { output, .. } => message(event, output),
            EventBody::TurnCorrected { detail, .. } => vec![format!("! {}", one_line(detail, 120))],
            EventBody::TurnFinished { outcome, .. } => match outcome {
                Outcome::Answered { limit: None } => Vec::new(),
                Outcome::Answered { limit: Some(limit) } => {
                    vec![format!("(cut short by a limit: {})", limit.key())]
                }
                other => vec![format!("({})", other.name())],
            },
            EventBody::TurnUndone {
                undone, restored, ..
            } => {
                vec![format!(
                    "{who} undid turn {undone}: {}",
                    one_line(&restored.join(", "), 100)
                )]
            }
        }
    }
}

/// Whether a command that the user typed answers this request.
fn is_permitted(request: &ApprovalRequest) -> bool {
    request.question == ApprovalQuestion::Permission
        && request.inspection.user_only.is_none()
        && request.inspection.guarded.is_none()
}

fn message(event: &Event, text: &str) -> Vec<String> {
    let safe = sanitize(text);
    let mut lines = vec![format!("{}:", event.author)];
    lines.extend(
        safe.trim_end()
            .lines()
            .map(|line| format!("  {line}").trim_end().to_owned()),
    );
    lines
}
