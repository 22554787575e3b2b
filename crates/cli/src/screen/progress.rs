//! The progress of a turn: delegations, tool calls and corrections, one line each.

use super::one_line;
use lango::app::attach::attachment_line;
use lango_core::{AnswerSource, ApprovalAnswer, CallId, CallStatus, Event, EventBody, Timestamp};
use serde_json::Value;
use std::collections::HashMap;

#[derive(Default)]
pub struct Progress {
    running: HashMap<CallId, (String, Timestamp)>,
}

impl Progress {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the lines for one event. Most messages have none, because the answer is shown separately.
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
                // A call that never ran has no duration.
                let ran = self.running.remove(call).map(|(shown, started)| {
                    let time = event.time.0.saturating_sub(started.0);
                    format!("{shown}  {time} ms  ")
                });
                let ran = ran.unwrap_or_default();
                Some(format!("  {who} {} {ran}{first}", status_symbol(*status)))
            }
            EventBody::RemoteReturned { status, .. } => {
                Some(format!("  {who} {} (remote)", status_symbol(*status)))
            }
            EventBody::TurnCorrected { detail, .. } => {
                Some(format!("  ! {}", one_line(detail, 100)))
            }
            EventBody::ApprovalAnswered { answer, by, .. } => answer_line(answer, by),
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

/// Describes how a request was answered, if that is worth a line.
pub(super) fn answer_line(answer: &ApprovalAnswer, by: &AnswerSource) -> Option<String> {
    match by {
        AnswerSource::Grant { grant } => Some(format!("  allowed by grant {grant}")),
        AnswerSource::Person => Some(format!("  answered: {}", answer.name())),
        AnswerSource::Unattended | AnswerSource::TurnEnded | AnswerSource::Expired => None,
    }
}

/// Returns the first informative line of an output. It skips the mark for untrusted data, which is meant for models
/// and the same for every call.
pub(super) fn first_line(output: &str) -> &str {
    let mut lines = output.lines();
    let first = lines.next().unwrap_or_default();
    if first.starts_with("[untrusted: ") {
        lines.next().unwrap_or(first)
    } else {
        first
    }
}

/// Returns the symbol for the status of a call.
pub(super) fn status_symbol(status: CallStatus) -> &'static str {
    match status {
        CallStatus::Ok => "✓",
        CallStatus::Error => "✗",
        CallStatus::Denied => "⊘",
        CallStatus::Unknown => "?",
    }
}

/// Formats arguments as `path=. lines=3`, which reads better than JSON.
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
    fn the_mark_for_untrusted_data_is_skipped_unless_it_is_the_only_line() {
        let marked = "[untrusted: MCP server s, tool t] Data.\n\u{7}the result\nmore\n[end]";
        assert_eq!(first_line(marked), "\u{7}the result");
        assert_eq!(first_line("[untrusted: x]"), "[untrusted: x]");
        assert_eq!(first_line("plain\nmore"), "plain");
        assert_eq!(first_line(""), "");
    }
}
