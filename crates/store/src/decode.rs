//! Decodes events and exchanges from columns, and builds the errors for values that cannot be stored or read.
//!
//! For a session's history only the texts of the events are parsed; the rest of their JSON is skipped.

use crate::backend::{BackendError, Result, Row};
use lango_core::{
    AgentName, Attachment, CallId, Event, EventBody, Exchange, ExchangeAnswer, FrameId,
    MessageOrigin, SessionId, StoreError, Text, Trust, UndoneChanges, UserId,
};
use serde::Deserialize;
use std::borrow::Cow;
use std::fmt::Display;

pub(crate) fn failed(detail: impl Into<String>) -> StoreError {
    let detail = detail.into();
    StoreError::Failed { detail }
}

pub(crate) fn not_found(session: &SessionId) -> StoreError {
    let id = session.clone();
    StoreError::NotFound { id }
}

/// Returns the error for an event that is no longer what was written.
pub(crate) fn damaged(session: &SessionId, seq: u64, detail: impl ToString) -> StoreError {
    StoreError::Damaged {
        id: session.clone(),
        seq,
        detail: detail.to_string(),
    }
}

/// Fails if the user's name cannot be stored. The error names `what`, the thing that belongs to the user.
pub(crate) fn check_user(user: &UserId, what: impl Display) -> Result<(), StoreError> {
    if user.is_valid() {
        return Ok(());
    }
    Err(failed(format!(
        "{what} belongs to a user whose name cannot be stored: it is empty, too long, or has control characters"
    )))
}

/// Returns the author of a stored event. Old events have an empty author: their user messages are attributed to the
/// user, and all others to the root agent.
pub(crate) fn author(stored: &str, is_user_message: bool, root_agent: &AgentName) -> AgentName {
    match stored {
        "" if is_user_message => AgentName::user(),
        "" => root_agent.clone(),
        name => AgentName::from(name),
    }
}

/// Reads an event from the columns seq, turn, frame, author, time and body.
pub(crate) fn event(row: Row<'_>, session: &SessionId, root_agent: &AgentName) -> Result<Event> {
    let seq = row.get(0)?;
    let read = || {
        let body: Cow<'_, str> = row.get(5)?;
        let body = serde_json::from_str(&body).map_err(|error| damaged(session, seq, error))?;
        let is_user_message = matches!(body, EventBody::UserMessage { .. });
        let name: Cow<'_, str> = row.get(3)?;
        Ok(Event {
            seq,
            session: session.clone(),
            turn: row.get(1)?,
            frame: row.get(2)?,
            author: author(&name, is_user_message, root_agent),
            time: row.get(4)?,
            body,
        })
    };
    read().map_err(|failure: BackendError| failure.in_event(session, seq))
}

#[derive(Deserialize, Default)]
struct Question {
    text: Text,
    origin: Option<MessageOrigin>,
    #[serde(default)]
    attachments: Vec<Attachment>,
}

/// An agent's message or a remote agent's result.
#[derive(Deserialize)]
struct StoredAnswer<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    text: Option<Text>,
    output: Option<Text>,
    model: Option<Text>,
    #[serde(default)]
    trust: Trust,
}

#[derive(Deserialize)]
struct Delegation {
    call: CallId,
    task: Text,
}

/// Reads the exchange of a turn. The columns from `column` on are: the turn's id, its first sequence number, whether it is
/// finished, the question's JSON, the answer's sequence number, author, frame and JSON, and the delegation's JSON.
pub(crate) fn exchange_in(
    row: Row<'_>,
    column: usize,
    session: &SessionId,
    root_agent: &AgentName,
) -> Result<Exchange> {
    let (seq, answer_seq): (u64, Option<u64>) = (row.get(column + 1)?, row.get(column + 4)?);
    let read = || {
        let question: Question = match row.get::<Option<Cow<'_, str>>>(column + 3)? {
            Some(json) => {
                serde_json::from_str(&json).map_err(|error| damaged(session, seq, error))?
            }
            None => Question::default(),
        };
        Ok(Exchange {
            turn: row.get(column)?,
            question: question.text,
            origin: question.origin,
            attachments: question.attachments,
            answer: None,
            undone: None,
        })
    };
    let mut exchange = read().map_err(|failure: BackendError| failure.in_event(session, seq))?;
    if let Some(seq) = answer_seq {
        let answer = answer(row, column + 5, root_agent, |error| {
            damaged(session, seq, error)
        });
        exchange.answer = answer.map_err(|failure| failure.in_event(session, seq))?;
    }
    Ok(exchange)
}

/// Reads what was undone of a turn from the columns `seq` and JSON of the event that says so. Returns `None` if nothing was.
pub(crate) fn undone_in(
    row: Row<'_>,
    column: usize,
    session: &SessionId,
) -> Result<Option<UndoneChanges>> {
    let seq: Option<u64> = row.get(column)?;
    let Some(seq) = seq else {
        return Ok(None);
    };
    let read = || {
        let body: Option<Cow<'_, str>> = row.get(column + 1)?;
        let undone = body.map(|body| serde_json::from_str(&body));
        Ok(undone
            .transpose()
            .map_err(|error| damaged(session, seq, error))?)
    };
    read().map_err(|failure: BackendError| failure.in_event(session, seq))
}

/// Reads an answer from the columns author, frame, body, and the delegation's JSON. Returns `None` if there is no answer.
fn answer(
    row: Row<'_>,
    column: usize,
    root_agent: &AgentName,
    damaged: impl Fn(serde_json::Error) -> StoreError,
) -> Result<Option<ExchangeAnswer>> {
    let text = |offset| row.get::<Option<Cow<'_, str>>>(column + offset);
    let (Some(name), Some(frame), Some(body)) = (text(0)?, text(1)?, text(2)?) else {
        return Ok(None);
    };
    let message: StoredAnswer<'_> = serde_json::from_str(&body).map_err(&damaged)?;
    let is_remote = message.kind == "remote.returned";
    let answer = match message.kind {
        "agent.message" => message.text,
        "remote.returned" => message.output,
        _ => None,
    };
    let Some(answer) = answer else {
        return Ok(None);
    };
    let delegation = text(3)?.map(|json| serde_json::from_str::<Delegation>(&json));
    let delegation = delegation.transpose().map_err(damaged)?;
    let frame = FrameId::from(&*frame);
    let task = delegation.filter(|delegation| FrameId::from(&delegation.call) == frame);
    Ok(Some(ExchangeAnswer {
        author: author(&name, false, root_agent),
        text: answer,
        task: task.map(|delegation| delegation.task),
        is_remote,
        is_notice: !is_remote && message.model.is_none(),
        trust: if is_remote {
            Trust::Untrusted
        } else {
            message.trust
        },
    }))
}
