//! Translation between messages of callers and turns: a message as input, the end of a turn as reports.

use a2a::{Message, Part, PartContent};
use lango_a2a::server::{ArtifactChunk, Report, StatusMessage};
use lango_core::{Asks, Attachment, Outcome, Waiting};
use lango_engine::TurnReport;
use serde_json::{Value, json};

/// The id of the artifact with the answer.
pub(crate) const ANSWER: &str = "answer";

/// Returns the text of a message.
pub(crate) fn question(message: &Message) -> String {
    text_of(message.parts.iter())
}

/// Returns the text of a message whose files are stored, without the references to them.
pub(crate) fn stored_question(message: &Message) -> String {
    let parts = message.parts.iter();
    text_of(parts.filter(|part| reference(part).is_none()))
}

fn text_of<'a>(parts: impl Iterator<Item = &'a Part>) -> String {
    let texts = parts.filter_map(|part| match &part.content {
        PartContent::Text(text) => Some(match &part.filename {
            Some(name) => format!("[file: {}]\n{text}", shown_name(name)),
            None => text.clone(),
        }),
        PartContent::Data(data) => Some(data.to_string()),
        PartContent::Raw(_) | PartContent::Url(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// Returns the last segment of a file's name, in one line and at most 200 characters long.
fn shown_name(name: &str) -> String {
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

/// Removes references that a client made up.
pub(crate) fn remove_references(message: &mut Message) {
    for part in &mut message.parts {
        if let Some(metadata) = &mut part.metadata {
            metadata.remove(REFERENCE);
        }
    }
}

/// Creates the part that refers to a stored file.
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

/// Returns the report for the end of a turn. The answer is reported whole, also if it was streamed: some clients keep only the
/// last update of an artifact.
pub(crate) fn ending(report: &TurnReport) -> Report {
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

/// Returns what a caller hears while a call waits for approval.
pub(crate) fn waiting(waiting: &[Waiting]) -> StatusMessage {
    let each = waiting.iter().map(|waiting| {
        let request = &waiting.request;
        let (agent, tool, id) = (&request.agent, &request.tool, &request.id);
        match request.asks {
            Asks::Permission => format!(
                "{agent} wants to use {tool}; approve it with `lango approvals answer {id} yes`"
            ),
            Asks::Fate => format!(
                "the outcome of {tool}, called by {agent} before its process ended, is unknown; decide with `lango approvals answer {id} retry|skip|happened`"
            ),
            Asks::Turn => format!(
                "the server's database is a copy that was made while the task ran, and what the task did after that is unknown; decide with `lango approvals answer {id} retry|skip`"
            ),
        }
    });
    let requests = waiting.iter().map(|waiting| waiting.request.id.as_str());
    let requests: Vec<&str> = requests.collect();
    StatusMessage::from(each.collect::<Vec<_>>().join("\n")).with(APPROVALS, json!(requests))
}
