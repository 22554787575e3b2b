//! From rows to values: events, the look back, and the list of sessions.

use super::end::End;
use super::failure::Failure;
use super::text::{optional_words, words};
use crate::stored::{self, AnswerColumns, EventColumns, ExchangeColumns};
use lango_core::{
    AgentName, Event, Exchange, SessionHead, SessionId, SessionSummary, Text, Timestamp, TurnId,
    UnfinishedTurn, UserId,
};
use tokio_postgres::Row;

/// An event, in the columns of [`EVENTS`](super::statements::EVENTS).
pub(super) fn event(
    row: &Row,
    session: &SessionId,
    root_agent: &AgentName,
) -> Result<Event, Failure> {
    let columns = EventColumns {
        seq: unsigned(row, 0)?,
        turn: &words(row, 1)?,
        frame: &words(row, 2)?,
        author: &words(row, 3)?,
        time: unsigned(row, 4)?,
        body: &words(row, 5)?,
    };
    Ok(stored::event(&columns, session, root_agent)?)
}

/// The head of a session and the end of its log, in the columns of [`HEAD`](super::statements::HEAD); none if there is no
/// such session.
pub(super) fn head(
    rows: &[Row],
    session: &SessionId,
    root_agent: &AgentName,
) -> Result<Option<(SessionHead, End)>, Failure> {
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let end = End {
        seq: optional(first, 1)?.unwrap_or(0),
        hash: first.try_get::<_, Option<Vec<u8>>>(2)?.unwrap_or_default(),
    };
    let mut shown = Vec::with_capacity(rows.len());
    for row in rows {
        if let Some(ordinal) = optional(row, 4)? {
            shown.push((ordinal, row));
        }
    }
    shown.sort_by_key(|(ordinal, _)| *ordinal);
    let mut exchanges = Vec::with_capacity(shown.len());
    let mut unfinished = None;
    for (_, row) in shown {
        let is_finished = row.try_get::<_, i64>(7)? != 0;
        unfinished = match is_finished {
            true => None,
            false => Some(unsigned(row, 6)?),
        };
        if is_finished {
            exchanges.push(exchange(row, session, root_agent)?);
        }
    }
    let head = SessionHead {
        user: UserId::from(&*words(first, 0)?),
        next_seq: end.seq + 1,
        turns: optional(first, 3)?.unwrap_or(0),
        exchanges,
        unfinished,
    };
    Ok(Some((head, end)))
}

/// The exchange of a turn that has ended, in the columns 5 to 13 of [`HEAD`](super::statements::HEAD).
pub(super) fn exchange(
    row: &Row,
    session: &SessionId,
    root_agent: &AgentName,
) -> Result<Exchange, Failure> {
    let (author, frame) = (optional_words(row, 10)?, optional_words(row, 11)?);
    let (question, body) = (optional_words(row, 8)?, optional_words(row, 12)?);
    let answer = match (optional(row, 9)?, &author, &frame, &body) {
        (Some(seq), Some(author), Some(frame), Some(body)) => Some(AnswerColumns {
            seq,
            author,
            frame,
            body,
        }),
        _ => None,
    };
    let delegation = optional_words(row, 13)?;
    let columns = ExchangeColumns {
        turn: &words(row, 5)?,
        first_seq: unsigned(row, 6)?,
        question: question.as_deref(),
        answer,
        delegation: delegation.as_deref(),
    };
    Ok(stored::exchange(&columns, session, root_agent)?)
}

/// A session in a list.
pub(super) fn summary(row: &Row) -> Result<SessionSummary, Failure> {
    Ok(SessionSummary {
        id: SessionId::from(&*words(row, 0)?),
        user: UserId::from(&*words(row, 1)?),
        title: words(row, 2)?.into_owned(),
        created: Timestamp(unsigned(row, 3)?),
        updated: Timestamp(unsigned(row, 4)?),
        turns: unsigned(row, 5)?,
    })
}

/// A turn without an outcome.
pub(super) fn unfinished(row: &Row) -> Result<UnfinishedTurn, Failure> {
    Ok(UnfinishedTurn {
        session: SessionId::from(&*words(row, 0)?),
        user: UserId::from(&*words(row, 1)?),
        turn: TurnId::from(&*words(row, 2)?),
        is_waiting: row.try_get(3)?,
    })
}

/// A text of its own.
pub(super) fn text(row: &Row, column: usize) -> Result<Text, Failure> {
    Ok(Text::from(words(row, column)?))
}

/// A column that is never negative.
pub(super) fn unsigned(row: &Row, column: usize) -> Result<u64, Failure> {
    let number: i64 = row.try_get(column)?;
    u64::try_from(number).map_err(|_| Failure::other(format!("{number} is less than nothing")))
}

/// The same where there may be nothing.
pub(super) fn optional(row: &Row, column: usize) -> Result<Option<u64>, Failure> {
    let number: Option<i64> = row.try_get(column)?;
    number.map(|_| unsigned(row, column)).transpose()
}

/// A bound as PostgreSQL takes it; beyond its largest number there are no rows.
pub(super) fn bound(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number of rows.
pub(super) fn limit(most: usize) -> i64 {
    bound(most as u64)
}
