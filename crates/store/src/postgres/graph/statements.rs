//! The SQL of the graph, all of it. Each statement finds its rows by a key.

/// A user's number.
pub(super) const USER: &str = r#"SELECT id FROM graph_users WHERE "user" = $1"#;

/// The same, with the row held until the end of the transaction.
pub(super) const HOLD_USER: &str = r#"SELECT id FROM graph_users WHERE "user" = $1 FOR UPDATE"#;

/// A new user, unless somebody else was faster.
pub(super) const INSERT_USER: &str =
    r#"INSERT INTO graph_users ("user") VALUES ($1) ON CONFLICT DO NOTHING"#;

/// An entity by its key.
pub(super) const ENTITY: &str =
    r#"SELECT id, kind FROM graph_entities WHERE "user" = $1 AND key = $2"#;

/// Entities by their keys, in the order of those, each once.
pub(super) const ENTITIES_WITH_KEYS: &str = r#"SELECT entity.id FROM unnest($2::text[]) WITH ORDINALITY AS asked (key, place)
       JOIN graph_entities AS entity ON entity."user" = $1 AND entity.key = asked.key
      GROUP BY entity.id ORDER BY min(asked.place)"#;

/// Entities by their numbers.
pub(super) const ENTITIES: &str = "SELECT id, name, kind FROM graph_entities WHERE id = ANY ($1)";

/// Entities by their keys.
pub(super) const ENTITIES_BY_KEYS: &str =
    r#"SELECT id, key, kind FROM graph_entities WHERE "user" = $1 AND key = ANY ($2)"#;

/// New entities.
pub(super) const INSERT_ENTITIES: &str = r#"INSERT INTO graph_entities ("user", key, name, kind)
     SELECT $1, new.* FROM unnest($2::text[], $3::text[], $4::text[]) AS new RETURNING id, key"#;

/// Entities are of another type.
pub(super) const SET_KINDS: &str = "UPDATE graph_entities SET kind = new.kind
       FROM unnest($1::bigint[], $2::text[]) AS new (id, kind) WHERE graph_entities.id = new.id";

/// A predicate by its key.
pub(super) const PREDICATE: &str =
    r#"SELECT id FROM graph_predicates WHERE "user" = $1 AND key = $2"#;

/// Predicates by their keys.
pub(super) const PREDICATES_BY_KEYS: &str =
    r#"SELECT id, key FROM graph_predicates WHERE "user" = $1 AND key = ANY ($2)"#;

/// New predicates.
pub(super) const INSERT_PREDICATES: &str = r#"INSERT INTO graph_predicates ("user", key, name)
     SELECT $1, new.* FROM unnest($2::text[], $3::text[]) AS new RETURNING id, key"#;

/// Sources by their names, trusted or not.
pub(super) const SOURCES_BY_NAMES: &str = r#"SELECT source.id, source.name, source.trusted
       FROM unnest($2::text[]) AS asked (name)
       JOIN graph_sources AS source ON source."user" = $1 AND source.name = asked.name
        AND hashtextextended(source.name, 0) = hashtextextended(asked.name, 0)"#;

/// New sources.
pub(super) const INSERT_SOURCES: &str = r#"INSERT INTO graph_sources ("user", name, trusted)
     SELECT $1, new.* FROM unnest($2::text[], $3::bigint[]) AS new RETURNING id, name, trusted"#;

/// Facts that hold, and the word that is kept for each.
pub(super) const HOLDING: &str =
    "SELECT fact.id, fact.subject, fact.predicate, fact.object, fact.confidence, source.trusted, source.id
       FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS asked (subject, predicate, object)
       JOIN graph_facts AS fact ON fact.subject = asked.subject AND fact.predicate = asked.predicate
        AND fact.object = asked.object AND fact.valid_to IS NULL
       JOIN graph_sources AS source ON source.id = fact.source";

/// New facts.
pub(super) const INSERT_FACTS: &str =
    "INSERT INTO graph_facts (subject, predicate, object, source, confidence, created, valid_from)
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::float8[],
                          $6::bigint[], $7::bigint[])
     RETURNING id, subject, predicate, object";

/// There is a better word for facts.
pub(super) const SET_WORDS: &str =
    "UPDATE graph_facts SET source = new.source, confidence = new.confidence
       FROM unnest($1::bigint[], $2::bigint[], $3::float8[]) AS new (id, source, confidence)
      WHERE graph_facts.id = new.id";

/// A fact does not hold any more.
pub(super) const END: &str =
    "UPDATE graph_facts SET valid_to = greatest($2, valid_from) WHERE id = $1 AND valid_to IS NULL";

/// All there is to say of facts.
pub(super) const FACTS: &str =
    "SELECT fact.id, subject.name, subject.kind, predicate.name, object.name, object.kind,
            source.name, source.trusted, fact.confidence, fact.created, fact.valid_from, fact.valid_to
       FROM graph_facts AS fact
       JOIN graph_entities AS subject ON subject.id = fact.subject
       JOIN graph_predicates AS predicate ON predicate.id = fact.predicate
       JOIN graph_entities AS object ON object.id = fact.object
       JOIN graph_sources AS source ON source.id = fact.source
      WHERE fact.id = ANY ($1)";

/// Facts that lead on from entities, up to `$2` of each, with the type of what they lead to.
macro_rules! edges {
    ($near:literal, $far:literal) => {
        concat!(
            "SELECT entity.id, edge.id, edge.far, reached.kind
               FROM unnest($1::bigint[]) AS entity (id)
              CROSS JOIN LATERAL (
                    SELECT id, predicate, ",
            $far,
            " AS far FROM graph_facts
                     WHERE ",
            $near,
            " = entity.id AND valid_to IS NULL
                     ORDER BY predicate, ",
            $far,
            " LIMIT $2) AS edge
               JOIN graph_entities AS reached ON reached.id = edge.far
              ORDER BY entity.id, edge.predicate, edge.far"
        )
    };
}

/// Those that have one of the predicates `$3`.
macro_rules! edges_with {
    ($near:literal, $far:literal) => {
        concat!(
            "SELECT entity.id, edge.id, edge.far, reached.kind
               FROM unnest($1::bigint[]) AS entity (id)
              CROSS JOIN LATERAL (
                    SELECT fact.id, fact.predicate, fact.far
                      FROM unnest($3::bigint[]) AS asked (predicate)
                     CROSS JOIN LATERAL (
                           SELECT id, predicate, ",
            $far,
            " AS far FROM graph_facts
                            WHERE ",
            $near,
            " = entity.id AND predicate = asked.predicate AND valid_to IS NULL
                            ORDER BY ",
            $far,
            " LIMIT $2) AS fact
                     ORDER BY fact.predicate, fact.far LIMIT $2) AS edge
               JOIN graph_entities AS reached ON reached.id = edge.far
              ORDER BY entity.id, edge.predicate, edge.far"
        )
    };
}

/// The facts that hold of subjects, and where they lead.
pub(super) const EDGES_OUT: &str = edges!("subject", "object");

/// Those with some predicates.
pub(super) const EDGES_OUT_WITH: &str = edges_with!("subject", "object");

/// The facts that hold of objects, and where they come from.
pub(super) const EDGES_IN: &str = edges!("object", "subject");

/// Those with some predicates.
pub(super) const EDGES_IN_WITH: &str = edges_with!("object", "subject");

/// What a query binds, and so which statement answers it: one for what holds, one for what held. What is bound comes in
/// the order subject, predicate, object, and then how many are wanted.
pub(super) struct Lookup {
    pub now: &'static str,
    pub once: &'static str,
}

macro_rules! lookup {
    ($bound:literal, $order:literal, $limit:literal) => {
        Lookup {
            now: concat!(
                "SELECT id FROM graph_facts WHERE ",
                $bound,
                " AND valid_to IS NULL ORDER BY ",
                $order,
                " LIMIT ",
                $limit
            ),
            once: concat!(
                "SELECT id FROM graph_facts WHERE ",
                $bound,
                " AND valid_to IS NOT NULL ORDER BY ",
                $order,
                " LIMIT ",
                $limit
            ),
        }
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

/// By both ends. It reads all that leads from one of them.
pub(super) const BY_ENDS: Lookup = lookup!("subject = $1 AND object = $2", "predicate, id", "$3");

/// By object and predicate.
pub(super) const BY_OBJECT_AND_PREDICATE: Lookup =
    lookup!("predicate = $1 AND object = $2", "subject, id", "$3");

/// By object.
pub(super) const BY_OBJECT: Lookup = lookup!("object = $1", "predicate, subject, id", "$2");

/// By predicate.
pub(super) const BY_PREDICATE: Lookup = Lookup {
    now: "SELECT id FROM graph_facts
           WHERE predicate = $1 AND valid_to IS NULL ORDER BY id LIMIT $2",
    once: "SELECT id FROM graph_facts
            WHERE predicate = $1 AND valid_to IS NOT NULL ORDER BY valid_to, id LIMIT $2",
};

macro_rules! all {
    ($held:literal, $order:literal) => {
        concat!(
            r#"SELECT fact.id FROM graph_predicates AS predicate
              CROSS JOIN LATERAL (
                    SELECT id, valid_to FROM graph_facts
                     WHERE graph_facts.predicate = predicate.id AND valid_to "#,
            $held,
            "
                     ORDER BY ",
            $order,
            r#" LIMIT $2) AS fact
              WHERE predicate."user" = $1
              ORDER BY predicate.key, "#,
            $order,
            " LIMIT $2"
        )
    };
}

/// All that hold of a user's.
pub(super) const ALL_NOW: &str = all!("IS NULL", "id");

/// All that held.
pub(super) const ALL_ONCE: &str = all!("IS NOT NULL", "valid_to, id");

/// How many facts of a user hold, and how many held.
pub(super) const COUNT_FACTS: &str = r#"SELECT coalesce(sum(held.now + held.once), 0)::bigint, coalesce(sum(held.once), 0)::bigint
       FROM graph_predicates AS predicate
      CROSS JOIN LATERAL (
            SELECT (SELECT count(*) FROM graph_facts
                     WHERE graph_facts.predicate = predicate.id AND valid_to IS NULL) AS now,
                   (SELECT count(*) FROM graph_facts
                     WHERE graph_facts.predicate = predicate.id AND valid_to IS NOT NULL) AS once) AS held
      WHERE predicate."user" = $1"#;

/// How many entities a user has.
pub(super) const COUNT_ENTITIES: &str = r#"SELECT count(*) FROM graph_entities WHERE "user" = $1"#;

/// Entities from a key on, in the order of the keys.
pub(super) const ENTITIES_FROM: &str = r#"SELECT name FROM graph_entities
      WHERE "user" = $1 AND key >= $2 ORDER BY key LIMIT $3"#;

/// Entities before a key, the last first.
pub(super) const ENTITIES_BEFORE: &str = r#"SELECT name FROM graph_entities
      WHERE "user" = $1 AND key < $2 ORDER BY key DESC LIMIT $3"#;

/// Predicates from a key on, in the order of the keys.
pub(super) const PREDICATES_FROM: &str = r#"SELECT name FROM graph_predicates
      WHERE "user" = $1 AND key >= $2 ORDER BY key LIMIT $3"#;

/// Predicates before a key, the last first.
pub(super) const PREDICATES_BEFORE: &str = r#"SELECT name FROM graph_predicates
      WHERE "user" = $1 AND key < $2 ORDER BY key DESC LIMIT $3"#;

/// The sources with a name, trusted or not.
pub(super) const SOURCES_NAMED: &str = r#"SELECT id FROM graph_sources
      WHERE "user" = $1 AND hashtextextended(name, 0) = hashtextextended($2, 0) AND name = $2"#;

/// Some facts of a source go; gives what they were about.
pub(super) const FORGET_FACTS_OF_SOURCE: &str = "DELETE FROM graph_facts
      WHERE id = ANY (ARRAY (SELECT id FROM graph_facts WHERE source = $1 LIMIT $2))
     RETURNING subject, predicate, object";

/// A source goes.
pub(super) const FORGET_SOURCE: &str = "DELETE FROM graph_sources WHERE id = $1";

/// Entities go if no fact is about them.
pub(super) const FORGET_LONE_ENTITIES: &str = "DELETE FROM graph_entities WHERE id = ANY ($1)
        AND NOT EXISTS (SELECT FROM graph_facts WHERE subject = graph_entities.id AND valid_to IS NULL LIMIT 1)
        AND NOT EXISTS (SELECT FROM graph_facts WHERE object = graph_entities.id AND valid_to IS NULL LIMIT 1)
        AND NOT EXISTS (SELECT FROM graph_facts WHERE subject = graph_entities.id AND valid_to IS NOT NULL LIMIT 1)
        AND NOT EXISTS (SELECT FROM graph_facts WHERE object = graph_entities.id AND valid_to IS NOT NULL LIMIT 1)";

/// Predicates go if no fact has them.
pub(super) const FORGET_LONE_PREDICATES: &str = "DELETE FROM graph_predicates WHERE id = ANY ($1)
        AND NOT EXISTS (SELECT FROM graph_facts WHERE predicate = graph_predicates.id AND valid_to IS NULL LIMIT 1)
        AND NOT EXISTS (SELECT FROM graph_facts WHERE predicate = graph_predicates.id AND valid_to IS NOT NULL LIMIT 1)";

/// Some facts of a user go.
pub(super) const FORGET_FACTS_OF_USER: &str = r#"DELETE FROM graph_facts WHERE id = ANY (ARRAY (
         SELECT fact.id
           FROM graph_predicates AS predicate
          CROSS JOIN LATERAL (
                (SELECT id FROM graph_facts
                  WHERE graph_facts.predicate = predicate.id AND valid_to IS NULL LIMIT $2)
                UNION ALL
                (SELECT id FROM graph_facts
                  WHERE graph_facts.predicate = predicate.id AND valid_to IS NOT NULL LIMIT $2)) AS fact
          WHERE predicate."user" = $1 LIMIT $2))"#;

/// Some entities of a user go.
pub(super) const FORGET_ENTITIES_OF_USER: &str = r#"DELETE FROM graph_entities
      WHERE id = ANY (ARRAY (SELECT id FROM graph_entities WHERE "user" = $1 LIMIT $2))"#;

/// Some predicates of a user go.
pub(super) const FORGET_PREDICATES_OF_USER: &str = r#"DELETE FROM graph_predicates
      WHERE id = ANY (ARRAY (SELECT id FROM graph_predicates WHERE "user" = $1 LIMIT $2))"#;

/// Some sources of a user go.
pub(super) const FORGET_SOURCES_OF_USER: &str = r#"DELETE FROM graph_sources
      WHERE id = ANY (ARRAY (SELECT id FROM graph_sources WHERE "user" = $1 LIMIT $2))"#;

/// A user goes.
pub(super) const FORGET_USER: &str = "DELETE FROM graph_users WHERE id = $1";

/// What is asked every day.
#[cfg(test)]
pub(in crate::postgres) const EVERYDAY: &[&str] = &[
    USER,
    HOLD_USER,
    INSERT_USER,
    ENTITY,
    ENTITIES_WITH_KEYS,
    ENTITIES,
    ENTITIES_BY_KEYS,
    INSERT_ENTITIES,
    SET_KINDS,
    PREDICATE,
    PREDICATES_BY_KEYS,
    INSERT_PREDICATES,
    SOURCES_BY_NAMES,
    INSERT_SOURCES,
    HOLDING,
    INSERT_FACTS,
    SET_WORDS,
    END,
    FACTS,
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
    FORGET_LONE_ENTITIES,
    FORGET_LONE_PREDICATES,
    FORGET_FACTS_OF_USER,
    FORGET_ENTITIES_OF_USER,
    FORGET_PREDICATES_OF_USER,
    FORGET_SOURCES_OF_USER,
    FORGET_USER,
    BY_ALL.now,
    BY_ALL.once,
    BY_SUBJECT_AND_PREDICATE.now,
    BY_SUBJECT_AND_PREDICATE.once,
    BY_SUBJECT.now,
    BY_SUBJECT.once,
    BY_ENDS.now,
    BY_ENDS.once,
    BY_OBJECT_AND_PREDICATE.now,
    BY_OBJECT_AND_PREDICATE.once,
    BY_OBJECT.now,
    BY_OBJECT.once,
    BY_PREDICATE.now,
    BY_PREDICATE.once,
];
