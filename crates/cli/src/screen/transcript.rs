//! A stored session as text: every message under its author, with delegations and tool calls in between.

use super::tool_line::{brief_arguments, first_line, status_symbol};
use super::{one_line, subject_line};
use lango::app::attach::attachment_line;
use lango_core::text::sanitize;
use lango_core::{AnswerSource, Event, EventBody, Outcome};

#[derive(Default)]
pub struct Transcript {
    has_started: bool,
}

impl Transcript {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the lines for one event.
    pub fn lines(&mut self, event: &Event) -> Vec<String> {
        let mut lines = self.event_lines(event);
        let attachments = event.body.attachments().iter();
        lines.extend(attachments.map(|file| format!("  {}", attachment_line(file))));
        lines
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
                tool, arguments, ..
            } => {
                vec![format!(
                    "{who} calls {tool} {}",
                    one_line(&brief_arguments(arguments), 80)
                )]
            }
            EventBody::ToolReturned { status, output, .. } => {
                let first = one_line(first_line(output), 100);
                vec![format!("{who} {} {first}", status_symbol(*status))]
            }
            EventBody::ApprovalRequested(request) => {
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
                let by = match by {
                    AnswerSource::Person => "",
                    AnswerSource::Grant { .. } => " (by an earlier grant)",
                    AnswerSource::Unattended => " (no user could be asked)",
                    AnswerSource::TurnEnded => " (the turn ended)",
                    AnswerSource::Expired => " (no answer in time)",
                };
                vec![format!("{who} answers {request}: {}{by}", answer.name())]
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
