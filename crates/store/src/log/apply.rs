//! Row changes in SQLite, statement by statement. PostgreSQL has them in the statement that appends.

use super::statements::*;
use crate::engine::{Failure, Tx, values};
use crate::projection::RowChanges;
use lango_core::{SessionId, Text};

/// Writes the changes of a batch that was just stored.
pub(super) async fn apply(
    tx: &mut Tx<'_>,
    session: &SessionId,
    changes: &RowChanges<'_>,
) -> Result<(), Failure> {
    for row in &changes.continued {
        let values = values![session, row.turn, row.delegation, row.answer, row.finished];
        tx.execute(CONTINUE_TURN, values).await?;
    }
    let mut is_first = false;
    for row in &changes.started {
        let values = values![
            session,
            row.turn,
            row.first_seq,
            row.delegation,
            row.answer,
            row.finished
        ];
        is_first |= tx.value::<i64>(INSERT_TURN, values).await? == Some(0);
    }
    let change = &changes.session;
    let first_asked = change.first_asked.filter(|_| is_first);
    if let Some(updated) = change.last_finished.or(first_asked) {
        let title = change.title.filter(|_| is_first);
        let values = values![session, updated, title];
        tx.execute(UPDATE_SESSION, values).await?;
    }
    for row in &changes.requested {
        let values = values![
            session,
            row.id,
            row.turn,
            row.time,
            row.request,
            row.pattern,
            row.folder
        ];
        tx.execute(INSERT_APPROVAL, values).await?;
    }
    for row in &changes.granted {
        let values = values![
            session,
            row.id,
            row.time,
            row.pattern,
            row.folder,
            row.request
        ];
        tx.execute(GRANT, values).await?;
    }
    for id in &changes.answered {
        tx.execute(DELETE_APPROVAL, values![session, id]).await?;
    }
    for row in &changes.threads {
        let values = values![session, row.agent, row.context, row.task];
        tx.execute(SET_REMOTE_THREAD, values).await?;
    }
    for agent in &changes.ended_threads {
        tx.execute(END_REMOTE_TASK, values![session, agent]).await?;
    }
    for digest in &changes.attachments {
        let user: Option<Text> = tx.value(INSERT_REFERENCE, values![session, digest]).await?;
        // The first event of a session that refers to bytes uses up their oldest put.
        if let Some(user) = user {
            tx.execute(USE_PUT, values![user, digest]).await?;
        }
    }
    Ok(())
}
