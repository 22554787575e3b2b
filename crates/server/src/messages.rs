//! Converts between the protocol and turns: messages of callers into input, and the end of a turn into reports.

use a2a::{Message, Part, PartContent};
use lango_a2a::server::{ArtifactChunk, Report, StatusMessage};
use lango_core::{ApprovalQuestion, Attachment, Outcome, PendingApproval};
use lango_engine::TurnReport;
use serde_json::{Value, json};

/// The id of the artifact that holds the answer.
pub(crate) const ANSWER: &str = "answer";

/// Returns the text of a message.
pub(crate) fn message_text(message: &Message) -> String {
    text_of(message.parts.iter())
}

/// Returns the text of a message whose files are stored, without the references to the files.
pub(crate) fn stored_message_text(message: &Message) -> String {
    let parts = message.parts.iter();
    text_of(parts.filter(|part| reference(part).is_none()))
}

fn text_of<'a>(parts: impl Iterator<Item = &'a Part>) -> String {
    let texts = parts.filter_map(|part| match &part.content {
        PartContent::Text(text) => Some(match &part.filename {
            Some(name) => format!("[file: {}]\n{text}", display_name(name)),
            None => text.clone(),
        }),
        PartContent::Data(data) => Some(data.to_string()),
        PartContent::Raw(_) | PartContent::Url(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// Returns the last segment of a file's name, in one line and at most 200 characters long.
fn display_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = last.chars().filter(|char| !char.is_control());
    plain.take(200).collect()
}

/// The metadata key of a reference to a stored file.
const REFERENCE: &str = "lango/attachment";

/// Returns the stored files of a message.
pub(crate) fn attachments(message: &Message) -> Vec<Attachment> {
    let references = message.parts.iter().filter_map(reference);
    let attachments = references.map(|value| serde_json::from_value(value.clone()));
    attachments.filter_map(Result::ok).collect()
}

fn reference(part: &Part) -> Option<&Value> {
    part.metadata.as_ref()?.get(REFERENCE)
}

/// Removes references from a client's message, because only the server may create them.
pub(crate) fn remove_references(message: &mut Message) {
    for part in &mut message.parts {
        if let Some(metadata) = &mut part.metadata {
            metadata.remove(REFERENCE);
        }
    }
}

/// Creates a part that refers to a stored file.
pub(crate) fn reference_part(attachment: &Attachment) -> Part {
    let Attachment {
        name,
        media_type,
        size,
        ..
    } = attachment;
    let mut part = Part::text(format!("[file: {name}, {media_type}, {size} bytes]"));
    part.metadata = Some([(REFERENCE.to_owned(), json!(attachment))].into());
    part
}

/// Builds the report for the end of a turn. It has the whole answer, even if the answer was streamed, because some
/// clients keep only the last update of an artifact.
pub(crate) fn end_report(report: &TurnReport) -> Report {
    let answer = report.answer.as_deref().unwrap_or_default();
    match &report.outcome {
        Outcome::Answered { limit } => {
            let whole = ArtifactChunk::whole(ANSWER, vec![Part::text(answer)]).named("answer");
            let mut status = StatusMessage::empty();
            if let Some(author) = &report.author {
                status = status.with("author", json!(author.as_str()));
            }
            if let Some(limit) = limit {
                status = status.with("limit", json!(limit.key()));
            }
            Report::Answered(whole, status)
        }
        Outcome::Limited { .. } | Outcome::Failed { .. } => Report::Failed(answer.into()),
        Outcome::Cancelled => Report::Cancelled(StatusMessage::empty()),
        Outcome::Interrupted => Report::Failed(
            "the process was interrupted; a call that was running may have taken effect, so check before you send the message again".into(),
        ),
    }
}

/// The metadata key of the list of pending approval ids.
pub(crate) const APPROVALS: &str = "approvals";

/// Builds the status message for a task that waits for approvals.
pub(crate) fn approval_status(pending: &[PendingApproval]) -> StatusMessage {
    let each = pending.iter().map(|approval| {
        let request = &approval.request;
        let (agent, tool, id) = (&request.agent, &request.tool, &request.id);
        match request.question {
            ApprovalQuestion::Permission => format!(
                "{agent} wants to use {tool}; approve it with `lango approvals answer {id} yes`"
            ),
            ApprovalQuestion::UnknownOutcome => format!(
                "the outcome of {tool}, called by {agent} before its process ended, is unknown; decide with `lango approvals answer {id} retry|skip|happened`"
            ),
            ApprovalQuestion::ContinueTurn => format!(
                "the server's database was restored from a backup that was made while the task ran, so it is unknown what the task did afterwards; decide with `lango approvals answer {id} retry|skip`"
            ),
        }
    });
    let requests = pending.iter().map(|approval| approval.request.id.as_str());
    let requests: Vec<&str> = requests.collect();
    StatusMessage::from(each.collect::<Vec<_>>().join("\n")).with(APPROVALS, json!(requests))
}
