//! The statements on memory. Each finds its rows by key.
//!
//! Statements for [`Tx::batch`](crate::backend::Tx::batch) take a single value per column in SQLite, and an array per
//! column in PostgreSQL: `= /*postgres ANY*/ ($2)`.

use crate::backend::statements;

macro_rules! newest_uncondensed {
    ($generation:literal) => {
        concat!(
            " UNION ALL SELECT * FROM (
              SELECT ",
            $generation,
            r#"::bigint, id, first_turn, last_turn, text, source, trusted, created, NULL
                FROM recollections /*sqlite INDEXED BY recollections_loose*/
               WHERE session = $1 AND "user" = $2 AND generation = "#,
            $generation,
            " AND part_of IS NULL ORDER BY id DESC LIMIT $3) AS newest"
        )
    };
}

statements! {
    WATERMARK: r#"SELECT coalesce(observed, 0), coalesce(revision, 0), coalesce(trusted, 1), coalesce(failures, 0)
       FROM sessions LEFT JOIN watermarks ON watermarks.session = sessions.id AND watermarks."user" = sessions."user"
      WHERE sessions.id = $1 AND sessions."user" = $2"#;

    LOCK_WATERMARK: r#"SELECT revision FROM watermarks WHERE session = $1 AND "user" = $2 /*postgres FOR UPDATE*/"#;

    INSERT_WATERMARK: r#"INSERT INTO watermarks (session, "user")
     SELECT id, "user" FROM sessions WHERE id = $1 AND "user" = $2
     ON CONFLICT (session) DO NOTHING"#;

    OWNS: r#"SELECT 1 FROM sessions WHERE id = $1 AND "user" = $2"#;

    /// Moves the watermark past observed turns, unless another step was committed first.
    MOVE_OBSERVED: r#"UPDATE watermarks SET observed = $4, trusted = $5, revision = revision + 1, failures = 0
      WHERE session = $1 AND "user" = $2 AND revision = $3 AND observed <= $4"#;

    MOVE_REVISION: r#"UPDATE watermarks SET revision = revision + 1, failures = 0
      WHERE session = $1 AND "user" = $2 AND revision = $3"#;

    COUNT_FAILURE: r#"UPDATE watermarks SET failures = failures + 1 WHERE session = $1 AND "user" = $2 RETURNING failures"#;

    /// Selects the turns from an ordinal on. The columns from the fifth on are those of an exchange.
    UNOBSERVED: r#"SELECT turns.ordinal, question.time,
            EXISTS (SELECT 1 FROM forgotten_turns
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

    LAST_TURN: "SELECT ordinal, turn FROM turns WHERE session = $1 ORDER BY ordinal DESC LIMIT 1";

    INSERT_RECOLLECTION: r#"INSERT INTO recollections ("user", session, generation, first_turn, last_turn, text, source, trusted, created)
     SELECT "user", id, $3, $4, $5, $6, $7, $8, $9 FROM sessions WHERE id = $1 AND "user" = $2
     RETURNING id"#;

    SAME_NOTE: r#"SELECT id FROM recollections
      WHERE session = $1 AND "user" = $2 AND generation = 0 AND text = $3 AND source = $4
      ORDER BY id LIMIT 1"#;

    SET_PARTS: r#"UPDATE recollections SET part_of = $3
      WHERE id = /*postgres ANY*/ ($4) AND session = $1 AND "user" = $2 AND part_of IS NULL RETURNING id"#;

    NEWEST: r#"SELECT generation, id, first_turn, last_turn, text, source, trusted, created, part_of FROM recollections
      WHERE session = $1 AND "user" = $2 AND generation = $3 ORDER BY id DESC LIMIT $4"#;

    OLDEST_UNCONDENSED: r#"SELECT generation, id, first_turn, last_turn, text, source, trusted, created, part_of
       FROM recollections /*sqlite INDEXED BY recollections_loose*/
      WHERE session = $1 AND "user" = $2 AND generation = $3 AND part_of IS NULL ORDER BY id LIMIT $4"#;

    /// Selects the memory that a prompt includes, in no particular order. The first column is the generation of a
    /// recollection, -1 for a saved memory, or -2 for the session itself, which is selected only if it belongs to this
    /// user.
    PROMPT_MEMORY: concat!(
        r#"SELECT -2::bigint, 0::bigint, NULL::bigint, NULL::bigint, '', '', 0::bigint, 0::bigint, NULL
         FROM sessions WHERE id = $1 AND "user" = $2"#,
        newest_uncondensed!("2"),
        newest_uncondensed!("1"),
        newest_uncondensed!("0"),
        r#" UNION ALL SELECT * FROM (
        SELECT -1::bigint, id, NULL::bigint, NULL::bigint, text, source, trusted, created, tags
          FROM saved_memories WHERE "user" = $2 ORDER BY id DESC LIMIT $3) AS newest"#
    );

    /// Selects the reflections that recollections were condensed into.
    WHOLES_OF: r#"SELECT part_of, 1::bigint FROM recollections
      WHERE id = /*postgres ANY*/ ($3) AND session = $1 AND "user" = $2 AND part_of IS NOT NULL"#;

    /// Selects the recollections that reflections were condensed from.
    PARTS_OF: r#"SELECT id, generation FROM recollections
      WHERE part_of = /*postgres ANY*/ ($3) AND session = $1 AND "user" = $2"#;

    /// Deletes observations, or reflections if `$3` is 1.
    DELETE_RECOLLECTIONS: r#"DELETE FROM recollections WHERE id = /*postgres ANY*/ ($4) AND session = $1 AND "user" = $2
        AND /*sqlite min*/ /*postgres least*/ (generation, 1) = $3 RETURNING id"#;

    FORGET_TURNS: r#"INSERT INTO forgotten_turns (session, ordinal)
     SELECT id, /*postgres unnest*/ ($3::bigint[]) FROM sessions WHERE id = $1 AND "user" = $2
     ON CONFLICT (session, ordinal) DO NOTHING"#;

    /// Takes a lock that lets only one replica at a time save memories of a user. The lock lasts until the end of the
    /// transaction.
    LOCK_SAVED: r#"SELECT /*postgres pg_advisory_xact_lock(hashtextextended(current_schema() || ' saved_memories ' ||*/ $1 /*postgres , 0))*/"#;

    COUNT_SAVED: r#"SELECT count(*) FROM saved_memories WHERE "user" = $1"#;

    /// Replaces the tags of the saved memory that has this text. The new tags may be less trusted, so the lower trust
    /// is stored.
    RETAG_SAVED: r#"UPDATE saved_memories SET tags = $3, trusted = /*sqlite min*/ /*postgres least*/ (trusted, $4)
      WHERE "user" = $1 AND text = $2 RETURNING id"#;

    INSERT_SAVED: r#"INSERT INTO saved_memories ("user", text, tags, source, trusted, created)
     VALUES ($1, $2, $3, $4, $5, $6) RETURNING id"#;

    /// Selects a user's saved memories, newest first, in the columns of [`PROMPT_MEMORY`].
    SAVED: r#"SELECT NULL, id, NULL, NULL, text, source, trusted, created, tags
       FROM saved_memories WHERE "user" = $1 ORDER BY id DESC LIMIT $2"#;

    SESSION_OF_MEMORY: r#"SELECT session FROM recollections
      WHERE id = $2 AND "user" = $1 AND /*sqlite min*/ /*postgres least*/ (generation, 1) = $3"#;

    SAVED_MEMORY: r#"SELECT 1 FROM saved_memories WHERE id = $2 AND "user" = $1"#;

    DELETE_SAVED: r#"DELETE FROM saved_memories WHERE id = /*postgres ANY*/ ($2) AND "user" = $1 RETURNING id"#;
}
