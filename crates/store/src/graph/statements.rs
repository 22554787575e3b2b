//! The SQL of the graph. Each statement finds its rows by a key.
//!
//! Those for [`Tx::batch`](crate::engine::Tx::batch) have one value for each column in SQLite, and an array in PostgreSQL:
//! `= /*postgres ANY*/ ($2)`.

use crate::engine::{Sql, sql};

/// A user's id.
pub(super) const USER: Sql = sql!(r#"SELECT id FROM graph_users WHERE "user" = $1"#);

/// Locks a user's row until the end of the transaction.
pub(super) const LOCK_USER: Sql =
    sql!(r#"SELECT id FROM graph_users WHERE "user" = $1 /*postgres FOR UPDATE*/"#);

/// Inserts a user, unless another replica did.
pub(super) const INSERT_USER: Sql =
    sql!(r#"INSERT INTO graph_users ("user") VALUES ($1) ON CONFLICT DO NOTHING"#);

/// An entity by its key.
pub(super) const ENTITY: Sql =
    sql!(r#"SELECT id FROM graph_entities WHERE "user" = $1 AND key = $2"#);

/// Entities by id.
pub(super) const ENTITIES: Sql =
    sql!("SELECT id, name, kind FROM graph_entities WHERE id = /*postgres ANY*/ ($1)");

/// Entities by key.
pub(super) const ENTITIES_BY_KEY: Sql = sql!(
    r#"SELECT id, key, kind FROM graph_entities WHERE "user" = $1 AND key = /*postgres ANY*/ ($2)"#
);

/// Inserts entities.
pub(super) const INSERT_ENTITIES: Sql = sql!(
    r#"INSERT INTO graph_entities ("user", key, name, kind)
     SELECT $1::bigint, /*postgres unnest*/ ($2::text[]), /*postgres unnest*/ ($3::text[]), /*postgres unnest*/ ($4::text[])
     RETURNING id, key"#
);

/// Changes the types of entities.
pub(super) const SET_KINDS: Sql = sql!(
    sqlite: "UPDATE graph_entities SET kind = ?2 WHERE id = ?1",
    postgres: "UPDATE graph_entities SET kind = new.kind
       FROM unnest($1::bigint[], $2::text[]) AS new (id, kind) WHERE graph_entities.id = new.id",
);

/// A predicate by its key.
pub(super) const PREDICATE: Sql =
    sql!(r#"SELECT id FROM graph_predicates WHERE "user" = $1 AND key = $2"#);

/// Predicates by key.
pub(super) const PREDICATES_BY_KEY: Sql = sql!(
    r#"SELECT id, key FROM graph_predicates WHERE "user" = $1 AND key = /*postgres ANY*/ ($2)"#
);

/// Inserts predicates.
pub(super) const INSERT_PREDICATES: Sql = sql!(
    r#"INSERT INTO graph_predicates ("user", key, name)
     SELECT $1::bigint, /*postgres unnest*/ ($2::text[]), /*postgres unnest*/ ($3::text[]) RETURNING id, key"#
);

/// Sources by name, trusted or not.
pub(super) const SOURCES_BY_NAME: Sql = sql!(
    sqlite: "SELECT id, name, trusted FROM graph_sources WHERE user = ?1 AND name = ?2",
    postgres: r#"SELECT source.id, source.name, source.trusted
       FROM unnest($2::text[]) AS wanted (name)
       JOIN graph_sources AS source ON source."user" = $1 AND source.name = wanted.name
        AND hashtextextended(source.name, 0) = hashtextextended(wanted.name, 0)"#,
);

/// Inserts sources.
pub(super) const INSERT_SOURCES: Sql = sql!(
    r#"INSERT INTO graph_sources ("user", name, trusted)
     SELECT $1::bigint, /*postgres unnest*/ ($2::text[]), /*postgres unnest*/ ($3::bigint[]) RETURNING id, name, trusted"#
);

/// Facts that hold, and who asserts them.
pub(super) const CURRENT_FACTS: Sql = sql!(
    "SELECT fact.id, fact.subject, fact.predicate, fact.object, fact.confidence, source.trusted, source.id
       FROM /*postgres unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS wanted (subject, predicate, object)
       JOIN*/ graph_facts AS fact /*postgres ON fact.subject = wanted.subject AND fact.predicate = wanted.predicate
        AND fact.object = wanted.object AND fact.valid_to IS NULL*/
       JOIN graph_sources AS source ON source.id = fact.source
      /*sqlite WHERE fact.subject = $1 AND fact.predicate = $2 AND fact.object = $3 AND fact.valid_to IS NULL*/"
);

/// Inserts facts.
pub(super) const INSERT_FACTS: Sql = sql!(
    "INSERT INTO graph_facts (subject, predicate, object, source, confidence, created, valid_from)
     SELECT /*postgres * FROM unnest (*/ $1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::float8[],
            $6::bigint[], $7::bigint[] /*postgres )*/
     RETURNING id, subject, predicate, object"
);

/// Stores who asserts facts.
pub(super) const SET_ASSERTIONS: Sql = sql!(
    sqlite: "UPDATE graph_facts SET source = ?2, confidence = ?3 WHERE id = ?1",
    postgres: "UPDATE graph_facts SET source = new.source, confidence = new.confidence
       FROM unnest($1::bigint[], $2::bigint[], $3::float8[]) AS new (id, source, confidence)
      WHERE graph_facts.id = new.id",
);

/// Ends a fact.
pub(super) const END: Sql = sql!(
    "UPDATE graph_facts SET valid_to = /*sqlite max*/ /*postgres greatest*/ ($2, valid_from)
      WHERE id = $1 AND valid_to IS NULL"
);

/// Facts by id.
pub(super) const FACTS: Sql = sql!(
    "SELECT fact.id, subject.name, subject.kind, predicate.name, object.name, object.kind,
            source.name, source.trusted, fact.confidence, fact.created, fact.valid_from, fact.valid_to
       FROM graph_facts AS fact
       JOIN graph_entities AS subject ON subject.id = fact.subject
       JOIN graph_predicates AS predicate ON predicate.id = fact.predicate
       JOIN graph_entities AS object ON object.id = fact.object
       JOIN graph_sources AS source ON source.id = fact.source
      WHERE fact.id = /*postgres ANY*/ ($1)"
);

/// Facts that lead on from entities, up to `$1` of each, with the far entity and, if `$2` is set, its type.
macro_rules! edges {
    ($near:literal, $far:literal) => {
        sql!(
            sqlite: concat!(
                "SELECT ?3, id, ", $far, ",
                        CASE WHEN ?2 THEN (SELECT kind FROM graph_entities WHERE id = graph_facts.", $far, ") END
                   FROM graph_facts WHERE ", $near, " = ?3 AND valid_to IS NULL
                  ORDER BY predicate, ", $far, " LIMIT ?1"
            ),
            postgres: concat!(
                "SELECT entity.id, edge.id, edge.far,
                        CASE WHEN $2::bigint <> 0 THEN (SELECT kind FROM graph_entities WHERE id = edge.far) END
                   FROM unnest($3::bigint[]) AS entity (id)
                  CROSS JOIN LATERAL (
                        SELECT id, predicate, ", $far, " AS far FROM graph_facts
                         WHERE ", $near, " = entity.id AND valid_to IS NULL
                         ORDER BY predicate, ", $far, " LIMIT $1) AS edge
                  ORDER BY entity.id, edge.predicate, edge.far"
            ),
        )
    };
}

/// Those that have one of the predicates `$3`, which are sorted.
macro_rules! edges_with {
    ($near:literal, $far:literal, $index:literal) => {
        sql!(
            sqlite: concat!(
                "SELECT ?4, fact.id, fact.", $far, ",
                        CASE WHEN ?2 THEN (SELECT kind FROM graph_entities WHERE id = fact.", $far, ") END
                   FROM json_each(?3) AS wanted CROSS JOIN graph_facts AS fact INDEXED BY ", $index, "
                  WHERE fact.", $near, " = ?4 AND fact.predicate = wanted.value AND fact.valid_to IS NULL LIMIT ?1"
            ),
            postgres: concat!(
                "SELECT entity.id, edge.id, edge.far,
                        CASE WHEN $2::bigint <> 0 THEN (SELECT kind FROM graph_entities WHERE id = edge.far) END
                   FROM unnest($4::bigint[]) AS entity (id)
                  CROSS JOIN LATERAL (
                        SELECT fact.id, fact.predicate, fact.far
                          FROM unnest($3::bigint[]) AS wanted (predicate)
                         CROSS JOIN LATERAL (
                               SELECT id, predicate, ", $far, " AS far FROM graph_facts
                                WHERE ", $near, " = entity.id AND predicate = wanted.predicate AND valid_to IS NULL
                                ORDER BY ", $far, " LIMIT $1) AS fact
                         ORDER BY fact.predicate, fact.far LIMIT $1) AS edge
                  ORDER BY entity.id, edge.predicate, edge.far"
            ),
        )
    };
}

/// From subjects to objects.
pub(super) const EDGES_OUT: Sql = edges!("subject", "object");

/// The same with some predicates.
pub(super) const EDGES_OUT_WITH: Sql = edges_with!("subject", "object", "graph_facts_out");

/// From objects to subjects.
pub(super) const EDGES_IN: Sql = edges!("object", "subject");

/// The same with some predicates.
pub(super) const EDGES_IN_WITH: Sql = edges_with!("object", "subject", "graph_facts_in");

/// The statements for one combination of given names.
#[derive(Clone, Copy)]
pub(super) struct Lookup {
    /// For facts that hold.
    pub current: Sql,
    /// For facts that ended.
    pub ended: Sql,
}

macro_rules! lookup {
    ($bound:literal, $order:literal, $limit:literal) => {
        Lookup {
            current: lookup!("IS NULL", $bound, $order, $limit),
            ended: lookup!("IS NOT NULL", $bound, $order, $limit),
        }
    };
    ($ended:literal, $bound:literal, $order:literal, $limit:literal) => {
        sql!(concat!(
            "SELECT id FROM graph_facts WHERE ",
            $bound,
            " AND valid_to ",
            $ended,
            " ORDER BY ",
            $order,
            " LIMIT ",
            $limit
        ))
    };
}

/// By all three names.
pub(super) const BY_ALL: Lookup = lookup!(
    "subject = $1 AND predicate = $2 AND object = $3",
    "id",
    "$4"
);

/// By subject and predicate.
pub(super) const BY_SUBJECT_AND_PREDICATE: Lookup =
    lookup!("subject = $1 AND predicate = $2", "object, id", "$3");

/// By subject.
pub(super) const BY_SUBJECT: Lookup = lookup!("subject = $1", "predicate, object, id", "$2");

/// By both ends; reads all edges of one of them.
pub(super) const BY_ENDS: Lookup = lookup!(
    "subject = $1 AND object = $2",
    "predicate /*postgres , id*/",
    "$3"
);

/// By object and predicate.
pub(super) const BY_OBJECT_AND_PREDICATE: Lookup =
    lookup!("predicate = $1 AND object = $2", "subject, id", "$3");

/// By object.
pub(super) const BY_OBJECT: Lookup = lookup!("object = $1", "predicate, subject, id", "$2");

/// By predicate.
pub(super) const BY_PREDICATE: Lookup = Lookup {
    current: lookup!("IS NULL", "predicate = $1", "id", "$2"),
    ended: lookup!("IS NOT NULL", "predicate = $1", "valid_to, id", "$2"),
};

macro_rules! all {
    ($ended:literal, $order:literal) => {
        sql!(
            sqlite: concat!(
                "SELECT fact.id
                   FROM graph_predicates AS predicate CROSS JOIN graph_facts AS fact ON fact.predicate = predicate.id
                  WHERE predicate.user = ?1 AND fact.valid_to ", $ended, " LIMIT ?2"
            ),
            postgres: concat!(
                "SELECT fact.id FROM graph_predicates AS predicate
                  CROSS JOIN LATERAL (
                        SELECT id, valid_to FROM graph_facts
                         WHERE graph_facts.predicate = predicate.id AND valid_to ", $ended, "
                         ORDER BY ", $order, " LIMIT $2) AS fact
                  WHERE predicate.\"user\" = $1
                  ORDER BY predicate.key, ", $order, " LIMIT $2"
            ),
        )
    };
}

/// All facts of a user.
pub(super) const ALL: Lookup = Lookup {
    current: all!("IS NULL", "id"),
    ended: all!("IS NOT NULL", "valid_to, id"),
};

/// The number of a user's facts, and of those that ended.
pub(super) const COUNT_FACTS: Sql = sql!(
    sqlite: "SELECT count(*), count(fact.valid_to)
       FROM graph_predicates AS predicate CROSS JOIN graph_facts AS fact ON fact.predicate = predicate.id
      WHERE predicate.user = ?1",
    postgres: r#"SELECT coalesce(sum(facts.current + facts.ended), 0)::bigint, coalesce(sum(facts.ended), 0)::bigint
       FROM graph_predicates AS predicate
      CROSS JOIN LATERAL (
            SELECT (SELECT count(*) FROM graph_facts
                     WHERE graph_facts.predicate = predicate.id AND valid_to IS NULL) AS current,
                   (SELECT count(*) FROM graph_facts
                     WHERE graph_facts.predicate = predicate.id AND valid_to IS NOT NULL) AS ended) AS facts
      WHERE predicate."user" = $1"#,
);

/// The number of a user's entities.
pub(super) const COUNT_ENTITIES: Sql =
    sql!(r#"SELECT count(*) FROM graph_entities WHERE "user" = $1"#);

macro_rules! names {
    ($table:literal, $from:literal) => {
        sql!(concat!(
            "SELECT name FROM ",
            $table,
            " WHERE \"user\" = $1 AND key ",
            $from,
            " LIMIT $3"
        ))
    };
}

/// Entities from a key on, in the order of the keys.
pub(super) const ENTITIES_FROM: Sql = names!("graph_entities", ">= $2 ORDER BY key");

/// Entities before a key, the last first.
pub(super) const ENTITIES_BEFORE: Sql = names!("graph_entities", "< $2 ORDER BY key DESC");

/// Predicates from a key on, in the order of the keys.
pub(super) const PREDICATES_FROM: Sql = names!("graph_predicates", ">= $2 ORDER BY key");

/// Predicates before a key, the last first.
pub(super) const PREDICATES_BEFORE: Sql = names!("graph_predicates", "< $2 ORDER BY key DESC");

/// The sources with a name, trusted or not.
pub(super) const SOURCES_NAMED: Sql = sql!(
    r#"SELECT id FROM graph_sources WHERE "user" = $1
        /*postgres AND hashtextextended(name, 0) = hashtextextended($2, 0)*/ AND name = $2"#
);

/// Deletes facts of a source; gives what they were about.
pub(super) const FORGET_FACTS_OF_SOURCE: Sql = sql!(
    "DELETE FROM graph_facts
      WHERE id /*sqlite IN*/ /*postgres = ANY (ARRAY*/ (SELECT id FROM graph_facts WHERE source = $1 LIMIT $2) /*postgres )*/
     RETURNING subject, predicate, object"
);

/// Deletes a source.
pub(super) const FORGET_SOURCE: Sql = sql!("DELETE FROM graph_sources WHERE id = $1");

/// Deletes entities that no fact is about.
pub(super) const FORGET_UNUSED_ENTITIES: Sql = sql!(
    "DELETE FROM graph_entities WHERE id = /*postgres ANY*/ ($1)
        AND NOT EXISTS (SELECT 1 FROM graph_facts WHERE subject = graph_entities.id AND valid_to IS NULL LIMIT 1)
        AND NOT EXISTS (SELECT 1 FROM graph_facts WHERE object = graph_entities.id AND valid_to IS NULL LIMIT 1)
        AND NOT EXISTS (SELECT 1 FROM graph_facts WHERE subject = graph_entities.id AND valid_to IS NOT NULL LIMIT 1)
        AND NOT EXISTS (SELECT 1 FROM graph_facts WHERE object = graph_entities.id AND valid_to IS NOT NULL LIMIT 1)"
);

/// Deletes predicates that no fact has.
pub(super) const FORGET_UNUSED_PREDICATES: Sql = sql!(
    "DELETE FROM graph_predicates WHERE id = /*postgres ANY*/ ($1)
        AND NOT EXISTS (SELECT 1 FROM graph_facts WHERE predicate = graph_predicates.id AND valid_to IS NULL LIMIT 1)
        AND NOT EXISTS (SELECT 1 FROM graph_facts WHERE predicate = graph_predicates.id AND valid_to IS NOT NULL LIMIT 1)"
);

/// Deletes facts of a user.
pub(super) const FORGET_FACTS_OF_USER: Sql = sql!(
    sqlite: "DELETE FROM graph_facts WHERE id IN (
         SELECT fact.id
           FROM graph_predicates AS predicate CROSS JOIN graph_facts AS fact ON fact.predicate = predicate.id
          WHERE predicate.user = ?1 LIMIT ?2)",
    postgres: r#"DELETE FROM graph_facts WHERE id = ANY (ARRAY (
         SELECT fact.id
           FROM graph_predicates AS predicate
          CROSS JOIN LATERAL (
                (SELECT id FROM graph_facts
                  WHERE graph_facts.predicate = predicate.id AND valid_to IS NULL LIMIT $2)
                UNION ALL
                (SELECT id FROM graph_facts
                  WHERE graph_facts.predicate = predicate.id AND valid_to IS NOT NULL LIMIT $2)) AS fact
          WHERE predicate."user" = $1 LIMIT $2))"#,
);

macro_rules! forget_of_user {
    ($table:literal) => {
        sql!(concat!(
            "DELETE FROM ",
            $table,
            " WHERE id /*sqlite IN*/ /*postgres = ANY (ARRAY*/
                (SELECT id FROM ",
            $table,
            " WHERE \"user\" = $1 LIMIT $2) /*postgres )*/"
        ))
    };
}

/// Deletes entities of a user.
pub(super) const FORGET_ENTITIES_OF_USER: Sql = forget_of_user!("graph_entities");

/// Deletes predicates of a user.
pub(super) const FORGET_PREDICATES_OF_USER: Sql = forget_of_user!("graph_predicates");

/// Deletes sources of a user.
pub(super) const FORGET_SOURCES_OF_USER: Sql = forget_of_user!("graph_sources");

/// Deletes a user.
pub(super) const FORGET_USER: Sql = sql!("DELETE FROM graph_users WHERE id = $1");

/// All of them.
#[cfg(test)]
pub(crate) const EVERYDAY: &[Sql] = &[
    USER,
    LOCK_USER,
    INSERT_USER,
    ENTITY,
    ENTITIES,
    ENTITIES_BY_KEY,
    INSERT_ENTITIES,
    SET_KINDS,
    PREDICATE,
    PREDICATES_BY_KEY,
    INSERT_PREDICATES,
    SOURCES_BY_NAME,
    INSERT_SOURCES,
    CURRENT_FACTS,
    INSERT_FACTS,
    SET_ASSERTIONS,
    END,
    FACTS,
    EDGES_OUT,
    EDGES_OUT_WITH,
    EDGES_IN,
    EDGES_IN_WITH,
    COUNT_FACTS,
    COUNT_ENTITIES,
    ENTITIES_FROM,
    ENTITIES_BEFORE,
    PREDICATES_FROM,
    PREDICATES_BEFORE,
    SOURCES_NAMED,
    FORGET_FACTS_OF_SOURCE,
    FORGET_SOURCE,
    FORGET_UNUSED_ENTITIES,
    FORGET_UNUSED_PREDICATES,
    FORGET_FACTS_OF_USER,
    FORGET_ENTITIES_OF_USER,
    FORGET_PREDICATES_OF_USER,
    FORGET_SOURCES_OF_USER,
    FORGET_USER,
    ALL.current,
    ALL.ended,
    BY_ALL.current,
    BY_ALL.ended,
    BY_SUBJECT_AND_PREDICATE.current,
    BY_SUBJECT_AND_PREDICATE.ended,
    BY_SUBJECT.current,
    BY_SUBJECT.ended,
    BY_ENDS.current,
    BY_ENDS.ended,
    BY_OBJECT_AND_PREDICATE.current,
    BY_OBJECT_AND_PREDICATE.ended,
    BY_OBJECT.current,
    BY_OBJECT.ended,
    BY_PREDICATE.current,
    BY_PREDICATE.ended,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::plans::{sqlite_plan, sqlite_program};

    #[test]
    fn no_statement_of_the_graph_scans_a_table_or_sorts() {
        for statement in EVERYDAY {
            let plan = sqlite_plan(*statement);
            let scans = plan.replace("SCAN wanted VIRTUAL TABLE", "");
            let scans = scans.replace("SCAN CONSTANT ROW", "");
            assert!(
                !scans.contains("SCAN") && !plan.contains("TEMP B-TREE"),
                "{plan}"
            );
        }
    }

    /// SQLite does not call a partial index covering, but puts off the seek in the table until a column asks for it.
    #[test]
    fn a_walk_reads_two_indices_and_no_fact() {
        for statement in [EDGES_OUT, EDGES_OUT_WITH, EDGES_IN, EDGES_IN_WITH] {
            let program = sqlite_program(statement);
            let deferred = program.iter().find(|(code, ..)| code == "DeferredSeek");
            let (_, _, table) = deferred.unwrap();
            let reads =
                |(code, cursor, _): &(String, i64, i64)| code == "Column" && cursor == table;
            assert!(!program.iter().any(reads), "{statement:?}\n{program:?}");
        }
    }
}
