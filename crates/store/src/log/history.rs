//! Reads what a new turn needs of a session: the end of its log, and the question and answer of earlier turns.

use super::batch::LogEnd;
use crate::backend::{Result, Row, Sql, Tx, sql, values};
use crate::decode::{exchange_in, not_found, undone_in};
use lango_core::{AgentName, Exchange, SessionHead, SessionId, TurnId};

/// Returns the head of a session and the end of its log.
pub(super) async fn head(
    tx: &mut Tx<'_>,
    session: &SessionId,
    root_agent: &AgentName,
) -> Result<(SessionHead, LogEnd)> {
    let (mut head, mut turns) = (None, Vec::new());
    let values = values![session, SessionHead::BLOCK];
    tx.query(HEAD, values, |row| {
        if head.is_none() {
            head = Some(without_history(row)?);
        }
        if let Some(ordinal) = row.get::<Option<u64>>(4)? {
            let (first_seq, is_finished): (u64, bool) = (row.get(6)?, row.get(7)?);
            let exchange = is_finished.then(|| with_undone(row, 5, session, root_agent));
            turns.push((ordinal, first_seq, exchange.transpose()?));
        }
        Ok(())
    })
    .await?;
    let (mut head, end) = head.ok_or_else(|| not_found(session))?;
    turns.sort_unstable_by_key(|(ordinal, ..)| *ordinal);
    if let Some((_, first_seq, None)) = turns.last() {
        head.unfinished = Some(*first_seq);
    }
    let exchanges = turns.into_iter().filter_map(|(.., exchange)| exchange);
    head.exchanges = exchanges.collect();
    Ok((head, end))
}

/// Returns the history that a turn was shown: the same exchanges that [`head`] returned when the turn started.
pub(super) async fn history_of(
    tx: &mut Tx<'_>,
    session: &SessionId,
    turn: &TurnId,
    root_agent: &AgentName,
) -> Result<Vec<Exchange>> {
    let values = values![session, turn];
    let found = tx.query_opt(TURN, values, |row| {
        Ok((row.get::<u64>(0)?, row.get::<u64>(1)?))
    });
    let (ordinal, first_seq) = found.await?.ok_or_else(|| not_found(session))?;
    let first = SessionHead::history_start(ordinal);
    let values = values![session, first, ordinal, first_seq];
    tx.query(EXCHANGES, values, |row| {
        with_undone(row, 0, session, root_agent)
    })
    .await
}

/// Reads the columns of an exchange from `column` on, and the two columns after them: the `seq` and the JSON of the event that
/// undid its turn.
fn with_undone(
    row: Row<'_>,
    column: usize,
    session: &SessionId,
    root_agent: &AgentName,
) -> Result<Exchange> {
    let mut exchange = exchange_in(row, column, session, root_agent)?;
    exchange.undone = undone_in(row, column + 9, session)?;
    Ok(exchange)
}

fn without_history(row: Row<'_>) -> Result<(SessionHead, LogEnd)> {
    let end = LogEnd {
        seq: row.get::<Option<u64>>(1)?.unwrap_or(0),
        hash: row.get::<Option<_>>(2)?.unwrap_or_default(),
    };
    let head = SessionHead {
        user: row.get(0)?,
        next_seq: end.seq + 1,
        turns: row.get::<Option<_>>(3)?.unwrap_or(0),
        exchanges: Vec::new(),
        unfinished: None,
    };
    Ok((head, end))
}

/// Selects the user of a session, the end of its log, the number of its turns, and the turns of its history with question,
/// answer and delegation. The history consists of blocks of `$2` turns: the last full block and the turns after it.
///
/// The laterals make PostgreSQL read the last turns from their index and each event by its key, whatever its statistics say.
/// Without them it may read all turns and all events of a session.
pub(super) const HEAD: Sql = sql!(
    sqlite: r#"SELECT sessions.user,
            (SELECT seq FROM events WHERE session = ?1 ORDER BY seq DESC LIMIT 1),
            (SELECT hash FROM events WHERE session = ?1 ORDER BY seq DESC LIMIT 1),
            (SELECT max(ordinal) + 1 FROM turns WHERE session = ?1),
            shown.ordinal, shown.turn, shown.first_seq, shown.finished, question.body,
            shown.answer_seq, answer.author, answer.frame, answer.body, delegation.body,
            shown.undone_seq, undone.body
       FROM sessions
       LEFT JOIN turns AS shown ON shown.session = ?1 AND shown.ordinal >= max(0, ?2 *
            ((SELECT ordinal + finished FROM turns WHERE session = ?1 ORDER BY ordinal DESC LIMIT 1) / ?2 - 1))
       LEFT JOIN events AS question ON question.session = ?1 AND question.seq = shown.question_seq
       LEFT JOIN events AS answer ON answer.session = ?1 AND answer.seq = shown.answer_seq
       LEFT JOIN events AS delegation ON delegation.session = ?1 AND delegation.seq = shown.delegation_seq
       LEFT JOIN events AS undone ON undone.session = ?1 AND undone.seq = shown.undone_seq
      WHERE sessions.id = ?1 AND substr(sessions.user, 1, 1) <> char(1)"#,
    postgres: r#"SELECT sessions."user", log_end.seq, log_end.hash, last_turn.turns,
            shown.ordinal, shown.turn, shown.first_seq, shown.finished, question.body,
            shown.answer_seq, answer.author, answer.frame, answer.body, delegation.body,
            shown.undone_seq, undone.body
       FROM sessions
       LEFT JOIN LATERAL (SELECT seq, hash FROM events WHERE events.session = sessions.id
                           ORDER BY seq DESC LIMIT 1) AS log_end ON true
       LEFT JOIN LATERAL (SELECT ordinal + 1 AS turns, ordinal + finished AS ended FROM turns
                           WHERE turns.session = sessions.id
                           ORDER BY ordinal DESC LIMIT 1) AS last_turn ON true
       LEFT JOIN LATERAL (SELECT * FROM turns WHERE turns.session = sessions.id
                           ORDER BY ordinal DESC LIMIT $2::bigint * 2) AS shown
         ON shown.ordinal >= greatest(last_turn.ended / $2 - 1, 0) * $2
       LEFT JOIN LATERAL (SELECT body FROM events
                           WHERE events.session = shown.session AND events.seq = shown.question_seq
                           LIMIT 1) AS question ON true
       LEFT JOIN LATERAL (SELECT author, frame, body FROM events
                           WHERE events.session = shown.session AND events.seq = shown.answer_seq
                           LIMIT 1) AS answer ON true
       LEFT JOIN LATERAL (SELECT body FROM events
                           WHERE events.session = shown.session AND events.seq = shown.delegation_seq
                           LIMIT 1) AS delegation ON true
       LEFT JOIN LATERAL (SELECT body FROM events
                           WHERE events.session = shown.session AND events.seq = shown.undone_seq
                           LIMIT 1) AS undone ON true
      WHERE sessions.id = $1 AND NOT starts_with(sessions."user", chr(1) || '1')"#,
);

/// Selects the ordinal and the first `seq` of a turn.
pub(super) const TURN: Sql = sql!(
    "SELECT ordinal, first_seq FROM turns WHERE session = $1 AND turn = $2 ORDER BY first_seq DESC LIMIT 1"
);

/// Selects the turns of a session with `$2 <= ordinal < $3`, with question, answer, delegation, and what undid them before the
/// event `$4`.
pub(super) const EXCHANGES: Sql = sql!(
    "SELECT shown.turn, shown.first_seq, shown.finished, question.body,
            shown.answer_seq, answer.author, answer.frame, answer.body, delegation.body,
            undone.seq, undone.body
       FROM turns AS shown
       LEFT JOIN events AS question ON question.session = $1 AND question.seq = shown.question_seq
       LEFT JOIN events AS answer ON answer.session = $1 AND answer.seq = shown.answer_seq
       LEFT JOIN events AS delegation ON delegation.session = $1 AND delegation.seq = shown.delegation_seq
       LEFT JOIN events AS undone ON undone.session = $1 AND undone.seq = shown.undone_seq AND shown.undone_seq < $4
      WHERE shown.session = $1 AND shown.ordinal >= $2 AND shown.ordinal < $3 ORDER BY shown.ordinal"
);
