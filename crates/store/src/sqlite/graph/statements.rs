//! The SQL of the graph, all of it. Each statement finds its rows by a key.

/// A user's number.
pub(super) const USER: &str = "SELECT id FROM graph_users WHERE user = ?1";

/// A new user.
pub(super) const INSERT_USER: &str = "INSERT INTO graph_users (user) VALUES (?1) RETURNING id";

/// An entity by its key.
pub(super) const ENTITY: &str = "SELECT id, kind FROM graph_entities WHERE user = ?1 AND key = ?2";

/// An entity by its number.
pub(super) const ENTITY_BY_ID: &str = "SELECT name, kind FROM graph_entities WHERE id = ?1";

/// A new entity.
pub(super) const INSERT_ENTITY: &str =
    "INSERT INTO graph_entities (user, key, name, kind) VALUES (?1, ?2, ?3, ?4) RETURNING id";

/// An entity is of another type.
pub(super) const SET_KIND: &str = "UPDATE graph_entities SET kind = ?2 WHERE id = ?1";

/// A predicate by its key.
pub(super) const PREDICATE: &str = "SELECT id FROM graph_predicates WHERE user = ?1 AND key = ?2";

/// A new predicate.
pub(super) const INSERT_PREDICATE: &str =
    "INSERT INTO graph_predicates (user, key, name) VALUES (?1, ?2, ?3) RETURNING id";

/// A source.
pub(super) const SOURCE: &str =
    "SELECT id FROM graph_sources WHERE user = ?1 AND name = ?2 AND trusted = ?3";

/// A new source.
pub(super) const INSERT_SOURCE: &str =
    "INSERT INTO graph_sources (user, name, trusted) VALUES (?1, ?2, ?3) RETURNING id";

/// A fact that holds, and the word that is kept for it.
pub(super) const HOLDING: &str = "SELECT fact.id, fact.confidence, source.trusted, source.id
       FROM graph_facts AS fact JOIN graph_sources AS source ON source.id = fact.source
      WHERE fact.subject = ?1 AND fact.predicate = ?2 AND fact.object = ?3 AND fact.valid_to IS NULL";

/// A new fact.
pub(super) const INSERT_FACT: &str =
    "INSERT INTO graph_facts (subject, predicate, object, source, confidence, created, valid_from)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id";

/// There is a better word for a fact.
pub(super) const SET_SOURCE: &str =
    "UPDATE graph_facts SET source = ?2, confidence = ?3 WHERE id = ?1";

/// A fact does not hold any more.
pub(super) const END: &str =
    "UPDATE graph_facts SET valid_to = max(?2, valid_from) WHERE id = ?1 AND valid_to IS NULL";

/// All there is to say of a fact.
pub(super) const FACT: &str =
    "SELECT subject.name, subject.kind, predicate.name, object.name, object.kind,
            source.name, source.trusted, fact.confidence, fact.created, fact.valid_from, fact.valid_to
       FROM graph_facts AS fact
       JOIN graph_entities AS subject ON subject.id = fact.subject
       JOIN graph_predicates AS predicate ON predicate.id = fact.predicate
       JOIN graph_entities AS object ON object.id = fact.object
       JOIN graph_sources AS source ON source.id = fact.source
      WHERE fact.id = ?1";

/// The facts that hold of a subject, and where they lead.
pub(super) const EDGES_OUT: &str = "SELECT id, object FROM graph_facts
      WHERE subject = ?1 AND valid_to IS NULL ORDER BY predicate, object";

/// Those with one predicate.
pub(super) const EDGES_OUT_WITH: &str = "SELECT id, object FROM graph_facts
      WHERE subject = ?1 AND predicate = ?2 AND valid_to IS NULL ORDER BY object";

/// The facts that hold of an object, and where they come from.
pub(super) const EDGES_IN: &str = "SELECT id, subject FROM graph_facts
      WHERE object = ?1 AND valid_to IS NULL ORDER BY predicate, subject";

/// Those with one predicate.
pub(super) const EDGES_IN_WITH: &str = "SELECT id, subject FROM graph_facts
      WHERE object = ?1 AND predicate = ?2 AND valid_to IS NULL ORDER BY subject";

/// What a query binds, and so which statement answers it: one for what holds, one for what held.
pub(super) struct Lookup {
    pub now: &'static str,
    pub once: &'static str,
}

macro_rules! lookup {
    ($bound:literal, $order:literal) => {
        Lookup {
            now: concat!(
                "SELECT id FROM graph_facts WHERE ",
                $bound,
                " AND valid_to IS NULL ORDER BY ",
                $order,
                " LIMIT ?4"
            ),
            once: concat!(
                "SELECT id FROM graph_facts WHERE ",
                $bound,
                " AND valid_to IS NOT NULL ORDER BY ",
                $order,
                " LIMIT ?4"
            ),
        }
    };
}

/// By all three names.
pub(super) const BY_ALL: Lookup = lookup!("subject = ?1 AND predicate = ?2 AND object = ?3", "id");

/// By subject and predicate.
pub(super) const BY_SUBJECT_AND_PREDICATE: Lookup =
    lookup!("subject = ?1 AND predicate = ?2", "object, id");

/// By subject.
pub(super) const BY_SUBJECT: Lookup = lookup!("subject = ?1", "predicate, object, id");

/// By both ends. It reads all that leads from one of them.
pub(super) const BY_ENDS: Lookup = lookup!("subject = ?1 AND object = ?3", "predicate");

/// By object and predicate.
pub(super) const BY_OBJECT_AND_PREDICATE: Lookup =
    lookup!("object = ?3 AND predicate = ?2", "subject, id");

/// By object.
pub(super) const BY_OBJECT: Lookup = lookup!("object = ?3", "predicate, subject, id");

/// By predicate.
pub(super) const BY_PREDICATE: Lookup = Lookup {
    now: "SELECT id FROM graph_facts
           WHERE predicate = ?2 AND valid_to IS NULL ORDER BY id LIMIT ?4",
    once: "SELECT id FROM graph_facts
            WHERE predicate = ?2 AND valid_to IS NOT NULL ORDER BY valid_to, id LIMIT ?4",
};

/// All that hold of a user's.
pub(super) const ALL_NOW: &str = "SELECT fact.id
       FROM graph_predicates AS predicate CROSS JOIN graph_facts AS fact ON fact.predicate = predicate.id
      WHERE predicate.user = ?1 AND fact.valid_to IS NULL LIMIT ?2";

/// All that held.
pub(super) const ALL_ONCE: &str = "SELECT fact.id
       FROM graph_predicates AS predicate CROSS JOIN graph_facts AS fact ON fact.predicate = predicate.id
      WHERE predicate.user = ?1 AND fact.valid_to IS NOT NULL LIMIT ?2";

/// How many facts of a user hold, and how many held.
pub(super) const COUNT_FACTS: &str = "SELECT count(*), count(fact.valid_to)
       FROM graph_predicates AS predicate CROSS JOIN graph_facts AS fact ON fact.predicate = predicate.id
      WHERE predicate.user = ?1";

/// How many entities a user has.
pub(super) const COUNT_ENTITIES: &str = "SELECT count(*) FROM graph_entities WHERE user = ?1";

/// Entities from a key on, in the order of the keys.
pub(super) const ENTITIES_FROM: &str =
    "SELECT name FROM graph_entities WHERE user = ?1 AND key >= ?2 ORDER BY key LIMIT ?3";

/// Entities before a key, the last first.
pub(super) const ENTITIES_BEFORE: &str =
    "SELECT name FROM graph_entities WHERE user = ?1 AND key < ?2 ORDER BY key DESC LIMIT ?3";

/// Predicates from a key on, in the order of the keys.
pub(super) const PREDICATES_FROM: &str =
    "SELECT name FROM graph_predicates WHERE user = ?1 AND key >= ?2 ORDER BY key LIMIT ?3";

/// Predicates before a key, the last first.
pub(super) const PREDICATES_BEFORE: &str =
    "SELECT name FROM graph_predicates WHERE user = ?1 AND key < ?2 ORDER BY key DESC LIMIT ?3";

/// The sources with a name, trusted or not.
pub(super) const SOURCES_NAMED: &str = "SELECT id FROM graph_sources WHERE user = ?1 AND name = ?2";

/// Some facts of a source go; gives what they were about.
pub(super) const FORGET_FACTS_OF_SOURCE: &str = "DELETE FROM graph_facts
      WHERE id IN (SELECT id FROM graph_facts WHERE source = ?1 LIMIT ?2)
     RETURNING subject, predicate, object";

/// A source goes.
pub(super) const FORGET_SOURCE: &str = "DELETE FROM graph_sources WHERE id = ?1";

/// An entity goes if no fact is about it.
pub(super) const FORGET_LONE_ENTITY: &str = "DELETE FROM graph_entities WHERE id = ?1
        AND NOT EXISTS (SELECT 1 FROM graph_facts WHERE subject = ?1 AND valid_to IS NULL)
        AND NOT EXISTS (SELECT 1 FROM graph_facts WHERE object = ?1 AND valid_to IS NULL)
        AND NOT EXISTS (SELECT 1 FROM graph_facts WHERE subject = ?1 AND valid_to IS NOT NULL)
        AND NOT EXISTS (SELECT 1 FROM graph_facts WHERE object = ?1 AND valid_to IS NOT NULL)";

/// A predicate goes if no fact has it.
pub(super) const FORGET_LONE_PREDICATE: &str = "DELETE FROM graph_predicates WHERE id = ?1
        AND NOT EXISTS (SELECT 1 FROM graph_facts WHERE predicate = ?1)";

/// Some facts of a user go.
pub(super) const FORGET_FACTS_OF_USER: &str = "DELETE FROM graph_facts WHERE id IN (
         SELECT fact.id
           FROM graph_predicates AS predicate CROSS JOIN graph_facts AS fact ON fact.predicate = predicate.id
          WHERE predicate.user = ?1 LIMIT ?2)";

/// Some entities of a user go.
pub(super) const FORGET_ENTITIES_OF_USER: &str = "DELETE FROM graph_entities
      WHERE id IN (SELECT id FROM graph_entities WHERE user = ?1 LIMIT ?2)";

/// Some predicates of a user go.
pub(super) const FORGET_PREDICATES_OF_USER: &str = "DELETE FROM graph_predicates
      WHERE id IN (SELECT id FROM graph_predicates WHERE user = ?1 LIMIT ?2)";

/// Some sources of a user go.
pub(super) const FORGET_SOURCES_OF_USER: &str = "DELETE FROM graph_sources
      WHERE id IN (SELECT id FROM graph_sources WHERE user = ?1 LIMIT ?2)";

/// A user goes.
pub(super) const FORGET_USER: &str = "DELETE FROM graph_users WHERE id = ?1";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::connection::open_writer;
    use crate::sqlite::statements::tests::plan_of;

    const ALL: [&str; 35] = [
        USER,
        INSERT_USER,
        ENTITY,
        ENTITY_BY_ID,
        INSERT_ENTITY,
        SET_KIND,
        PREDICATE,
        INSERT_PREDICATE,
        SOURCE,
        INSERT_SOURCE,
        HOLDING,
        INSERT_FACT,
        SET_SOURCE,
        END,
        FACT,
        EDGES_OUT,
        EDGES_OUT_WITH,
        EDGES_IN,
        EDGES_IN_WITH,
        ALL_NOW,
        ALL_ONCE,
        COUNT_FACTS,
        COUNT_ENTITIES,
        ENTITIES_FROM,
        ENTITIES_BEFORE,
        PREDICATES_FROM,
        PREDICATES_BEFORE,
        SOURCES_NAMED,
        FORGET_FACTS_OF_SOURCE,
        FORGET_SOURCE,
        FORGET_LONE_ENTITY,
        FORGET_LONE_PREDICATE,
        FORGET_FACTS_OF_USER,
        FORGET_ENTITIES_OF_USER,
        FORGET_PREDICATES_OF_USER,
    ];

    const LOOKUPS: [Lookup; 7] = [
        BY_ALL,
        BY_SUBJECT_AND_PREDICATE,
        BY_SUBJECT,
        BY_ENDS,
        BY_OBJECT_AND_PREDICATE,
        BY_OBJECT,
        BY_PREDICATE,
    ];

    #[test]
    fn no_statement_of_the_graph_scans_a_table_or_sorts() {
        let lookups = LOOKUPS.iter().flat_map(|lookup| [lookup.now, lookup.once]);
        let rest = [FORGET_SOURCES_OF_USER, FORGET_USER];
        for statement in ALL.into_iter().chain(rest).chain(lookups) {
            let plan = plan_of(statement);
            assert!(
                !plan.contains("SCAN") && !plan.contains("TEMP B-TREE"),
                "{statement}\n{plan}"
            );
        }
    }

    /// SQLite does not call a partial index covering, but puts off the seek in the table until a column asks for it.
    #[test]
    fn a_walk_reads_two_indices_and_no_table() {
        for statement in [EDGES_OUT, EDGES_OUT_WITH, EDGES_IN, EDGES_IN_WITH] {
            let program = program_of(statement);
            let put_off = program.iter().find(|(code, ..)| code == "DeferredSeek");
            let (_, _, table) = put_off.unwrap();
            let reads =
                |(code, cursor, _): &(String, i64, i64)| code == "Column" && cursor == table;
            assert!(!program.iter().any(reads), "{statement}\n{program:?}");
        }
    }

    /// The operations with their first and third parameter.
    fn program_of(statement: &str) -> Vec<(String, i64, i64)> {
        let folder = tempfile::tempdir().unwrap();
        let connection = open_writer(&folder.path().join("lango.db")).unwrap();
        let mut explained = connection.prepare(&format!("EXPLAIN {statement}")).unwrap();
        let unbound = vec![rusqlite::types::Null; explained.parameter_count()];
        let rows = explained
            .query_map(rusqlite::params_from_iter(unbound), |row| {
                Ok((row.get("opcode")?, row.get("p1")?, row.get("p3")?))
            })
            .unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }
}
