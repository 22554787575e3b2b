//! What a new turn has to know of a session, read by key: the end of the log and the exchanges of the look back.
//!
//! Of an event's JSON only the words are taken out; the rest is skipped.

use super::connection::execute;
use super::failure::Failure;
use super::readers::Reader;
use super::rows::{Speaker, author, damaged, unsigned};
use super::statements::{LOG_END, LOOK_BACK, SESSION};
use lango_core::{
    CallId, Exchange, ExchangeAnswer, FrameId, SessionHead, SessionId, StoreError, Text, TurnId,
    UserId,
};
use rusqlite::{OptionalExtension as _, Row, params};
use serde::Deserialize;

/// The head of a session, all of it as of one moment.
pub(super) fn head(reader: Reader<'_>, session: &SessionId) -> Result<SessionHead, Failure> {
    execute(reader.connection, "BEGIN")?;
    let head = head_of_this_moment(reader, session);
    execute(reader.connection, "COMMIT")?;
    head
}

fn head_of_this_moment(reader: Reader<'_>, session: &SessionId) -> Result<SessionHead, Failure> {
    let connection = reader.connection;
    let (user, turns, is_finished) = connection
        .prepare_cached(SESSION)?
        .query_row([session.as_str()], |row| {
            let user = UserId::new(row.get::<_, Text>(0)?);
            Ok((user, unsigned(row, 1)?, row.get::<_, bool>(2)?))
        })
        .optional()?
        .ok_or_else(|| StoreError::NotFound {
            id: session.clone(),
        })?;
    let last_seq = connection
        .prepare_cached(LOG_END)?
        .query_row([session.as_str()], |row| unsigned(row, 0))
        .optional()?;

    let mut exchanges = Vec::new();
    let mut unfinished = None;
    let start = SessionHead::look_back_start(turns - u64::from(!is_finished));
    let start = i64::try_from(start).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(LOOK_BACK)?;
    let mut rows = statement.query(params![session.as_str(), start])?;
    while let Some(row) = rows.next()? {
        let finished: bool = row.get(2)?;
        unfinished = if finished {
            None
        } else {
            Some(unsigned(row, 1)?)
        };
        if finished {
            exchanges.push(exchange(row, session, reader)?);
        }
    }
    Ok(SessionHead {
        user,
        next_seq: last_seq.unwrap_or(0) + 1,
        turns,
        exchanges,
        unfinished,
    })
}

#[derive(Deserialize)]
struct Question {
    text: Text,
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
}

#[derive(Deserialize)]
struct Delegation {
    call: CallId,
    task: Text,
}

/// The exchange in a row whose columns begin as those of [`LOOK_BACK`] do.
pub(super) fn exchange(
    row: &Row<'_>,
    session: &SessionId,
    reader: Reader<'_>,
) -> Result<Exchange, Failure> {
    let question: Option<Question> = parse(row, 3, session, unsigned(row, 1)?)?;
    Ok(Exchange {
        turn: TurnId::new(row.get::<_, Text>(0)?),
        question: question.map(|question| question.text).unwrap_or_default(),
        answer: answer(row, session, reader)?,
    })
}

fn answer(
    row: &Row<'_>,
    session: &SessionId,
    reader: Reader<'_>,
) -> Result<Option<ExchangeAnswer>, Failure> {
    let Some(seq) = row.get::<_, Option<i64>>(4)?.map(i64::unsigned_abs) else {
        return Ok(None);
    };
    let Some(message) = parse::<Answer<'_>>(row, 7, session, seq)? else {
        return Ok(None);
    };
    let is_remote = message.kind == "remote.returned";
    let words = match message.kind {
        "agent.message" => message.text,
        "remote.returned" => message.output,
        _ => None,
    };
    let Some(text) = words else { return Ok(None) };
    let author = author(&row.get::<_, String>(5)?, Speaker::Agent, reader.root_agent);
    let frame = FrameId::new(row.get::<_, Text>(6)?);
    let delegation = parse::<Delegation>(row, 8, session, seq)?;
    let task = delegation.filter(|delegation| FrameId::from(&delegation.call) == frame);
    Ok(Some(ExchangeAnswer {
        author,
        text,
        task: task.map(|delegation| delegation.task),
        is_remote,
    }))
}

/// The JSON of a joined event, if there is such an event.
fn parse<'a, T: Deserialize<'a>>(
    row: &'a Row<'_>,
    column: usize,
    session: &SessionId,
    seq: u64,
) -> Result<Option<T>, Failure> {
    let body = row
        .get_ref(column)?
        .as_str_or_null()
        .map_err(rusqlite::Error::from)?;
    body.map(serde_json::from_str)
        .transpose()
        .map_err(|error| damaged(session, seq, &error))
}
