-- The knowledge graph: facts with subject, predicate and object. Each user has separate entities, predicates and sources, so
-- their ids determine the user, and facts have no user column. Names are found by their `key`, the folded name.
--
-- Facts have no foreign keys to these tables: when an entity is deleted, the check could not use the partial indices below. The
-- code deletes facts first.

CREATE TABLE graph_users (
    id   INTEGER PRIMARY KEY,
    user TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE graph_entities (
    id   INTEGER PRIMARY KEY,
    user INTEGER NOT NULL REFERENCES graph_users (id),
    key  TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT,
    UNIQUE (user, key)
) STRICT;

CREATE TABLE graph_predicates (
    id   INTEGER PRIMARY KEY,
    user INTEGER NOT NULL REFERENCES graph_users (id),
    key  TEXT NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (user, key)
) STRICT;

CREATE TABLE graph_sources (
    id      INTEGER PRIMARY KEY,
    user    INTEGER NOT NULL REFERENCES graph_users (id),
    name    TEXT NOT NULL,
    trusted INTEGER NOT NULL,
    UNIQUE (user, name, trusted)
) STRICT;

-- A fact is current while `valid_to` is null.
CREATE TABLE graph_facts (
    id         INTEGER PRIMARY KEY,
    subject    INTEGER NOT NULL,
    predicate  INTEGER NOT NULL,
    object     INTEGER NOT NULL,
    source     INTEGER NOT NULL,
    confidence REAL NOT NULL,
    created    INTEGER NOT NULL,
    valid_from INTEGER NOT NULL,
    valid_to   INTEGER
) STRICT;

-- A walk along facts reads only these two indices. The first one also ensures that a fact is current only once.
CREATE UNIQUE INDEX graph_facts_out ON graph_facts (subject, predicate, object) WHERE valid_to IS NULL;

CREATE INDEX graph_facts_in ON graph_facts (object, predicate, subject) WHERE valid_to IS NULL;

CREATE INDEX graph_facts_once_out ON graph_facts (subject, predicate, object) WHERE valid_to IS NOT NULL;

CREATE INDEX graph_facts_once_in ON graph_facts (object, predicate, subject) WHERE valid_to IS NOT NULL;

CREATE INDEX graph_facts_by_predicate ON graph_facts (predicate, valid_to);

CREATE INDEX graph_facts_by_source ON graph_facts (source);
