//! What is said to callers: a message as a question, the end of a turn as reports.

use a2a::{Message, Part, PartContent};
use lango_a2a::server::{Piece, Report, Words};
use lango_core::{Asks, Attachment, Outcome, Waiting};
use lango_engine::TurnReport;
use serde_json::{Value, json};

/// The artifact that holds the answer.
pub(crate) const ANSWER: &str = "answer";

/// What a message says, as one text. Its files are no part of it.
pub(crate) fn question(message: &Message) -> String {
    let parts = message
        .parts
        .iter()
        .filter(|part| reference(part).is_none());
    let said = parts.filter_map(|part| match &part.content {
        PartContent::Text(text) => Some(text.clone()),
        PartContent::Data(data) => Some(data.to_string()),
        PartContent::Raw(_) | PartContent::Url(_) => None,
    });
    said.collect::<Vec<_>>().join("\n\n")
}

/// What a part of a stored message refers to, in its metadata.
const REFERENCE: &str = "lango/attachment";

/// The stored files of a message.
pub(crate) fn attachments(message: &Message) -> Vec<Attachment> {
    let references = message.parts.iter().filter_map(reference);
    let attachments = references.map(|value| serde_json::from_value(value.clone()));
    attachments.filter_map(Result::ok).collect()
}

fn reference(part: &Part) -> Option<&Value> {
    part.metadata.as_ref()?.get(REFERENCE)
}

/// Removes what a client wrote in the place of a reference.
pub(crate) fn remove_references(message: &mut Message) {
    for part in &mut message.parts {
        if let Some(metadata) = &mut part.metadata {
            metadata.remove(REFERENCE);
        }
    }
}

/// The part that stands for a stored file.
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

/// What became of a task whose turn ended. `streamed` is what was already given of the answer.
pub(crate) fn ending(report: &TurnReport, streamed: &str) -> Vec<Report> {
    let said = report.answer.as_deref().unwrap_or_default();
    match &report.outcome {
        Outcome::Answered { limit } => {
            let piece = match said.strip_prefix(streamed) {
                Some("") if !streamed.is_empty() => None,
                Some(rest) if !streamed.is_empty() => Some(Piece::more(ANSWER, rest).last()),
                _ => Some(Piece::whole(ANSWER, vec![Part::text(said)]).named("answer")),
            };
            let mut words = Words::none();
            if let Some(author) = &report.author {
                words = words.with("author", json!(author.as_str()));
            }
            if let Some(limit) = limit {
                words = words.with("limit", json!(limit.key()));
            }
            let piece = piece.map(Report::Artifact);
            piece.into_iter().chain([Report::Completed(words)]).collect()
        }
        Outcome::Limited { .. } | Outcome::Failed { .. } => vec![Report::Failed(said.into())],
        Outcome::Cancelled => vec![Report::Cancelled(Words::none())],
        Outcome::Interrupted => vec![Report::Failed(
            "the process that worked on it ended in the middle; what was under way may have happened, so look before you send it again".into(),
        )],
    }
}

/// What a caller is told while a person has to allow something.
pub(crate) fn waiting(waiting: &[Waiting]) -> Words {
    let each = waiting.iter().map(|waiting| {
        let request = &waiting.request;
        let (agent, tool, id) = (&request.agent, &request.tool, &request.id);
        match request.asks {
            Asks::Permission => format!(
                "{agent} wants to use {tool}; it waits for somebody to allow it with `lango approvals answer {id} yes`"
            ),
            Asks::Fate => format!(
                "{agent} used {tool} when its process ended, and nobody knows what became of that; it waits for somebody to say with `lango approvals answer {id} retry|skip|happened`"
            ),
        }
    });
    let requests = waiting.iter().map(|waiting| waiting.request.id.as_str());
    let requests: Vec<&str> = requests.collect();
    Words::from(each.collect::<Vec<_>>().join("\n")).with("approvals", json!(requests))
}
