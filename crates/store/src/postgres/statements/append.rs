//! The one statement that appends to a log, with all that follows from the events on other tables.
//!
//! It locks the row that says who holds the session, so that nobody can take the session over between its check and its
//! commit, and writes only if the log ends where the batch begins. What it found is its answer. Its values are those of
//! [`Effects`](crate::postgres::effects::Effects) in their order. Only a batch with attachments refers to them, in a form of
//! the statement with one more value, so that all others pay nothing for it.

/// An append in its two forms.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Append {
    /// Of a batch without attachments.
    pub plain: &'static str,
    /// Of a batch whose events refer to the digests in `$39`.
    pub with_attachments: &'static str,
}

/// Both forms of an append that begins with a guard.
macro_rules! append {
    ($guard:literal) => {
        Append {
            plain: concat!($guard, written!(), found!()),
            with_attachments: concat!($guard, written!(), referred!(), found!()),
        }
    };
}

/// What every append writes once the session is known to be ours.
macro_rules! written {
    () => {
        r#"
     log_end AS MATERIALIZED (
        SELECT seq, hash FROM events WHERE session = $1 ORDER BY seq DESC LIMIT 1),
     may AS MATERIALIZED (
        SELECT sessions."user" AS owner,
               coalesce((SELECT max(ordinal) + 1 FROM turns WHERE session = $1), 0) AS turns
          FROM guard, sessions
         WHERE sessions.id = $1
           AND coalesce((SELECT seq FROM log_end), 0) + 1 = $3
           AND coalesce((SELECT hash FROM log_end), '') = $4),
     written AS (
        INSERT INTO events (session, seq, turn, frame, author, time, body, hash)
        SELECT $1, $3 + event.place - 1, event.turn, event.frame, event.author, event.time, event.body, event.hash
          FROM may, unnest($5::text[], $6::text[], $7::text[], $8::bigint[], $9::text[], $10::bytea[])
               WITH ORDINALITY AS event (turn, frame, author, time, body, hash, place)
        RETURNING 1),
     began AS (
        INSERT INTO turns (session, ordinal, turn, first_seq, question_seq, delegation_seq, answer_seq, finished)
        SELECT $1, may.turns + new.place - 1, new.turn, new.seq, new.seq, new.delegation, new.answer, new.finished
          FROM may, unnest($11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[])
               WITH ORDINALITY AS new (turn, seq, delegation, answer, finished, place)),
     went_on AS (
        UPDATE turns
           SET delegation_seq = coalesce(more.delegation, turns.delegation_seq),
               answer_seq = CASE more.finished WHEN 1 THEN more.answer ELSE turns.answer_seq END,
               finished = greatest(more.finished, turns.finished)
          FROM may, unnest($16::text[], $17::bigint[], $18::bigint[], $19::bigint[])
               AS more (turn, delegation, answer, finished)
         WHERE turns.session = $1 AND turns.ordinal = may.turns - 1 AND turns.turn = more.turn),
     used AS (
        UPDATE sessions
           SET updated = coalesce($22, CASE may.turns WHEN 0 THEN $21 END, updated),
               title = coalesce(CASE may.turns WHEN 0 THEN $20 END, title)
          FROM may
         WHERE id = $1 AND ($22::bigint IS NOT NULL OR may.turns = 0 AND $21::bigint IS NOT NULL)),
     asked AS (
        INSERT INTO approvals (session, id, "user", turn, time, request, pattern, folder)
        SELECT $1, ask.id, may.owner, ask.turn, ask.time, ask.request, ask.pattern, ask.folder
          FROM may, unnest($23::text[], $24::text[], $25::bigint[], $26::text[], $27::text[], $28::text[])
               AS ask (id, turn, time, request, pattern, folder)),
     granted AS (
        UPDATE approvals
           SET time = yes.time, pattern = yes.pattern, folder = yes.folder, request = yes.request
          FROM may, unnest($29::text[], $30::bigint[], $31::text[], $32::text[], $33::text[])
               AS yes (id, time, pattern, folder, request)
         WHERE approvals.session = $1 AND approvals.id = yes.id),
     answered AS (
        DELETE FROM approvals USING may WHERE approvals.session = $1 AND approvals.id = ANY ($34::text[])),
     called AS (
        INSERT INTO remote_threads (session, agent, context, task)
        SELECT $1, remote.agent, remote.context, remote.task
          FROM may, unnest($35::text[], $36::text[], $37::text[]) AS remote (agent, context, task)
            ON CONFLICT (session, agent) DO UPDATE SET context = excluded.context, task = excluded.task),
     returned AS (
        UPDATE remote_threads SET task = NULL
          FROM may WHERE remote_threads.session = $1 AND remote_threads.agent = ANY ($38::text[]))"#
    };
}

/// What an append with attachments writes besides. The first event of a session that refers to bytes uses up their oldest put.
macro_rules! referred {
    () => {
        r#",
     referred AS (
        INSERT INTO attachment_references (session, digest, "user")
        SELECT $1, file.digest,
               CASE WHEN starts_with(may.owner, chr(1) || '1') THEN substr(may.owner, 3) ELSE may.owner END
          FROM may, unnest($39::text[]) AS file (digest)
            ON CONFLICT (session, digest) DO NOTHING
        RETURNING "user", digest),
     used_up AS (
        DELETE FROM attachment_puts AS put USING referred
         WHERE put."user" = referred."user" AND put.digest = referred.digest
           AND put.time = (SELECT min(time) FROM attachment_puts AS oldest
                            WHERE oldest."user" = referred."user" AND oldest.digest = referred.digest))"#
    };
}

/// What an append answers.
macro_rules! found {
    () => {
        r#"
     SELECT EXISTS (SELECT FROM sessions WHERE id = $1),
            EXISTS (SELECT FROM guard),
            (SELECT seq FROM log_end),
            (SELECT count(*) FROM written),
            (SELECT hash FROM events WHERE session = $1 AND seq = $3 + cardinality($10::bytea[]) - 1)"#
    };
}

/// An append by the holder of the session: `$2` is the number of the hold.
pub(crate) const APPEND_HELD: Append = append!(
    r#"WITH guard AS MATERIALIZED (
        SELECT 1 FROM holds
         WHERE session = $1 AND fence = $2 AND until > clock_timestamp()
           AND NOT EXISTS (SELECT FROM sessions WHERE id = $1 AND starts_with("user", chr(1) || '1'))
           FOR NO KEY UPDATE),"#
);

/// An append to a session that nobody else holds: `$2` is who we are.
pub(crate) const APPEND_FREE: Append = append!(
    r#"WITH guard AS (
        INSERT INTO holds (session, holder, fence, until)
        SELECT id, $2, 0, '-infinity' FROM sessions WHERE id = $1 AND NOT starts_with("user", chr(1) || '1')
            ON CONFLICT (session) DO UPDATE SET fence = holds.fence
         WHERE holds.until <= clock_timestamp() OR holds.holder = excluded.holder
        RETURNING 1),"#
);

/// An append to a session that is hidden, by whoever brings it: `$2` says nothing.
pub(crate) const APPEND_HIDDEN: Append = append!(
    r#"WITH guard AS MATERIALIZED (
        SELECT $2::bigint FROM sessions
         WHERE id = $1 AND starts_with("user", chr(1) || '1') FOR NO KEY UPDATE),"#
);
