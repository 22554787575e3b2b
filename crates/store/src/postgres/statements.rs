//! The SQL of everyday work with sessions, all of it.
//!
//! Each statement finds its rows by a key: none reads more because a session, or the list of sessions, grew long.
//! `"user"` is a word of PostgreSQL's own, hence the quotes.

pub(super) mod append;
pub(super) mod holds;
pub(super) mod payment;
#[cfg(test)]
pub(crate) mod plans;
pub(super) mod start;

/// A new session.
pub(super) const INSERT_SESSION: &str = r#"INSERT INTO sessions (id, "user", created, updated) VALUES ($1, $2, $3, $3)
     ON CONFLICT (id) DO NOTHING RETURNING 1"#;

/// Whether a session is as it was made, by this user and at this time.
pub(super) const IS_NEW: &str = r#"SELECT EXISTS (SELECT FROM sessions
      WHERE id = $1 AND "user" = $2 AND created = $3 AND NOT EXISTS (SELECT FROM events WHERE session = $1))"#;

/// Whether there is such a session. One that is hidden is none.
pub(super) const EXISTS: &str = r#"SELECT EXISTS (SELECT FROM sessions
      WHERE id = $1 AND NOT starts_with("user", chr(1) || '1'))"#;

/// The last event of a log.
pub(super) const LOG_END: &str =
    "SELECT seq, hash FROM events WHERE session = $1 ORDER BY seq DESC LIMIT 1";

/// What a new turn has to know: whose session it is, the end of its log, how many turns it has, and those from the block of
/// `$2` turns before the last full one on, with their question, their answer and the delegation behind it.
///
/// Whatever the server believes to know about the tables: the turns are the last of an index, in its order, and each event
/// is looked up by its key. Left to itself it has been seen to read all turns and all events of a session.
pub(super) const HEAD: &str = r#"SELECT sessions."user", log_end.seq, log_end.hash, last_turn.turns,
            shown.ordinal, shown.turn, shown.first_seq, shown.finished, question.body,
            shown.answer_seq, answer.author, answer.frame, answer.body, delegation.body
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
      WHERE sessions.id = $1 AND NOT starts_with(sessions."user", chr(1) || '1')"#;

/// Events in their order.
pub(super) const EVENTS: &str = "SELECT seq, turn, frame, author, time, body, hash FROM events
     WHERE session = $1 AND seq >= $2 ORDER BY seq LIMIT $3";

/// The events of one turn: from its first to the next turn's.
pub(super) const TURN_EVENTS: &str = "SELECT seq, turn, frame, author, time, body FROM events
     WHERE session = $1
       AND seq >= (SELECT max(first_seq) FROM turns WHERE session = $1 AND turn = $2)
       AND seq < coalesce((SELECT next.first_seq FROM turns AS own
                             JOIN turns AS next ON next.session = own.session AND next.ordinal = own.ordinal + 1
                            WHERE own.session = $1 AND own.turn = $2
                            ORDER BY own.first_seq DESC LIMIT 1), 9223372036854775807)
     ORDER BY seq";

/// What was asked for.
pub(super) const REQUESTS: &str =
    "SELECT id, request FROM approvals WHERE session = $1 AND id = ANY ($2::text[])";

/// A grant is taken back.
pub(super) const REVOKE: &str =
    r#"DELETE FROM approvals WHERE "user" = $1 AND id = $2 AND pattern IS NOT NULL RETURNING 1"#;

/// What a session's user granted, in it or for a folder.
pub(super) const GRANTS: &str = r#"SELECT session, id, turn, time, request, pattern, folder FROM approvals
      WHERE session = $1 AND pattern IS NOT NULL AND folder IS NULL
     UNION ALL
     SELECT session, id, turn, time, request, pattern, folder FROM approvals
      WHERE "user" = (SELECT "user" FROM sessions WHERE id = $1) AND folder = $2 AND pattern IS NOT NULL"#;

/// All that waits for a user and all they granted.
pub(super) const APPROVALS: &str = r#"SELECT session, id, turn, time, request, pattern, folder FROM approvals
      WHERE "user" = $1 ORDER BY time, id"#;

/// How much waits for a user.
pub(super) const COUNT_WAITING: &str =
    r#"SELECT count(*) FROM approvals WHERE "user" = $1 AND pattern IS NULL"#;

/// Where a conversation with a remote agent stands.
pub(super) const REMOTE_THREAD: &str =
    "SELECT context, task FROM remote_threads WHERE session = $1 AND agent = $2";

/// Turns without an outcome, in sessions after one, that nobody but `$3` is at.
pub(super) const UNFINISHED: &str = r#"SELECT turns.session, sessions."user", turns.turn,
            EXISTS (SELECT FROM approvals
                     WHERE approvals.session = turns.session AND approvals.turn = turns.turn
                       AND approvals.pattern IS NULL)
       FROM turns JOIN sessions ON sessions.id = turns.session
      WHERE turns.finished = 0 AND turns.session > $1
        AND NOT starts_with(sessions."user", chr(1) || '1')
        AND NOT EXISTS (SELECT FROM holds
                         WHERE holds.session = turns.session AND holds.until > clock_timestamp()
                           AND holds.holder <> $3)
      ORDER BY turns.session LIMIT $2"#;

/// A user's sessions, the one used last first.
pub(super) const SESSIONS: &str = r#"SELECT id, "user", title, created, updated,
            (SELECT coalesce(max(ordinal) + 1, 0) FROM turns WHERE turns.session = sessions.id)
       FROM sessions WHERE "user" = $1 ORDER BY updated DESC, id LIMIT $2"#;

/// A user's sessions in a range of ids: from a prefix to the greatest id that begins with it.
pub(super) const SESSIONS_WITH_PREFIX: &str = r#"SELECT id, "user", title, created, updated,
            (SELECT coalesce(max(ordinal) + 1, 0) FROM turns WHERE turns.session = sessions.id)
       FROM sessions WHERE "user" = $1 AND id >= $2 AND id <= $2 || chr(1114111) ORDER BY id LIMIT $3"#;
