//! From the rows of approvals to what waits for a person and what they granted.

use super::failure::Failure;
use super::rows::{text, unsigned};
use super::text::{optional_words, words};
use crate::stored::damaged;
use lango_core::{ApprovalRequest, Approvals, Grant, SessionId, Text, Timestamp, TurnId, Waiting};
use tokio_postgres::Row;

/// What the rows say, in their order.
pub(super) fn approvals(rows: &[Row]) -> Result<Approvals, Failure> {
    let mut approvals = Approvals::default();
    for row in rows {
        let waiting = waiting(row)?;
        match optional_words(row, 5)? {
            None => approvals.waiting.push(waiting),
            Some(pattern) => approvals.granted.push(Grant {
                id: waiting.request.id,
                session: waiting.session,
                agent: waiting.request.agent,
                tool: waiting.request.tool,
                pattern: Text::from(pattern),
                folder: optional_words(row, 6)?.map(Text::from),
                given: waiting.asked,
            }),
        }
    }
    Ok(approvals)
}

fn waiting(row: &Row) -> Result<Waiting, Failure> {
    let session = SessionId::new(text(row, 0)?);
    let request: ApprovalRequest =
        serde_json::from_str(&words(row, 4)?).map_err(|error| damaged(&session, 0, &error))?;
    Ok(Waiting {
        session,
        turn: TurnId::new(text(row, 2)?),
        asked: Timestamp(unsigned(row, 3)?),
        request,
    })
}
