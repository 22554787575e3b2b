//! Reads the pending approval requests of a user, and the grants that cover later calls.

use crate::backend::{Result, Row, Sql, Tx, Value, statements};
use crate::decode::damaged;
use lango_core::{ApprovalRequest, Approvals, Grant, PendingApproval, Text};
use std::borrow::Cow;

/// Reads the rows of [`GRANTS`] or [`APPROVALS`].
pub(crate) async fn read(tx: &mut Tx<'_>, sql: Sql, values: &[Value<'_>]) -> Result<Approvals> {
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

fn waiting(row: Row<'_>) -> Result<PendingApproval> {
    let session = row.get(0)?;
    let request: Cow<'_, str> = row.get(4)?;
    let request: ApprovalRequest =
        serde_json::from_str(&request).map_err(|error| damaged(&session, 0, error))?;
    Ok(PendingApproval {
        session,
        turn: row.get(2)?,
        asked: row.get(3)?,
        request,
    })
}

statements! {
    /// Selects the grants that apply to a session: those given in it, and those of its user for a folder.
    GRANTS: r#"SELECT session, id, turn, time, request, pattern, folder FROM approvals
      WHERE session = $1 AND pattern IS NOT NULL AND folder IS NULL
     UNION ALL
     SELECT session, id, turn, time, request, pattern, folder FROM approvals
      WHERE "user" = (SELECT "user" FROM sessions WHERE id = $1) AND folder = $2 AND pattern IS NOT NULL"#;

    APPROVALS: r#"SELECT session, id, turn, time, request, pattern, folder FROM approvals
      WHERE "user" = $1 ORDER BY time, id"#;

    REVOKE: r#"DELETE FROM approvals WHERE "user" = $1 AND id = $2 AND pattern IS NOT NULL"#;
}
