//! A stored session for reading: every message under its author, delegations and tools between them.

use super::progress::{brief_arguments, first_line, mark};
use super::{one_line, subject_line};
use crate::attach::attachment_line;
use crate::markdown::sanitize;
use lango_core::{AnsweredBy, Event, EventBody, Outcome};

/// Turns stored events into lines.
#[derive(Default)]
pub struct Transcript {
    began: bool,
}

impl Transcript {
    /// Nothing was read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The lines for one event.
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
                let mut lines = if self.began {
                    vec![String::new()]
                } else {
                    Vec::new()
                };
                self.began = true;
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
                vec![format!("{who} {} {first}", mark(*status))]
            }
            EventBody::ApprovalRequested(request) => {
                vec![format!("waits: {} {}", request.id, subject_line(request))]
            }
            EventBody::ApprovalAnswered {
                request,
                answer,
                by,
            } => {
                let by = match by {
                    AnsweredBy::Person => "",
                    AnsweredBy::Grant { .. } => " (granted before)",
                    AnsweredBy::Nobody => " (nobody could be asked)",
                    AnsweredBy::TurnEnded => " (the turn ended)",
                    AnsweredBy::Expired => " (nobody answered in time)",
                };
                vec![format!("{who} answers {request}: {}{by}", answer.word())]
            }
            EventBody::RemoteReturned { output, .. } => message(event, output),
            EventBody::TurnCorrected { detail, .. } => vec![format!("! {}", one_line(detail, 120))],
            EventBody::TurnFinished { outcome, .. } => match outcome {
                Outcome::Answered { limit: None } => Vec::new(),
                Outcome::Answered { limit: Some(limit) } => {
                    vec![format!("(cut short by a limit: {})", limit.key())]
                }
                other => vec![format!("({})", other.word())],
            },
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
