//! The SQL of memory, all of it. Like the rest of everyday work, each statement finds its rows by a key.

/// How far a session's memory is.
pub(super) const WATERMARK: &str = "SELECT observed, revision, trusted, failures FROM watermarks
      WHERE session = ?1 AND user = ?2";

/// The watermark of a session that has none.
pub(super) const BEGIN_MEMORY: &str = "INSERT INTO watermarks (session, user)
     SELECT id, user FROM sessions WHERE id = ?1 AND user = ?2
     ON CONFLICT (session) DO NOTHING";

/// Whether a session is this user's.
pub(super) const OWNS: &str = "SELECT 1 FROM sessions WHERE id = ?1 AND user = ?2";

/// Turns were observed, unless somebody else was faster.
pub(super) const MOVE_OBSERVED: &str =
    "UPDATE watermarks SET observed = ?4, trusted = ?5, revision = revision + 1, failures = 0
      WHERE session = ?1 AND user = ?2 AND revision = ?3 AND observed <= ?4";

/// Any other step, unless somebody else was faster.
pub(super) const MOVE_REVISION: &str = "UPDATE watermarks SET revision = revision + 1, failures = 0
      WHERE session = ?1 AND user = ?2 AND revision = ?3";

/// The model failed once more.
pub(super) const COUNT_FAILURE: &str = "UPDATE watermarks SET failures = failures + 1
      WHERE session = ?1 AND user = ?2 RETURNING failures";

/// The turns from an ordinal on, as the look back reads them.
pub(super) const UNOBSERVED: &str =
    "SELECT turns.turn, turns.first_seq, turns.finished, question.body,
            turns.answer_seq, answer.author, answer.frame, answer.body, delegation.body,
            turns.ordinal, question.time,
            EXISTS (SELECT 1 FROM forgotten_turns
                     WHERE forgotten_turns.session = turns.session AND forgotten_turns.ordinal = turns.ordinal),
            turns.ordinal = (SELECT max(ordinal) FROM turns AS last WHERE last.session = turns.session)
       FROM sessions
       JOIN turns ON turns.session = sessions.id
       JOIN events AS question
         ON question.session = turns.session AND question.seq = turns.question_seq
       LEFT JOIN events AS answer
         ON answer.session = turns.session AND answer.seq = turns.answer_seq
       LEFT JOIN events AS delegation
         ON delegation.session = turns.session AND delegation.seq = turns.delegation_seq
      WHERE sessions.id = ?1 AND sessions.user = ?2 AND turns.ordinal >= ?3
      ORDER BY turns.ordinal LIMIT ?4";

/// The ordinal of a turn that has just begun.
pub(super) const LAST_TURN: &str =
    "SELECT ordinal, turn FROM turns WHERE session = ?1 ORDER BY ordinal DESC LIMIT 1";

/// A new observation or reflection of a session that is this user's.
pub(super) const INSERT_RECOLLECTION: &str =
    "INSERT INTO recollections (user, session, generation, first_turn, last_turn, text, source, trusted, created)
     SELECT user, id, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM sessions WHERE id = ?1 AND user = ?2
     RETURNING id";

/// The same words, noted in this session before.
pub(super) const SAME_NOTE: &str = "SELECT id FROM recollections
      WHERE user = ?1 AND session = ?2 AND generation = 0 AND text = ?3 AND source = ?4";

/// A row went into a later one.
pub(super) const MAKE_PART: &str = "UPDATE recollections SET part_of = ?4
      WHERE id = ?1 AND user = ?2 AND session = ?3 AND part_of IS NULL";

/// The newest of one generation.
pub(super) const NEWEST: &str =
    "SELECT id, generation, first_turn, last_turn, text, source, trusted, created, part_of
       FROM recollections WHERE user = ?1 AND session = ?2 AND generation = ?3
      ORDER BY id DESC LIMIT ?4";

/// The newest of one generation that went into no later one.
pub(super) const NEWEST_LOOSE: &str =
    "SELECT id, generation, first_turn, last_turn, text, source, trusted, created, part_of
       FROM recollections INDEXED BY recollections_loose
      WHERE user = ?1 AND session = ?2 AND generation = ?3 AND part_of IS NULL
      ORDER BY id DESC LIMIT ?4";

/// The oldest of one generation that went into no later one.
pub(super) const OLDEST_LOOSE: &str =
    "SELECT id, generation, first_turn, last_turn, text, source, trusted, created, part_of
       FROM recollections INDEXED BY recollections_loose
      WHERE user = ?1 AND session = ?2 AND generation = ?3 AND part_of IS NULL
      ORDER BY id LIMIT ?4";

/// What one row went into.
pub(super) const WHOLE_OF: &str = "SELECT part_of FROM recollections
      WHERE id = ?1 AND user = ?2 AND session = ?3 AND part_of IS NOT NULL";

/// What one row was made of.
pub(super) const PARTS_OF: &str = "SELECT id, generation FROM recollections
      WHERE part_of = ?1 AND user = ?2 AND session = ?3";

/// A row is forgotten.
pub(super) const DELETE_RECOLLECTION: &str = "DELETE FROM recollections WHERE id = ?1 AND user = ?2 AND session = ?3 AND min(generation, 1) = ?4";

/// A turn must not be observed.
pub(super) const FORGET_TURN: &str = "INSERT INTO forgotten_turns (session, ordinal)
     SELECT id, ?3 FROM sessions WHERE id = ?1 AND user = ?2
     ON CONFLICT (session, ordinal) DO NOTHING";

/// How many memories a user has saved.
pub(super) const COUNT_SAVED: &str = "SELECT count(*) FROM saved_memories WHERE user = ?1";

/// The same words, saved before. The tags are new words, so the label is the lower of both.
pub(super) const RETAG_SAVED: &str =
    "UPDATE saved_memories SET tags = ?3, trusted = min(trusted, ?4)
      WHERE user = ?1 AND text = ?2 RETURNING id";

/// A new saved memory.
pub(super) const INSERT_SAVED: &str =
    "INSERT INTO saved_memories (user, text, tags, source, trusted, created)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING id";

/// A user's saved memories, the newest first.
pub(super) const SAVED: &str = "SELECT id, text, tags, source, trusted, created
       FROM saved_memories WHERE user = ?1 ORDER BY id DESC LIMIT ?2";

/// A saved memory is forgotten.
pub(super) const DELETE_SAVED: &str = "DELETE FROM saved_memories WHERE id = ?1 AND user = ?2";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::statements::tests::plan_of;

    #[test]
    fn no_statement_of_memory_scans_a_table_or_sorts() {
        let all = [
            WATERMARK,
            BEGIN_MEMORY,
            OWNS,
            MOVE_OBSERVED,
            MOVE_REVISION,
            COUNT_FAILURE,
            UNOBSERVED,
            LAST_TURN,
            INSERT_RECOLLECTION,
            SAME_NOTE,
            MAKE_PART,
            NEWEST,
            NEWEST_LOOSE,
            OLDEST_LOOSE,
            WHOLE_OF,
            PARTS_OF,
            DELETE_RECOLLECTION,
            FORGET_TURN,
            COUNT_SAVED,
            RETAG_SAVED,
            INSERT_SAVED,
            SAVED,
            DELETE_SAVED,
        ];
        for statement in all {
            let plan = plan_of(statement);
            let scans = plan.replace("SCAN CONSTANT ROW", "");
            assert!(
                !scans.contains("SCAN") && !plan.contains("TEMP B-TREE"),
                "{statement}\n{plan}"
            );
        }
    }
}
