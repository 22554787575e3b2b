//! The statements on the graph. Each finds its rows by key.
//!
//! Statements for [`Tx::batch`](crate::backend::Tx::batch) take a single value per column in SQLite, and an array per
//! column in PostgreSQL: `= /*postgres ANY*/ ($2)`. For SQLite, inserts that return rows use `VALUES`, because SQLite
//! would first copy the rows of a `SELECT` into a temporary table.

use crate::backend::{Sql, sql, statements};

/// Selects up to `$1` facts of each entity, with the entity at the other end and, if `$2` is set, its type.
macro_rules! edges {
    ($near:literal, $far:literal) => {
        concat!(
            "/*sqlite SELECT $3, id, ", $far, ",
                      CASE WHEN $2 THEN (SELECT kind FROM graph_entities WHERE id = graph_facts.", $far, ") END
                 FROM graph_facts WHERE ", $near, " = $3 AND valid_to IS NULL ORDER BY predicate, ", $far, " LIMIT $1*/
             /*postgres SELECT entity.id, edge.id, edge.far,
                      CASE WHEN $2::bigint <> 0 THEN (SELECT kind FROM graph_entities WHERE id = edge.far) END
                 FROM unnest($3::bigint[]) AS entity (id)
                CROSS JOIN LATERAL (
                      SELECT id, predicate, ", $far, " AS far FROM graph_facts
                       WHERE ", $near, " = entity.id AND valid_to IS NULL
                       ORDER BY predicate, ", $far, " LIMIT $1) AS edge
                ORDER BY entity.id, edge.predicate, edge.far*/"
        )
    };
}

/// Does the same as `edges!`, for facts with one of the predicates in `$3`, which is a sorted list.
macro_rules! edges_with {
    ($near:literal, $far:literal, $index:literal) => {
        concat!(
            "/*sqlite SELECT $4, fact.id, fact.", $far, ",
                      CASE WHEN $2 THEN (SELECT kind FROM graph_entities WHERE id = fact.", $far, ") END
                 FROM json_each($3) AS wanted CROSS JOIN graph_facts AS fact INDEXED BY ", $index, "
                WHERE fact.", $near, " = $4 AND fact.predicate = wanted.value AND fact.valid_to IS NULL LIMIT $1*/
             /*postgres SELECT entity.id, edge.id, edge.far,
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
                ORDER BY entity.id, edge.predicate, edge.far*/"
        )
    };
}

statements! {
USER: r#"SELECT id FROM graph_users WHERE "user" = $1"#;

/// Locks a user's row until the end of the transaction.
LOCK_USER: r#"SELECT id FROM graph_users WHERE "user" = $1 /*postgres FOR UPDATE*/"#;

INSERT_USER: r#"INSERT INTO graph_users ("user") VALUES ($1) ON CONFLICT DO NOTHING"#;

ENTITY: r#"SELECT id FROM graph_entities WHERE "user" = $1 AND key = $2"#;

ENTITIES: "SELECT id, name, kind FROM graph_entities WHERE id = /*postgres ANY*/ ($1)";

ENTITIES_BY_KEY:
    r#"SELECT id, key, kind FROM graph_entities WHERE "user" = $1 AND key = /*postgres ANY*/ ($2)"#;

INSERT_ENTITIES: r#"INSERT INTO graph_entities ("user", key, name, kind)
     /*sqlite VALUES ($1, $2, $3, $4)*/ /*postgres SELECT $1::bigint, unnest($2::text[]), unnest($3::text[]), unnest($4::text[])*/
     RETURNING id, key"#;

SET_KINDS: "UPDATE graph_entities SET kind = /*sqlite $2 WHERE id = $1*/
     /*postgres new.kind FROM unnest($1::bigint[], $2::text[]) AS new (id, kind) WHERE graph_entities.id = new.id*/";

PREDICATE: r#"SELECT id FROM graph_predicates WHERE "user" = $1 AND key = $2"#;

PREDICATES_BY_KEY: r#"SELECT id, key, NULL::text FROM graph_predicates
      WHERE "user" = $1 AND key = /*postgres ANY*/ ($2)"#;

INSERT_PREDICATES: r#"INSERT INTO graph_predicates ("user", key, name)
     /*sqlite VALUES ($1, $2, $3)*/ /*postgres SELECT $1::bigint, unnest($2::text[]), unnest($3::text[])*/
     RETURNING id, key"#;

SOURCES_BY_NAME: r#"SELECT source.id, source.name, NULL::text
       FROM /*postgres unnest($3::text[]) AS wanted (name) JOIN*/ graph_sources AS source
      /*sqlite WHERE source.user = $1 AND source.name = $3*/
      /*postgres ON source."user" = $1 AND source.name = wanted.name
             AND hashtextextended(source.name, 0) = hashtextextended(wanted.name, 0)*/
        AND source.trusted = $2"#;

INSERT_SOURCES: r#"INSERT INTO graph_sources ("user", trusted, name)
     /*sqlite VALUES ($1, $2, $3)*/ /*postgres SELECT $1::bigint, $2::bigint, unnest($3::text[])*/ RETURNING id, name"#;

/// Selects current facts and their assertions.
CURRENT_FACTS:
    "SELECT fact.id, fact.subject, fact.predicate, fact.object, fact.confidence, source.trusted, source.id
       FROM /*postgres unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS wanted (subject, predicate, object)
       JOIN*/ graph_facts AS fact /*postgres ON fact.subject = wanted.subject AND fact.predicate = wanted.predicate
        AND fact.object = wanted.object AND fact.valid_to IS NULL*/
       JOIN graph_sources AS source ON source.id = fact.source
      /*sqlite WHERE fact.subject = $1 AND fact.predicate = $2 AND fact.object = $3 AND fact.valid_to IS NULL*/";

INSERT_FACTS: "INSERT INTO graph_facts (subject, predicate, object, source, confidence, created, valid_from)
     /*sqlite VALUES*/ /*postgres SELECT * FROM unnest*/ ($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[],
            $5::float8[], $6::bigint[], $7::bigint[])
     RETURNING id, subject, predicate, object";

SET_ASSERTIONS: "UPDATE graph_facts SET /*sqlite source = $2, confidence = $3 WHERE id = $1*/
     /*postgres source = new.source, confidence = new.confidence
       FROM unnest($1::bigint[], $2::bigint[], $3::float8[]) AS new (id, source, confidence)
      WHERE graph_facts.id = new.id*/";

END: "UPDATE graph_facts SET valid_to = $2 WHERE id = $1";

FACTS: "SELECT fact.id, subject.name, subject.kind, predicate.name, object.name, object.kind,
            source.name, source.trusted, fact.confidence, fact.created, fact.valid_from, fact.valid_to
       FROM graph_facts AS fact
       JOIN graph_entities AS subject ON subject.id = fact.subject
       JOIN graph_predicates AS predicate ON predicate.id = fact.predicate
       JOIN graph_entities AS object ON object.id = fact.object
       JOIN graph_sources AS source ON source.id = fact.source
      WHERE fact.id = /*postgres ANY*/ ($1)";

EDGES_OUT: edges!("subject", "object");
EDGES_OUT_WITH: edges_with!("subject", "object", "graph_facts_out");
EDGES_IN: edges!("object", "subject");
EDGES_IN_WITH: edges_with!("object", "subject", "graph_facts_in");

ENTITIES_FROM: r#"SELECT name FROM graph_entities WHERE "user" = $1 AND key >= $2 ORDER BY key LIMIT $3"#;
ENTITIES_BEFORE: r#"SELECT name FROM graph_entities WHERE "user" = $1 AND key < $2 ORDER BY key DESC LIMIT $3"#;
PREDICATES_FROM: r#"SELECT name FROM graph_predicates WHERE "user" = $1 AND key >= $2 ORDER BY key LIMIT $3"#;
PREDICATES_BEFORE: r#"SELECT name FROM graph_predicates WHERE "user" = $1 AND key < $2 ORDER BY key DESC LIMIT $3"#;
}

/// Builds two statements: one for up to `$1` current facts, one for up to `$1` facts that have ended, in the order of an index.
macro_rules! lookup {
    ($bound:literal, $order:literal) => {
        lookup!($bound, $order, $order)
    };
    ($bound:literal, $current:literal, $ended:literal) => {
        [
            sql!(concat!(
                "SELECT id FROM graph_facts WHERE ",
                $bound,
                " AND valid_to IS NULL ORDER BY ",
                $current,
                " LIMIT $1"
            )),
            sql!(concat!(
                "SELECT id FROM graph_facts WHERE ",
                $bound,
                " AND valid_to IS NOT NULL ORDER BY ",
                $ended,
                " LIMIT $1"
            )),
        ]
    };
}

macro_rules! all_of_user {
    ($ended:literal, $order:literal) => {
        sql!(concat!(
            "SELECT fact.id FROM graph_predicates AS predicate
             /*sqlite CROSS JOIN graph_facts AS fact ON fact.predicate = predicate.id
                WHERE predicate.user = $2 AND fact.valid_to ",
            $ended,
            "*/
             /*postgres CROSS JOIN LATERAL (
                      SELECT id, valid_to FROM graph_facts
                       WHERE graph_facts.predicate = predicate.id AND valid_to ",
            $ended,
            "
                       ORDER BY ",
            $order,
            " LIMIT $1) AS fact
                WHERE predicate.\"user\" = $2 ORDER BY predicate.key, ",
            $order,
            "*/
             LIMIT $1"
        ))
    };
}

/// The lookups for each combination of given names. The index is the sum of 4 for a given subject, 2 for a given
/// predicate and 1 for a given object. If no name is given, the second value is the user.
pub(crate) const LOOKUPS: [[Sql; 2]; 8] = [
    [
        all_of_user!("IS NULL", "id"),
        all_of_user!("IS NOT NULL", "valid_to, id"),
    ],
    lookup!("object = $2", "predicate, subject, id"),
    lookup!("predicate = $2", "id", "valid_to, id"),
    lookup!("predicate = $2 AND object = $3", "subject, id"),
    lookup!("subject = $2", "predicate, object, id"),
    // This reads all edges of the subject or of the object.
    lookup!(
        "subject = $2 AND object = $3",
        "predicate /*postgres , id*/"
    ),
    lookup!("subject = $2 AND predicate = $3", "object, id"),
    lookup!("subject = $2 AND predicate = $3 AND object = $4", "id"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::plans::sqlite_program;

    /// SQLite does not report a partial index as covering, but defers the seek in the table until a column is read from it.
    #[test]
    fn a_walk_reads_indices_but_not_the_table_of_facts() {
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
