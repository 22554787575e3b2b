//! A turn as it happens: who was asked to do what, which tools ran, and what was put right. One line a fact.

use super::one_line;
use crate::attach::attachment_line;
use lango_core::{Answer, AnsweredBy, CallId, CallStatus, Event, EventBody, Timestamp};
use serde_json::Value;
use std::collections::HashMap;

/// Turns events into lines.
#[derive(Default)]
pub struct Progress {
    running: HashMap<CallId, (String, Timestamp)>,
}

impl Progress {
    /// Nothing has happened yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The lines for one event; most messages have none, the answer is shown by itself.
    pub fn lines(&mut self, event: &Event) -> Vec<String> {
        let who = &event.author;
        let line = match &event.body {
            EventBody::AgentDelegated { agent, task, .. } => {
                Some(format!("● {who} → {agent}  {}", one_line(task, 80)))
            }
            EventBody::AgentRejected { reason } => {
                Some(format!("  {who} declined: {}", one_line(reason, 80)))
            }
            EventBody::ToolCalled {
                call,
                tool,
                arguments,
                ..
            } => {
                let shown = format!("{tool} {}", one_line(&brief_arguments(arguments), 60));
                self.running.insert(call.clone(), (shown, event.time));
                None
            }
            EventBody::ToolReturned {
                call,
                status,
                output,
                ..
            } => {
                let first = one_line(first_line(output), 60);
                // What never ran took no time.
                let ran = self.running.remove(call).map(|(shown, began)| {
                    let time = event.time.0.saturating_sub(began.0);
                    format!("{shown}  {time} ms  ")
                });
                let ran = ran.unwrap_or_default();
                Some(format!("  {who} {} {ran}{first}", mark(*status)))
            }
            EventBody::RemoteReturned { status, .. } => {
                Some(format!("  {who} {} (remote)", mark(*status)))
            }
            EventBody::TurnCorrected { detail, .. } => {
                Some(format!("  ! {}", one_line(detail, 100)))
            }
            EventBody::ApprovalAnswered { answer, by, .. } => answered(answer, by),
            EventBody::UserMessage { .. }
            | EventBody::ApprovalRequested(_)
            | EventBody::AgentMessage { .. }
            | EventBody::RemoteCalled { .. }
            | EventBody::RemoteAccepted { .. }
            | EventBody::TurnFinished { .. } => None,
        };
        let attachments = event.body.attachments().iter();
        let attachments = attachments.map(|file| format!("  {}", attachment_line(file)));
        line.into_iter().chain(attachments).collect()
    }
}

/// How a request was answered, where the person has not just done so themselves.
pub(super) fn answered(answer: &Answer, by: &AnsweredBy) -> Option<String> {
    match by {
        AnsweredBy::Grant { grant } => Some(format!("  allowed before ({grant})")),
        AnsweredBy::Person => Some(format!("  answered: {}", answer.word())),
        AnsweredBy::Nobody | AnsweredBy::TurnEnded | AnsweredBy::Expired => None,
    }
}

/// The first line of an output that says something. The mark of data from outside is for models, and alike for every call.
pub(super) fn first_line(output: &str) -> &str {
    let mut lines = output.lines();
    let first = lines.next().unwrap_or_default();
    match first.starts_with("[untrusted: ") {
        true => lines.next().unwrap_or(first),
        false => first,
    }
}

/// The sign for how a call went.
pub(super) fn mark(status: CallStatus) -> &'static str {
    match status {
        CallStatus::Ok => "✓",
        CallStatus::Error => "✗",
        CallStatus::Denied => "⊘",
        CallStatus::Unknown => "?",
    }
}

/// `path=. lines=3` reads better than JSON.
pub(super) fn brief_arguments(arguments: &Value) -> String {
    let Some(fields) = arguments.as_object() else {
        return arguments.to_string();
    };
    let field = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    };
    fields.iter().map(field).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_of_data_from_outside_is_no_first_line_unless_it_is_all_there_is() {
        let marked = "[untrusted: MCP server s, tool t] Data.\n\u{7}the result\nmore\n[end]";
        assert_eq!(first_line(marked), "\u{7}the result");
        assert_eq!(first_line("[untrusted: x]"), "[untrusted: x]");
        assert_eq!(first_line("plain\nmore"), "plain");
        assert_eq!(first_line(""), "");
    }
}
