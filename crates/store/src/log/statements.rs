//! The statements that write sessions and their logs.
//!
//! PostgreSQL appends with one statement. It locks the session's lease row, so that no other replica can take the session over
//! between the check and the commit, and writes only if the log ends where the batch begins. Batches that change few other tables
//! use shorter forms of the statement, because PostgreSQL sets up a write for every table that a statement names, even if it
//! writes no row.

use crate::archive::is_hidden;
use crate::backend::{Sql, statements};

statements! {
    INSERT_SESSION: r#"INSERT INTO sessions (id, "user", created, updated) VALUES ($1, $2, $3, $3) ON CONFLICT (id) DO NOTHING"#;

    /// Returns a row if the session has this user and creation time, and no events yet.
    IS_NEW: r#"SELECT 1 FROM sessions
      WHERE id = $1 AND "user" = $2 AND created = $3 AND NOT EXISTS (SELECT 1 FROM events WHERE session = $1)"#;

    IS_VISIBLE: concat!(
        "SELECT 1 FROM sessions WHERE id = $1 AND NOT (",
        is_hidden!(),
        ")"
    );

    LOG_END: "SELECT seq, hash FROM events WHERE session = $1 ORDER BY seq DESC LIMIT 1";

    PREVIOUS_HASH: "SELECT hash FROM events WHERE session = $1 AND seq = $2";

    REQUESTS: "SELECT id, request FROM approvals WHERE session = $1
        AND id /*postgres = ANY ($2::text[])*/ /*sqlite IN (SELECT value FROM json_each($2))*/";

    INSERT_EVENT: "INSERT INTO events (session, seq, turn, frame, time, body, author, hash)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

    EVENTS: "SELECT seq, turn, frame, author, time, body FROM events
     WHERE session = $1 AND seq >= $2 ORDER BY seq LIMIT $3";

    /// Selects the events of one turn: from its first event to the one before the next turn's first event.
    TURN_EVENTS: "SELECT seq, turn, frame, author, time, body FROM events
     WHERE session = $1
       AND seq >= (SELECT max(first_seq) FROM turns WHERE session = $1 AND turn = $2)
       AND seq < coalesce((SELECT next.first_seq FROM turns AS own
                             JOIN turns AS next ON next.session = own.session AND next.ordinal = own.ordinal + 1
                            WHERE own.session = $1 AND own.turn = $2
                            ORDER BY own.first_seq DESC LIMIT 1), 9223372036854775807)
     ORDER BY seq";

    UNDONE_SEQ: "SELECT max(undone_seq) FROM turns WHERE session = $1 AND turn = $2";

    REMOTE_THREAD: "SELECT context, task FROM remote_threads WHERE session = $1 AND agent = $2";
}

/// The forms of PostgreSQL's append. `$1` is the session, `$3` the first `seq`, `$4` the hash before it, and `$5` to `$10`
/// are the columns of the events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Append {
    /// For batches that change no other tables.
    pub log_only: Sql,
    /// For batches that change only turns and the session, with the [`RowChanges`](crate::projection::RowChanges) in `$11`.
    pub with_turn: Sql,
    /// For batches with any other changes, in `$11`.
    pub with_changes: Sql,
}

/// Defines the three forms of an append with a given guard.
macro_rules! append {
    ($guard:expr) => {
        Append {
            log_only: Sql::only_postgres(concat!(
                $guard,
                check_end!("allowed"),
                insert_events!(),
                select_reply!("0::bigint")
            )),
            with_turn: Sql::only_postgres(concat!(
                $guard,
                check_end!("allowed"),
                insert_events!(),
                update_turns!(),
                select_reply!("0::bigint")
            )),
            with_changes: Sql::only_postgres(concat!(
                $guard,
                check_end!("allowed"),
                insert_events!(),
                update_turns!(),
                update_others!(),
                select_reply!("0::bigint")
            )),
        }
    };
}

/// Defines a subquery that has a row if the guard has a row and the log ends where the batch begins.
macro_rules! check_end {
    ($name:literal) => {
        concat!(
            r#"
     log_end AS MATERIALIZED (
        SELECT seq, hash FROM events WHERE session = $1 ORDER BY seq DESC LIMIT 1),
     "#,
            $name,
            r#" AS MATERIALIZED (
        SELECT sessions."user" AS owner,
               coalesce((SELECT max(ordinal) + 1 FROM turns WHERE session = $1), 0) AS turns
          FROM guard, sessions
         WHERE sessions.id = $1
           AND coalesce((SELECT seq FROM log_end), 0) + 1 = $3
           AND coalesce((SELECT hash FROM log_end), '') = $4),"#
        )
    };
}

/// Writes the log if `allowed` has a row.
macro_rules! insert_events {
    () => {
        r#"
     written AS (
        INSERT INTO events (session, seq, turn, frame, author, time, body, hash)
        SELECT $1, $3 + event.place - 1, event.turn, event.frame, event.author, event.time, event.body, event.hash
          FROM allowed, unnest($5::text[], $6::text[], $7::text[], $8::bigint[], $9::text[], $10::bytea[])
               WITH ORDINALITY AS event (turn, frame, author, time, body, hash, place)
        RETURNING 1)"#
    };
}

/// Updates `turns` and `sessions`. Undone turns are passed as an array, because PostgreSQL expects an array to be short and then
/// looks up `turns` by key.
macro_rules! update_turns {
    () => {
        r#",
     started AS (
        INSERT INTO turns (session, ordinal, turn, first_seq, question_seq, delegation_seq, answer_seq, finished, undone_seq)
        SELECT $1, allowed.turns + new.place, new.turn, new.first_seq, new.first_seq, new.delegation, new.answer, new.finished,
               new.undone
          FROM allowed, jsonb_to_recordset($11::jsonb -> 'started')
               AS new (place bigint, turn text, first_seq bigint, delegation bigint, answer bigint, finished bigint,
                       undone bigint)),
     continued AS (
        UPDATE turns
           SET delegation_seq = coalesce(more.delegation, turns.delegation_seq),
               answer_seq = CASE more.finished WHEN 1 THEN more.answer ELSE turns.answer_seq END,
               finished = greatest(more.finished, turns.finished),
               undone_seq = coalesce(turns.undone_seq, more.undone)
          FROM allowed, jsonb_to_recordset($11 -> 'continued')
               AS more (turn text, delegation bigint, answer bigint, finished bigint, undone bigint)
         WHERE turns.session = $1 AND turns.ordinal = allowed.turns - 1 AND turns.turn = more.turn),
     undone AS (
        UPDATE turns SET undone_seq = coalesce(turns.undone_seq, (past.row ->> 'seq')::bigint)
          FROM allowed, unnest(ARRAY(SELECT jsonb_array_elements($11 -> 'undone'))) AS past (row)
         WHERE turns.session = $1 AND turns.turn = past.row ->> 'turn'),
     used AS (
        UPDATE sessions
           SET updated = coalesce(change.last_finished, CASE allowed.turns WHEN 0 THEN change.first_asked END, updated),
               title = coalesce(CASE allowed.turns WHEN 0 THEN change.title END, sessions.title)
          FROM allowed, jsonb_to_record($11 -> 'session') AS change (title text, first_asked bigint, last_finished bigint)
         WHERE id = $1 AND (change.last_finished IS NOT NULL OR allowed.turns = 0 AND change.first_asked IS NOT NULL))"#
    };
}

/// Updates all other tables. Digests are passed as an array, because PostgreSQL expects an array to be short and then looks up
/// `attachment_puts` by key.
macro_rules! update_others {
    () => {
        r#",
     requested AS (
        INSERT INTO approvals (session, id, "user", turn, time, request, pattern, folder)
        SELECT $1, ask.id, allowed.owner, ask.turn, ask.time, ask.request, ask.pattern, ask.folder
          FROM allowed, jsonb_to_recordset($11 -> 'requested')
               AS ask (id text, turn text, time bigint, request text, pattern text, folder text)),
     granted AS (
        UPDATE approvals
           SET time = yes.time, pattern = yes.pattern, folder = yes.folder, request = yes.request
          FROM allowed, jsonb_to_recordset($11 -> 'granted')
               AS yes (id text, time bigint, pattern text, folder text, request text)
         WHERE approvals.session = $1 AND approvals.id = yes.id),
     answered AS (
        DELETE FROM approvals USING allowed, jsonb_array_elements_text($11 -> 'answered') AS answer (id)
         WHERE approvals.session = $1 AND approvals.id = answer.id),
     called AS (
        INSERT INTO remote_threads (session, agent, context, task)
        SELECT $1, remote.agent, remote.context, remote.task
          FROM allowed, jsonb_to_recordset($11 -> 'threads') AS remote (agent text, context text, task text)
            ON CONFLICT (session, agent) DO UPDATE SET context = excluded.context, task = excluded.task),
     returned AS (
        UPDATE remote_threads SET task = NULL
          FROM allowed, jsonb_array_elements_text($11 -> 'ended_threads') AS ended (agent)
         WHERE remote_threads.session = $1 AND remote_threads.agent = ended.agent),
     referred AS (
        INSERT INTO attachment_references (session, digest, "user")
        SELECT $1, file.digest,
               CASE WHEN starts_with(allowed.owner, chr(1) || '1') THEN substr(allowed.owner, 3) ELSE allowed.owner END
          FROM allowed, unnest(ARRAY(SELECT jsonb_array_elements_text($11 -> 'attachments'))) AS file (digest)
            ON CONFLICT (session, digest) DO NOTHING
        RETURNING "user", digest),
     used_up AS (
        DELETE FROM attachment_puts AS put USING referred
         WHERE put."user" = referred."user" AND put.digest = referred.digest
           AND put.time = (SELECT min(time) FROM attachment_puts AS oldest
                            WHERE oldest."user" = referred."user" AND oldest.digest = referred.digest))"#
    };
}

/// Selects the reply of an append, which `AppendReply` reads.
macro_rules! select_reply {
    ($tasks:literal) => {
        concat!(
            r#"
     SELECT EXISTS (SELECT FROM sessions WHERE id = $1),
            EXISTS (SELECT FROM guard),
            (SELECT seq FROM log_end),
            (SELECT count(*) FROM written),
            (SELECT hash FROM events WHERE session = $1 AND seq = $3 + cardinality($10::bytea[]) - 1), "#,
            $tasks
        )
    };
}

/// The guard for the owner of a session: `$2` is the fencing token of its lease.
macro_rules! lease_guard {
    () => {
        r#"WITH guard AS MATERIALIZED (
        SELECT 1 FROM holds
         WHERE session = $1 AND fence = $2 AND until > clock_timestamp()
           AND NOT EXISTS (SELECT FROM sessions WHERE id = $1 AND starts_with("user", chr(1) || '1'))
           FOR NO KEY UPDATE),"#
    };
}

pub(crate) const APPEND_LEASED: Append = append!(lease_guard!());

macro_rules! append_first {
    ($changed:expr) => {
        Sql::only_postgres(concat!(
            lease_guard!(),
            check_end!("ready"),
            r#"
     task AS (
        INSERT INTO tasks (id, "user", context, state, running, updated, body, revision, attempts, message)
        SELECT $12, $13, $14, $15, $16, $17, $18, $19, $20, $21 FROM ready
            ON CONFLICT ("user", message) WHERE message IS NOT NULL DO NOTHING
        RETURNING 1),
     allowed AS MATERIALIZED (SELECT ready.* FROM ready, task),"#,
            insert_events!(),
            update_turns!(),
            $changed,
            select_reply!("(SELECT count(*) FROM task)")
        ))
    };
}

/// Appends the first events of a turn and inserts its task, whose columns and message are `$12` to `$21`. The first form is for
/// batches that change only turns, the second for any changes.
pub(crate) const APPEND_FIRST: [Sql; 2] = [append_first!(""), append_first!(update_others!())];

macro_rules! append_last {
    ($changed:expr) => {
        Sql::only_postgres(concat!(
            lease_guard!(),
            check_end!("allowed"),
            insert_events!(),
            update_turns!(),
            $changed,
            r#",
     task AS (
        UPDATE tasks SET context = $14, state = $15, running = $16, updated = $17, body = $18, revision = $19, attempts = $20,
               cancelled = least(cancelled, $16)
          FROM allowed WHERE id = $12 AND "user" = $13 AND revision = $19 - 1
        RETURNING 1),
     released AS (UPDATE holds SET until = '-infinity' FROM allowed WHERE session = $1 AND fence = $2)"#,
            select_reply!("(SELECT count(*) FROM task)")
        ))
    };
}

/// Appends the last events of a turn, replaces its task, whose columns are `$12` to `$20`, and releases the lease. The first form
/// is for batches that change only turns, the second for any changes.
pub(crate) const APPEND_LAST: [Sql; 2] = [append_last!(""), append_last!(update_others!())];

/// Appends to a session that no other replica owns: `$2` is this replica.
pub(crate) const APPEND_FREE: Append = append!(
    r#"WITH guard AS (
        INSERT INTO holds (session, holder, fence, until)
        SELECT id, $2, 0, '-infinity' FROM sessions WHERE id = $1 AND NOT starts_with("user", chr(1) || '1')
            ON CONFLICT (session) DO UPDATE SET fence = holds.fence
         WHERE holds.until <= clock_timestamp() OR holds.holder = excluded.holder
        RETURNING 1),"#
);

/// Appends to a hidden session: `$2` is not used.
pub(crate) const APPEND_HIDDEN: Append = append!(
    r#"WITH guard AS MATERIALIZED (
        SELECT $2::bigint FROM sessions
         WHERE id = $1 AND starts_with("user", chr(1) || '1') FOR NO KEY UPDATE),"#
);

/// The appends of imports and of events that change other tables.
#[cfg(test)]
pub(crate) const RARE_APPENDS: [Sql; 11] = [
    APPEND_FIRST[0],
    APPEND_FIRST[1],
    APPEND_LAST[0],
    APPEND_LAST[1],
    APPEND_HIDDEN.log_only,
    APPEND_FREE.with_turn,
    APPEND_LEASED.with_turn,
    APPEND_HIDDEN.with_turn,
    APPEND_FREE.with_changes,
    APPEND_LEASED.with_changes,
    APPEND_HIDDEN.with_changes,
];
