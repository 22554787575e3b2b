//! Applies row changes in SQLite, one statement each. In PostgreSQL they are part of the statement that appends.

use crate::backend::{Result, Tx, statements, values};
use crate::projection::RowChanges;
use lango_core::{SessionId, Text};

/// Applies the row changes of a batch that was just stored.
pub(super) async fn apply(
    tx: &mut Tx<'_>,
    session: &SessionId,
    changes: &RowChanges<'_>,
) -> Result<()> {
    for row in &changes.continued {
        let values = values![
            session,
            row.turn,
            row.delegation,
            row.answer,
            row.finished,
            row.undone
        ];
        tx.execute(CONTINUE_TURN, values).await?;
    }
    for row in &changes.undone {
        tx.execute(UNDO_TURN, values![session, row.turn, row.seq])
            .await?;
    }
    let mut is_first = false;
    for row in &changes.started {
        let values = values![
            session,
            row.turn,
            row.first_seq,
            row.delegation,
            row.answer,
            row.finished,
            row.undone
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
        // The first event of a session that refers to an attachment consumes its oldest put.
        if let Some(user) = user {
            tx.execute(USE_PUT, values![user, digest]).await?;
        }
    }
    Ok(())
}

statements! {
    /// Updates the last turn, if it has this id.
    CONTINUE_TURN: "UPDATE turns SET delegation_seq = coalesce($3, delegation_seq),
            answer_seq = CASE $5 WHEN 1 THEN $4 ELSE answer_seq END, finished = max($5, finished),
            undone_seq = coalesce(undone_seq, $6)
      WHERE session = $1 AND turn = $2 AND ordinal = (SELECT max(ordinal) FROM turns WHERE session = $1)";

    UNDO_TURN: "UPDATE turns SET undone_seq = coalesce(undone_seq, $3) WHERE session = $1 AND turn = $2";

    /// Inserts a turn and returns its ordinal.
    INSERT_TURN: "INSERT INTO turns (session, ordinal, turn, first_seq, question_seq, delegation_seq, answer_seq, finished, undone_seq)
     VALUES ($1, (SELECT coalesce(max(ordinal) + 1, 0) FROM turns WHERE session = $1), $2, $3, $3, $4, $5, $6, $7)
     RETURNING ordinal";

    UPDATE_SESSION: "UPDATE sessions SET updated = $2, title = coalesce($3, title) WHERE id = $1";

    INSERT_APPROVAL: r#"INSERT INTO approvals (session, id, "user", turn, time, request, pattern, folder)
     SELECT $1, $2, "user", $3, $4, $5, $6, $7 FROM sessions WHERE id = $1"#;

    GRANT: "UPDATE approvals SET time = $3, pattern = $4, folder = $5, request = $6 WHERE session = $1 AND id = $2";

    DELETE_APPROVAL: "DELETE FROM approvals WHERE session = $1 AND id = $2";

    SET_REMOTE_THREAD: "INSERT INTO remote_threads (session, agent, context, task) VALUES ($1, $2, $3, $4)
     ON CONFLICT (session, agent) DO UPDATE SET context = excluded.context, task = excluded.task";

    /// Clears the task of a remote conversation, which continues without it.
    END_REMOTE_TASK: "UPDATE remote_threads SET task = NULL WHERE session = $1 AND agent = $2";

    /// Adds a reference from a session, which may be hidden, to an attachment. Returns the session's user if the reference is new.
    INSERT_REFERENCE: "INSERT INTO attachment_references (session, digest, \"user\")
     SELECT id, $2, CASE substr(\"user\", 1, 1) WHEN char(1) THEN substr(\"user\", 2) ELSE \"user\" END
       FROM sessions WHERE id = $1
         ON CONFLICT DO NOTHING RETURNING \"user\"";

    /// Deletes the oldest put of an attachment.
    USE_PUT: r#"DELETE FROM attachment_puts WHERE "user" = $1 AND digest = $2 AND time =
        (SELECT min(time) FROM attachment_puts WHERE "user" = $1 AND digest = $2)"#;
}
