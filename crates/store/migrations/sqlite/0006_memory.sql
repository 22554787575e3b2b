-- What is remembered of a session. Observations (generation 0) are made of its turns, reflections (1, then 2) of the
-- generation before. A row that went into a later one names it in `part_of`; when that one is deleted, the row is loose
-- again. `first_turn` and `last_turn` are ordinals of the turns that are covered.

CREATE TABLE recollections (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    user       TEXT NOT NULL,
    session    TEXT NOT NULL REFERENCES sessions (id),
    generation INTEGER NOT NULL CHECK (generation BETWEEN 0 AND 2),
    first_turn INTEGER NOT NULL,
    last_turn  INTEGER NOT NULL,
    text       TEXT NOT NULL,
    source     TEXT NOT NULL,
    trusted    INTEGER NOT NULL,
    created    INTEGER NOT NULL,
    part_of    INTEGER REFERENCES recollections (id) ON DELETE SET NULL
) STRICT;

CREATE INDEX recollections_by_owner ON recollections (user, session, generation, id);

CREATE INDEX recollections_loose ON recollections (user, session, generation, id) WHERE part_of IS NULL;

CREATE INDEX recollections_by_whole ON recollections (part_of) WHERE part_of IS NOT NULL;

-- How far a session's memory is: how many of its turns are observed, whether all of them may be believed, and how often
-- in a row the model failed. `revision` grows with every step and with everything forgotten; a step that was begun at
-- another one is void.
CREATE TABLE watermarks (
    session  TEXT NOT NULL PRIMARY KEY REFERENCES sessions (id),
    user     TEXT NOT NULL,
    observed INTEGER NOT NULL DEFAULT 0,
    revision INTEGER NOT NULL DEFAULT 0,
    trusted  INTEGER NOT NULL DEFAULT 1,
    failures INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- Turns that must not be observed, because something in them was to be forgotten first.
CREATE TABLE forgotten_turns (
    session TEXT NOT NULL REFERENCES sessions (id),
    ordinal INTEGER NOT NULL,
    PRIMARY KEY (session, ordinal)
) STRICT, WITHOUT ROWID;

-- What was to be remembered of a user, whatever the session. `tags` is a JSON array of texts.
CREATE TABLE saved_memories (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    user    TEXT NOT NULL,
    text    TEXT NOT NULL,
    tags    TEXT NOT NULL,
    source  TEXT NOT NULL,
    trusted INTEGER NOT NULL,
    created INTEGER NOT NULL
) STRICT;

CREATE INDEX saved_memories_by_user ON saved_memories (user, id);

CREATE INDEX saved_memories_untrusted ON saved_memories (user) WHERE trusted = 0;
