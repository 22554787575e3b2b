-- The memory of a session. Observations (generation 0) summarize its turns, and reflections (1, then 2) summarize the previous
-- generation. A row that was condensed refers to the result in `part_of`, which becomes null again when the result is deleted.
-- `first_turn` and `last_turn` are the ordinals of the first and last turn that a row covers.

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

-- The progress of a session's memory: the number of observed turns, whether all of them are trusted, and the number of
-- consecutive failures of the model. `revision` increases with every step and every deletion; a step that started at another
-- revision is discarded.
CREATE TABLE watermarks (
    session  TEXT NOT NULL PRIMARY KEY REFERENCES sessions (id),
    user     TEXT NOT NULL,
    observed INTEGER NOT NULL DEFAULT 0,
    revision INTEGER NOT NULL DEFAULT 0,
    trusted  INTEGER NOT NULL DEFAULT 1,
    failures INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- Turns that must not be observed, because the user asked to forget something in them before they were observed.
CREATE TABLE forgotten_turns (
    session TEXT NOT NULL REFERENCES sessions (id),
    ordinal INTEGER NOT NULL,
    PRIMARY KEY (session, ordinal)
) STRICT, WITHOUT ROWID;

-- Memories that a user asked to save, for all sessions. `tags` is a JSON array of texts.
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
