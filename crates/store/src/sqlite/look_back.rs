//! What a new turn has to know of a session, read by key: the end of the log and the exchanges of the look back.

use super::connection::execute;
use super::failure::Failure;
use super::readers::Reader;
use super::rows::unsigned;
use super::statements::{LOG_END, LOOK_BACK, SESSION};
use crate::stored::{self, AnswerColumns, ExchangeColumns};
use lango_core::{Exchange, SessionHead, SessionId, StoreError, Text, UserId};
use rusqlite::{OptionalExtension as _, Row, params};

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

/// The exchange in a row whose columns begin as those of [`LOOK_BACK`] do.
pub(super) fn exchange(
    row: &Row<'_>,
    session: &SessionId,
    reader: Reader<'_>,
) -> Result<Exchange, Failure> {
    let first_seq = unsigned(row, 1)?;
    let seq = row.get::<_, Option<i64>>(4)?.map(i64::unsigned_abs);
    let text = |column| {
        let value = row.get_ref(column)?.as_str_or_null();
        Ok::<_, rusqlite::Error>(value?)
    };
    let asked = |column| text(column).map_err(|error| Failure::of_row(error, session, first_seq));
    let answered = |column| {
        let seq = seq.unwrap_or(first_seq);
        text(column).map_err(|error| Failure::of_row(error, session, seq))
    };
    let answer = match (seq, answered(5)?, answered(6)?, answered(7)?) {
        (Some(seq), Some(author), Some(frame), Some(body)) => Some(AnswerColumns {
            seq,
            author,
            frame,
            body,
        }),
        _ => None,
    };
    let columns = ExchangeColumns {
        turn: asked(0)?.unwrap_or_default(),
        first_seq,
        question: asked(3)?,
        answer,
        delegation: asked(8)?,
    };
    Ok(stored::exchange(&columns, session, reader.root_agent)?)
}
