-- What is known, as facts: subject, predicate, object. Each user has entities, predicates and sources of their own, so
-- that the id of one says whose it is and no fact names its user. Names are found by their `key`, the folded name.
--
-- Facts do not declare that they reference these tables: the check on deleting an entity could not use the indices
-- below, which hold either what is so or what was so. The code deletes facts first.

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

-- A fact holds while `valid_to` is null.
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

-- A walk along the facts reads these two and nothing else. The first also sees to it that nothing holds twice.
CREATE UNIQUE INDEX graph_facts_out ON graph_facts (subject, predicate, object) WHERE valid_to IS NULL;

CREATE INDEX graph_facts_in ON graph_facts (object, predicate, subject) WHERE valid_to IS NULL;

CREATE INDEX graph_facts_once_out ON graph_facts (subject, predicate, object) WHERE valid_to IS NOT NULL;

CREATE INDEX graph_facts_once_in ON graph_facts (object, predicate, subject) WHERE valid_to IS NOT NULL;

CREATE INDEX graph_facts_by_predicate ON graph_facts (predicate, valid_to);

CREATE INDEX graph_facts_by_source ON graph_facts (source);
