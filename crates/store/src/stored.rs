//! From what is stored to values, whatever database it was read from.
//!
//! Of the events of a look back only the words are taken out of the JSON; the rest is skipped.

use crate::engine::{Failure, Row};
use lango_core::{
    AgentName, Attachment, CallId, Event, EventBody, Exchange, ExchangeAnswer, FrameId,
    MessageOrigin, SessionId, Source, StoreError, Text, Timestamp, Trust, TurnId,
};
use serde::Deserialize;
use std::borrow::Cow;

/// The author of a stored message: the one place that knows what an empty one means.
///
/// Rows from before authors were stored have none. What the person said is the user's, all else the root agent's. A
/// stored author is taken as it is, in the tree or not.
pub(crate) fn author(stored: &str, speaker: Speaker, root_agent: &AgentName) -> AgentName {
    match (stored, speaker) {
        ("", Speaker::User) => AgentName::user(),
        ("", Speaker::Agent) => root_agent.clone(),
        (name, _) => AgentName::from(name),
    }
}

/// Which side a message is from, whoever its author is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    User,
    Agent,
}

/// A source: its name in one column, its trust in the next.
pub(crate) fn source(row: Row<'_>, column: usize) -> Result<Source, Failure> {
    Ok(Source {
        name: row.get(column)?,
        trust: trust(row, column + 1)?,
    })
}

/// Trust that is stored as 0 or 1.
pub(crate) fn trust(row: Row<'_>, column: usize) -> Result<Trust, Failure> {
    Ok(if row.get(column)? {
        Trust::Trusted
    } else {
        Trust::Untrusted
    })
}

/// A row whose JSON is not what was once written.
pub(crate) fn damaged(session: &SessionId, seq: u64, error: &serde_json::Error) -> StoreError {
    StoreError::Damaged {
        id: session.clone(),
        seq,
        detail: error.to_string(),
    }
}

/// The columns of an event.
pub(crate) struct EventColumns<'a> {
    pub seq: u64,
    pub turn: &'a str,
    pub frame: &'a str,
    pub author: &'a str,
    pub time: u64,
    pub body: &'a str,
}

/// An event of a session.
pub(crate) fn event(
    columns: &EventColumns<'_>,
    session: &SessionId,
    root_agent: &AgentName,
) -> Result<Event, StoreError> {
    let body: EventBody = serde_json::from_str(columns.body)
        .map_err(|error| damaged(session, columns.seq, &error))?;
    let speaker = if matches!(body, EventBody::UserMessage { .. }) {
        Speaker::User
    } else {
        Speaker::Agent
    };
    Ok(Event {
        seq: columns.seq,
        session: session.clone(),
        turn: TurnId::from(columns.turn),
        frame: FrameId::from(columns.frame),
        author: author(columns.author, speaker, root_agent),
        time: Timestamp(columns.time),
        body,
    })
}

/// The columns of a turn with those of its question, its answer and the delegation behind it.
pub(crate) struct ExchangeColumns<'a> {
    pub turn: &'a str,
    pub first_seq: u64,
    /// The JSON of the question.
    pub question: Option<&'a str>,
    pub answer: Option<AnswerColumns<'a>>,
    /// The JSON of the delegation.
    pub delegation: Option<&'a str>,
}

/// The columns of the event that is an answer.
pub(crate) struct AnswerColumns<'a> {
    pub seq: u64,
    pub author: &'a str,
    pub frame: &'a str,
    pub body: &'a str,
}

#[derive(Deserialize, Default)]
struct Question {
    text: Text,
    #[serde(default)]
    origin: Option<MessageOrigin>,
    #[serde(default)]
    attachments: Vec<Attachment>,
}

/// The words of an agent, here or elsewhere.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(default)]
    text: Option<Text>,
    #[serde(default)]
    output: Option<Text>,
    #[serde(default)]
    model: Option<Text>,
    #[serde(default)]
    trust: Trust,
}

#[derive(Deserialize)]
struct Delegation {
    call: CallId,
    task: Text,
}

/// The exchange of a turn: its id, first sequence number, whether it is finished, the JSON of the question, the sequence
/// number, author, frame and JSON of the answer, and the JSON of the delegation, from this column on.
pub(crate) fn exchange_in(
    row: Row<'_>,
    column: usize,
    session: &SessionId,
    root_agent: &AgentName,
) -> Result<Exchange, Failure> {
    let (first_seq, seq): (u64, Option<u64>) = (row.get(column + 1)?, row.get(column + 4)?);
    let text = |offset: usize, seq: u64| {
        let text = row.get::<Option<Cow<'_, str>>>(column + offset);
        text.map_err(|failure| failure.in_event(session, seq))
    };
    let answer_seq = seq.unwrap_or(first_seq);
    let (turn, question, delegation) = (
        text(0, first_seq)?,
        text(3, first_seq)?,
        text(8, first_seq)?,
    );
    let (author, frame, body) = (
        text(5, answer_seq)?,
        text(6, answer_seq)?,
        text(7, answer_seq)?,
    );
    let answer = match (seq, &author, &frame, &body) {
        (Some(seq), Some(author), Some(frame), Some(body)) => Some(AnswerColumns {
            seq,
            author,
            frame,
            body,
        }),
        _ => None,
    };
    let columns = ExchangeColumns {
        turn: turn.as_deref().unwrap_or_default(),
        first_seq,
        question: question.as_deref(),
        answer,
        delegation: delegation.as_deref(),
    };
    Ok(exchange(&columns, session, root_agent)?)
}

/// An earlier turn as a later one sees it.
pub(crate) fn exchange(
    columns: &ExchangeColumns<'_>,
    session: &SessionId,
    root_agent: &AgentName,
) -> Result<Exchange, StoreError> {
    let question = columns.question.map(serde_json::from_str::<Question>);
    let question = question
        .transpose()
        .map_err(|error| damaged(session, columns.first_seq, &error))?;
    let answer = match &columns.answer {
        Some(answer) => answer_of(answer, columns.delegation, session, root_agent)?,
        None => None,
    };
    let question = question.unwrap_or_default();
    Ok(Exchange {
        turn: TurnId::from(columns.turn),
        question: question.text,
        origin: question.origin,
        attachments: question.attachments,
        answer,
    })
}

fn answer_of(
    columns: &AnswerColumns<'_>,
    delegation: Option<&str>,
    session: &SessionId,
    root_agent: &AgentName,
) -> Result<Option<ExchangeAnswer>, StoreError> {
    let is_damaged = |error| damaged(session, columns.seq, &error);
    let message: Answer<'_> = serde_json::from_str(columns.body).map_err(is_damaged)?;
    let is_remote = message.kind == "remote.returned";
    let words = match message.kind {
        "agent.message" => message.text,
        "remote.returned" => message.output,
        _ => None,
    };
    let Some(text) = words else { return Ok(None) };
    let delegation = delegation.map(serde_json::from_str::<Delegation>);
    let delegation = delegation.transpose().map_err(is_damaged)?;
    let frame = FrameId::from(columns.frame);
    let task = delegation.filter(|delegation| FrameId::from(&delegation.call) == frame);
    Ok(Some(ExchangeAnswer {
        author: author(columns.author, Speaker::Agent, root_agent),
        text,
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
