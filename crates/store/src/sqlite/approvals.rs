//! The table of approvals: kept in step with the log, read for a turn and for a person.

use super::failure::Failure;
use super::rows::unsigned;
use super::statements::{
    APPROVALS, COUNT_WAITING, DELETE_APPROVAL, GRANT, GRANTS, INSERT_APPROVAL, REVOKE,
};
use crate::stored::damaged;
use lango_core::{
    ApprovalId, ApprovalRequest, Approvals, Event, EventBody, Grant, SessionId, StoreError, Text,
    Timestamp, TurnId, UserId, Waiting,
};
use rusqlite::{Connection, Params, Row, params};

/// Keeps the table in step with an event that was just stored.
pub(super) fn note(connection: &Connection, event: &Event, time: i64) -> Result<(), Failure> {
    let session = event.session.as_str();
    match &event.body {
        EventBody::ApprovalRequested(request) => {
            let json = serde_json::to_string(request)
                .map_err(|error| Failure::other(error.to_string()))?;
            connection
                .prepare_cached(INSERT_APPROVAL)?
                .execute(params![
                    session,
                    request.id.as_str(),
                    event.turn.as_str(),
                    time,
                    json
                ])?;
        }
        EventBody::ApprovalAnswered {
            request, answer, ..
        } => {
            match answer.grant() {
                Some((pattern, folder)) => connection.prepare_cached(GRANT)?.execute(params![
                    session,
                    request.as_str(),
                    time,
                    pattern,
                    folder
                ])?,
                None => connection
                    .prepare_cached(DELETE_APPROVAL)?
                    .execute(params![session, request.as_str()])?,
            };
        }
        _ => {}
    }
    Ok(())
}

/// Takes a grant back.
pub(super) fn revoke(
    connection: &Connection,
    user: &UserId,
    id: &ApprovalId,
) -> Result<(), Failure> {
    let gone = connection
        .prepare_cached(REVOKE)?
        .execute(params![user.as_str(), id.as_str()])?;
    match gone {
        0 => Err(StoreError::NotGranted { id: id.clone() }.into()),
        _ => Ok(()),
    }
}

/// What holds for calls of this session in this folder.
pub(super) fn grants(
    connection: &Connection,
    session: &SessionId,
    folder: &str,
) -> Result<Vec<Grant>, Failure> {
    Ok(read(connection, GRANTS, params![session.as_str(), folder])?.granted)
}

/// What waits for a user, and what they granted.
pub(super) fn all(connection: &Connection, user: &UserId) -> Result<Approvals, Failure> {
    read(connection, APPROVALS, params![user.as_str()])
}

/// How much waits for a user.
pub(super) fn count_waiting(connection: &Connection, user: &UserId) -> Result<usize, Failure> {
    let mut statement = connection.prepare_cached(COUNT_WAITING)?;
    let count: i64 = statement.query_row(params![user.as_str()], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

fn read(connection: &Connection, query: &str, values: impl Params) -> Result<Approvals, Failure> {
    let mut statement = connection.prepare_cached(query)?;
    let mut rows = statement.query(values)?;
    let mut approvals = Approvals::default();
    while let Some(row) = rows.next()? {
        let waiting = waiting(row)?;
        match row.get::<_, Option<Text>>(5)? {
            None => approvals.waiting.push(waiting),
            Some(pattern) => approvals.granted.push(Grant {
                id: waiting.request.id,
                session: waiting.session,
                agent: waiting.request.agent,
                tool: waiting.request.tool,
                pattern,
                folder: row.get(6)?,
                given: waiting.asked,
            }),
        }
    }
    Ok(approvals)
}

fn waiting(row: &Row<'_>) -> Result<Waiting, Failure> {
    let session = SessionId::new(row.get::<_, Text>(0)?);
    let request: String = row.get(4)?;
    let request: ApprovalRequest =
        serde_json::from_str(&request).map_err(|error| damaged(&session, 0, &error))?;
    Ok(Waiting {
        session,
        turn: TurnId::new(row.get::<_, Text>(2)?),
        asked: Timestamp(unsigned(row, 3)?),
        request,
    })
}
