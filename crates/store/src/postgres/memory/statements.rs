//! The SQL of memory, all of it. Like the rest of everyday work, each statement finds its rows by a key.

/// How far the memory of a session that is this user's is, if it has any.
pub(super) const WATERMARK: &str = r#"SELECT observed, revision, trusted, failures
       FROM sessions LEFT JOIN watermarks ON watermarks.session = sessions.id AND watermarks."user" = sessions."user"
      WHERE sessions.id = $1 AND sessions."user" = $2"#;

/// The same, held until the end of the transaction.
pub(super) const HOLD_WATERMARK: &str =
    r#"SELECT revision FROM watermarks WHERE session = $1 AND "user" = $2 FOR UPDATE"#;

/// The watermark of a session that has none.
pub(super) const BEGIN_MEMORY: &str = r#"INSERT INTO watermarks (session, "user")
     SELECT id, "user" FROM sessions WHERE id = $1 AND "user" = $2
     ON CONFLICT (session) DO NOTHING"#;

/// Whether a session is this user's.
pub(super) const OWNS: &str = r#"SELECT 1 FROM sessions WHERE id = $1 AND "user" = $2"#;

/// Turns were observed, unless somebody else was faster.
pub(super) const MOVE_OBSERVED: &str = r#"UPDATE watermarks SET observed = $4, trusted = $5, revision = revision + 1, failures = 0
      WHERE session = $1 AND "user" = $2 AND revision = $3 AND observed <= $4"#;

/// Any other step, unless somebody else was faster.
pub(super) const MOVE_REVISION: &str = r#"UPDATE watermarks SET revision = revision + 1, failures = 0
      WHERE session = $1 AND "user" = $2 AND revision = $3"#;

/// The model failed once more.
pub(super) const COUNT_FAILURE: &str = r#"UPDATE watermarks SET failures = failures + 1
      WHERE session = $1 AND "user" = $2 RETURNING failures"#;

/// The turns from an ordinal on; the columns from the sixth on are those of the look back.
pub(super) const UNOBSERVED: &str = r#"SELECT turns.ordinal, question.time, NULL,
            EXISTS (SELECT FROM forgotten_turns
                     WHERE forgotten_turns.session = turns.session AND forgotten_turns.ordinal = turns.ordinal),
            turns.ordinal = (SELECT ordinal FROM turns AS last WHERE last.session = turns.session
                              ORDER BY ordinal DESC LIMIT 1),
            turns.turn, turns.first_seq, turns.finished, question.body,
            turns.answer_seq, answer.author, answer.frame, answer.body, delegation.body
       FROM sessions
       JOIN turns ON turns.session = sessions.id
       JOIN events AS question
         ON question.session = turns.session AND question.seq = turns.question_seq
       LEFT JOIN events AS answer
         ON answer.session = turns.session AND answer.seq = turns.answer_seq
       LEFT JOIN events AS delegation
         ON delegation.session = turns.session AND delegation.seq = turns.delegation_seq
      WHERE sessions.id = $1 AND sessions."user" = $2 AND turns.ordinal >= $3
      ORDER BY turns.ordinal LIMIT $4"#;

/// The ordinal of a turn that has just begun.
pub(super) const LAST_TURN: &str =
    "SELECT ordinal, turn FROM turns WHERE session = $1 ORDER BY ordinal DESC LIMIT 1";

/// A new observation or reflection of a session that is this user's.
pub(super) const INSERT_RECOLLECTION: &str = r#"INSERT INTO recollections ("user", session, generation, first_turn, last_turn, text, source, trusted, created)
     SELECT "user", id, $3, $4, $5, $6, $7, $8, $9 FROM sessions WHERE id = $1 AND "user" = $2
     RETURNING id"#;

/// The same words, noted in this session before.
pub(super) const SAME_NOTE: &str = r#"SELECT id FROM recollections
      WHERE session = $1 AND "user" = $2 AND generation = 0 AND text = $3 AND source = $4
      ORDER BY id LIMIT 1"#;

/// Rows went into a later one.
pub(super) const MAKE_PARTS: &str = r#"UPDATE recollections SET part_of = $4
      WHERE id = ANY ($3) AND session = $1 AND "user" = $2 AND part_of IS NULL RETURNING id"#;

macro_rules! recollections {
    ($rest:literal) => {
        concat!(
            r#"SELECT id, first_turn, last_turn, text, source, trusted, created, part_of
               FROM recollections WHERE session = $1 AND "user" = $2 AND generation = $3 "#,
            $rest
        )
    };
}

/// The newest of one generation.
pub(super) const NEWEST: &str = recollections!("ORDER BY id DESC LIMIT $4");

macro_rules! newest_loose {
    ($generation:literal) => {
        concat!(
            "(SELECT ",
            $generation,
            r#"::bigint, id, first_turn, last_turn, text, source, trusted, created, NULL
               FROM recollections
              WHERE session = $1 AND "user" = $2 AND generation = "#,
            $generation,
            " AND part_of IS NULL ORDER BY id DESC LIMIT $3)"
        )
    };
}

/// What a prompt shows of a session that is this user's: -2 is the session, -1 what was saved, the others are generations,
/// the newest of which went into no later one.
pub(super) const SHOWN: &str = concat!(
    r#"SELECT -2::bigint, 0::bigint, NULL::bigint, NULL::bigint, '', '', 0::bigint, 0::bigint, NULL
         FROM sessions WHERE id = $1 AND "user" = $2
        UNION ALL "#,
    newest_loose!("2"),
    " UNION ALL ",
    newest_loose!("1"),
    " UNION ALL ",
    newest_loose!("0"),
    r#" UNION ALL
       (SELECT -1::bigint, id, NULL, NULL, text, source, trusted, created, tags
          FROM saved_memories WHERE "user" = $2 ORDER BY id DESC LIMIT $3)"#
);

/// The oldest of one generation that went into no later one.
pub(super) const OLDEST_LOOSE: &str = recollections!("AND part_of IS NULL ORDER BY id LIMIT $4");

/// What rows went into.
pub(super) const WHOLES_OF: &str = r#"SELECT part_of, 1::bigint FROM recollections
      WHERE id = ANY ($3) AND session = $1 AND "user" = $2 AND part_of IS NOT NULL"#;

/// What rows were made of.
pub(super) const PARTS_OF: &str = r#"SELECT id, generation FROM recollections
      WHERE part_of = ANY ($3) AND session = $1 AND "user" = $2"#;

/// Rows are forgotten; gives those that were there.
pub(super) const DELETE_RECOLLECTIONS: &str = r#"DELETE FROM recollections
      WHERE id = ANY ($3) AND session = $1 AND "user" = $2 AND least(generation, 1) = $4 RETURNING id"#;

/// Turns must not be observed.
pub(super) const FORGET_TURNS: &str = r#"INSERT INTO forgotten_turns (session, ordinal)
     SELECT sessions.id, turn.ordinal FROM sessions, unnest($3::bigint[]) AS turn (ordinal)
      WHERE sessions.id = $1 AND sessions."user" = $2
     ON CONFLICT (session, ordinal) DO NOTHING"#;

/// One copy at a time saves for a user. The lock ends with the transaction.
pub(super) const LOCK_SAVED: &str = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' saved_memories ' || $1, 0))";

/// How many memories a user has saved.
pub(super) const COUNT_SAVED: &str = r#"SELECT count(*) FROM saved_memories WHERE "user" = $1"#;

/// The same words, saved before. The tags are new words, so the label is the lower of both.
pub(super) const RETAG_SAVED: &str = r#"UPDATE saved_memories SET tags = $3, trusted = least(trusted, $4)
      WHERE "user" = $1 AND text = $2 RETURNING id"#;

/// A new saved memory.
pub(super) const INSERT_SAVED: &str = r#"INSERT INTO saved_memories ("user", text, tags, source, trusted, created)
     VALUES ($1, $2, $3, $4, $5, $6) RETURNING id"#;

/// A user's saved memories, the newest first. Their columns are where those of recollections are.
pub(super) const SAVED: &str = r#"SELECT id, NULL, NULL, text, source, trusted, created, tags
       FROM saved_memories WHERE "user" = $1 ORDER BY id DESC LIMIT $2"#;

/// Saved memories are forgotten; gives those that were there.
pub(super) const DELETE_SAVED: &str =
    r#"DELETE FROM saved_memories WHERE id = ANY ($2) AND "user" = $1 RETURNING id"#;

/// What is asked every day.
#[cfg(test)]
pub(in crate::postgres) const EVERYDAY: &[&str] = &[
    WATERMARK,
    HOLD_WATERMARK,
    BEGIN_MEMORY,
    OWNS,
    MOVE_OBSERVED,
    MOVE_REVISION,
    COUNT_FAILURE,
    UNOBSERVED,
    LAST_TURN,
    INSERT_RECOLLECTION,
    SAME_NOTE,
    MAKE_PARTS,
    NEWEST,
    SHOWN,
    OLDEST_LOOSE,
    WHOLES_OF,
    PARTS_OF,
    DELETE_RECOLLECTIONS,
    FORGET_TURNS,
    LOCK_SAVED,
    COUNT_SAVED,
    RETAG_SAVED,
    INSERT_SAVED,
    SAVED,
    DELETE_SAVED,
];
