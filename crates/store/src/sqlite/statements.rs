//! The SQL of everyday work with sessions, all of it.
//!
//! Each statement finds its rows by a key: none reads more because a session, or the list of sessions, grew long.

pub(super) mod payment;

/// A new session.
pub(super) const INSERT_SESSION: &str =
    "INSERT INTO sessions (id, user, created, updated) VALUES (?1, ?2, ?3, ?3)
     ON CONFLICT (id) DO NOTHING";

/// Whose session it is, how many turns it has, and whether the last one has finished. One that is hidden is none.
pub(super) const SESSION: &str =
    "SELECT user, (SELECT coalesce(max(ordinal) + 1, 0) FROM turns WHERE turns.session = sessions.id),
            coalesce((SELECT finished FROM turns WHERE turns.session = sessions.id
                       ORDER BY ordinal DESC LIMIT 1), 1)
       FROM sessions WHERE id = ?1 AND substr(user, 1, 1) <> char(1)";

/// Whether there is such a session, and it is not hidden.
pub(super) const IS_SEEN: &str =
    "SELECT 1 FROM sessions WHERE id = ?1 AND substr(user, 1, 1) <> char(1)";

/// What the first question and the end of every turn leave on the session.
pub(super) const UPDATE_SESSION: &str =
    "UPDATE sessions SET updated = ?2, title = coalesce(?3, title) WHERE id = ?1";

/// The last event of a log.
pub(super) const LOG_END: &str =
    "SELECT seq, hash FROM events WHERE session = ?1 ORDER BY seq DESC LIMIT 1";

/// One event.
pub(super) const INSERT_EVENT: &str =
    "INSERT INTO events (session, seq, turn, frame, time, body, author, hash)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

/// A turn begins; gives its ordinal.
pub(super) const INSERT_TURN: &str =
    "INSERT INTO turns (session, ordinal, turn, first_seq, question_seq)
     VALUES (?1, (SELECT coalesce(max(ordinal) + 1, 0) FROM turns WHERE session = ?1), ?2, ?3, ?3)
     RETURNING ordinal";

/// A sub-agent is to answer the person.
pub(super) const SET_DELEGATION: &str =
    "UPDATE turns SET delegation_seq = ?3 WHERE session = ?1 AND turn = ?2
        AND ordinal = (SELECT max(ordinal) FROM turns WHERE session = ?1)";

/// A turn is over.
pub(super) const FINISH_TURN: &str =
    "UPDATE turns SET finished = 1, answer_seq = ?3 WHERE session = ?1 AND turn = ?2
        AND ordinal = (SELECT max(ordinal) FROM turns WHERE session = ?1)";

/// A call waits for a person.
pub(super) const INSERT_APPROVAL: &str =
    "INSERT INTO approvals (session, id, user, turn, time, request)
     SELECT ?1, ?2, user, ?3, ?4, ?5 FROM sessions WHERE id = ?1";

/// It was answered for calls to come.
pub(super) const GRANT: &str = "UPDATE approvals SET time = ?3, pattern = ?4, folder = ?5,
            request = json_set(request, '$.arguments', NULL) WHERE session = ?1 AND id = ?2";

/// It was answered for itself alone.
pub(super) const DELETE_APPROVAL: &str = "DELETE FROM approvals WHERE session = ?1 AND id = ?2";

/// A grant is taken back.
pub(super) const REVOKE: &str =
    "DELETE FROM approvals WHERE user = ?1 AND id = ?2 AND pattern IS NOT NULL";

/// What a session's user granted, in it or for a folder.
pub(super) const GRANTS: &str = "SELECT session, id, turn, time, request, pattern, folder FROM approvals
      WHERE session = ?1 AND pattern IS NOT NULL AND folder IS NULL
     UNION ALL
     SELECT session, id, turn, time, request, pattern, folder FROM approvals
      WHERE user = (SELECT user FROM sessions WHERE id = ?1) AND folder = ?2 AND pattern IS NOT NULL";

/// All that waits for a user and all they granted.
pub(super) const APPROVALS: &str =
    "SELECT session, id, turn, time, request, pattern, folder FROM approvals
      WHERE user = ?1 ORDER BY time, id";

/// How much waits for a user.
pub(super) const COUNT_WAITING: &str =
    "SELECT count(*) FROM approvals WHERE user = ?1 AND pattern IS NULL";

/// Notes where a conversation with a remote agent stands.
pub(super) const SET_REMOTE_THREAD: &str =
    "INSERT INTO remote_threads (session, agent, context, task) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (session, agent) DO UPDATE SET context = excluded.context, task = excluded.task";

/// Notes that the task is over, and the conversation is not.
pub(super) const END_REMOTE_TASK: &str =
    "UPDATE remote_threads SET task = NULL WHERE session = ?1 AND agent = ?2";

/// Where a conversation with a remote agent stands.
pub(super) const REMOTE_THREAD: &str =
    "SELECT context, task FROM remote_threads WHERE session = ?1 AND agent = ?2";

/// Events in their order.
pub(super) const EVENTS: &str = "SELECT seq, turn, frame, author, time, body FROM events
     WHERE session = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3";

/// The events of one turn: from its first to the next turn's.
pub(super) const TURN_EVENTS: &str = "SELECT seq, turn, frame, author, time, body FROM events
     WHERE session = ?1
       AND seq >= (SELECT max(first_seq) FROM turns WHERE session = ?1 AND turn = ?2)
       AND seq < coalesce((SELECT next.first_seq FROM turns AS own
                             JOIN turns AS next ON next.session = own.session AND next.ordinal = own.ordinal + 1
                            WHERE own.session = ?1 AND own.turn = ?2
                            ORDER BY own.first_seq DESC LIMIT 1), 9223372036854775807)
     ORDER BY seq";

/// The turns from an ordinal on, with their question, their answer and the delegation behind it.
pub(super) const LOOK_BACK: &str =
    "SELECT turns.turn, turns.first_seq, turns.finished, question.body,
            turns.answer_seq, answer.author, answer.frame, answer.body, delegation.body
       FROM turns
       JOIN events AS question
         ON question.session = turns.session AND question.seq = turns.question_seq
       LEFT JOIN events AS answer
         ON answer.session = turns.session AND answer.seq = turns.answer_seq
       LEFT JOIN events AS delegation
         ON delegation.session = turns.session AND delegation.seq = turns.delegation_seq
      WHERE turns.session = ?1 AND turns.ordinal >= ?2
      ORDER BY turns.ordinal";

/// Turns without an outcome, in sessions after one.
pub(super) const UNFINISHED: &str = "SELECT turns.session, sessions.user, turns.turn,
            EXISTS (SELECT 1 FROM approvals
                     WHERE approvals.session = turns.session AND approvals.turn = turns.turn
                       AND approvals.pattern IS NULL)
       FROM turns JOIN sessions ON sessions.id = turns.session
      WHERE turns.finished = 0 AND turns.session > ?1 AND substr(sessions.user, 1, 1) <> char(1)
      ORDER BY turns.session LIMIT ?2";

/// A user's sessions, the one used last first.
pub(super) const SESSIONS: &str = "SELECT id, user, title, created, updated,
            (SELECT coalesce(max(ordinal) + 1, 0) FROM turns WHERE turns.session = sessions.id)
       FROM sessions WHERE user = ?1 ORDER BY updated DESC, id LIMIT ?2";

/// A user's sessions in a range of ids: from a prefix to the greatest id that begins with it.
pub(super) const SESSIONS_WITH_PREFIX: &str =
    "SELECT id, user, title, created, updated,
            (SELECT coalesce(max(ordinal) + 1, 0) FROM turns WHERE turns.session = sessions.id)
       FROM sessions WHERE user = ?1 AND id BETWEEN ?2 AND ?2 || char(1114111) ORDER BY id LIMIT ?3";

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::sqlite::attachments::{INSERT_REFERENCE, USE_PUT};
    use crate::sqlite::connection::open_writer;

    const ALL: [&str; 27] = [
        INSERT_REFERENCE,
        USE_PUT,
        IS_SEEN,
        UNFINISHED,
        TURN_EVENTS,
        SET_REMOTE_THREAD,
        END_REMOTE_TASK,
        REMOTE_THREAD,
        INSERT_APPROVAL,
        GRANT,
        DELETE_APPROVAL,
        REVOKE,
        GRANTS,
        APPROVALS,
        COUNT_WAITING,
        INSERT_SESSION,
        SESSION,
        UPDATE_SESSION,
        LOG_END,
        INSERT_EVENT,
        INSERT_TURN,
        SET_DELEGATION,
        FINISH_TURN,
        EVENTS,
        LOOK_BACK,
        SESSIONS,
        SESSIONS_WITH_PREFIX,
    ];

    pub(crate) fn plan_of(statement: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let connection = open_writer(&folder.path().join("lango.db")).unwrap();
        let mut plan = connection
            .prepare(&format!("EXPLAIN QUERY PLAN {statement}"))
            .unwrap();
        let unbound = vec![rusqlite::types::Null; plan.parameter_count()];
        let lines = plan
            .query_map(rusqlite::params_from_iter(unbound), |row| {
                row.get::<_, String>("detail")
            })
            .unwrap();
        lines.collect::<Result<Vec<_>, _>>().unwrap().join("\n")
    }

    #[test]
    fn no_everyday_statement_scans_a_table_or_sorts() {
        for statement in ALL {
            let plan = plan_of(statement);
            assert!(
                !plan.contains("SCAN") && !plan.contains("TEMP B-TREE"),
                "{statement}\n{plan}"
            );
        }
    }

    #[test]
    fn the_look_back_reads_turns_and_events_by_their_keys() {
        let plan = plan_of(LOOK_BACK);
        assert_eq!(
            plan.matches("USING PRIMARY KEY (session=? AND seq=?)")
                .count(),
            3,
            "{plan}"
        );
        assert!(
            plan.contains("SEARCH turns USING PRIMARY KEY (session=? AND ordinal>?)"),
            "{plan}"
        );
    }
}
