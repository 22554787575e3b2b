//! What waits for a person, and what they granted for later calls.

use crate::Answer;
use crate::engine::{Engine, Failure, Row, Sql, Tx, Value, sql, values};
use crate::stored::damaged;
use lango_core::{
    ApprovalId, ApprovalRequest, Approvals, Grant, SessionId, StoreError, Text, UserId, Waiting,
};
use std::borrow::Cow;

/// The grants for calls of this session in this folder.
pub(crate) fn grants<'a>(
    engine: &'a Engine,
    session: &SessionId,
    folder: &str,
) -> Answer<'a, Vec<Grant>> {
    let given = (session.clone(), folder.to_owned());
    engine.read(given, |tx, (session, folder)| {
        Box::pin(async move { Ok(read(tx, GRANTS, values![session, folder]).await?.granted) })
    })
}

/// What waits for a user, and what they granted.
pub(crate) fn all<'a>(engine: &'a Engine, user: &UserId) -> Answer<'a, Approvals> {
    engine.read(user.clone(), |tx, user| {
        Box::pin(async move { read(tx, APPROVALS, values![user]).await })
    })
}

/// How many requests wait for a user.
pub(crate) fn count_waiting<'a>(engine: &'a Engine, user: &UserId) -> Answer<'a, usize> {
    engine.read(user.clone(), |tx, user| {
        Box::pin(async move {
            let values = values![user];
            let count = tx
                .query_opt(COUNT_WAITING, values, |row| row.get(0))
                .await?;
            Ok(count.unwrap_or(0))
        })
    })
}

/// Takes a grant back.
pub(crate) fn revoke<'a>(engine: &'a Engine, user: &UserId, id: &ApprovalId) -> Answer<'a, ()> {
    engine.write_one((user.clone(), id.clone()), |tx, (user, id)| {
        Box::pin(async move {
            if tx.execute(REVOKE, values![user, id]).await? == 0 && !tx.is_repeated() {
                return Err(StoreError::NotGranted { id: id.clone() }.into());
            }
            Ok(())
        })
    })
}

async fn read(tx: &mut Tx<'_>, sql: Sql, values: &[Value<'_>]) -> Result<Approvals, Failure> {
    let mut approvals = Approvals::default();
    tx.query(sql, values, |row| {
        let waiting = waiting(row)?;
        match row.get::<Option<Text>>(5)? {
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
        Ok(())
    })
    .await?;
    Ok(approvals)
}

fn waiting(row: Row<'_>) -> Result<Waiting, Failure> {
    let session = row.get(0)?;
    let request: Cow<'_, str> = row.get(4)?;
    let request: ApprovalRequest =
        serde_json::from_str(&request).map_err(|error| damaged(&session, 0, &error))?;
    Ok(Waiting {
        session,
        turn: row.get(2)?,
        asked: row.get(3)?,
        request,
    })
}

/// What a session's user granted, in it or for a folder.
pub(crate) const GRANTS: Sql = sql!(
    r#"SELECT session, id, turn, time, request, pattern, folder FROM approvals
      WHERE session = $1 AND pattern IS NOT NULL AND folder IS NULL
     UNION ALL
     SELECT session, id, turn, time, request, pattern, folder FROM approvals
      WHERE "user" = (SELECT "user" FROM sessions WHERE id = $1) AND folder = $2 AND pattern IS NOT NULL"#
);

/// All that waits for a user and all they granted.
pub(crate) const APPROVALS: Sql = sql!(
    r#"SELECT session, id, turn, time, request, pattern, folder FROM approvals
      WHERE "user" = $1 ORDER BY time, id"#
);

/// How much waits for a user.
pub(crate) const COUNT_WAITING: Sql =
    sql!(r#"SELECT count(*) FROM approvals WHERE "user" = $1 AND pattern IS NULL"#);

/// A grant is taken back.
pub(crate) const REVOKE: Sql =
    sql!(r#"DELETE FROM approvals WHERE "user" = $1 AND id = $2 AND pattern IS NOT NULL"#);
