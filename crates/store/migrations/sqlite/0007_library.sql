-- The library: documents in collections, split into chunks. A collection with a session is visible only there.
-- The key of a chunk is its collection's key times 2^32, plus its number in the collection, which is never reused. So the chunks
-- of a collection are one range of keys, and a chunk's key determines its slot in `library_bits`. The generation counts changes
-- to the collection's vectors.
CREATE TABLE library_collections (
    id         INTEGER PRIMARY KEY,
    user       TEXT NOT NULL,
    name       TEXT NOT NULL,
    session    TEXT NOT NULL DEFAULT '',
    next_chunk INTEGER NOT NULL DEFAULT 0,
    chunks     INTEGER NOT NULL DEFAULT 0,
    words      INTEGER NOT NULL DEFAULT 0,
    vectors    INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 0,
    UNIQUE (user, name, session)
) STRICT;

CREATE TABLE library_documents (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    collection INTEGER NOT NULL REFERENCES library_collections (id),
    source     TEXT NOT NULL,
    trust      TEXT NOT NULL CHECK (trust IN ('trusted', 'untrusted')),
    title      TEXT NOT NULL,
    hash       BLOB NOT NULL,
    size       INTEGER NOT NULL,
    added      INTEGER NOT NULL,
    complete   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (collection, source)
) STRICT;

CREATE TABLE library_chunks (
    id       INTEGER PRIMARY KEY,
    document INTEGER NOT NULL REFERENCES library_documents (id),
    ordinal  INTEGER NOT NULL,
    position INTEGER NOT NULL,
    words    INTEGER NOT NULL,
    heading  TEXT NOT NULL,
    text     TEXT NOT NULL
) STRICT;
CREATE INDEX library_chunks_by_document ON library_chunks (document, ordinal);

-- The full-text index of the chunks. Triggers update it.
CREATE VIRTUAL TABLE library_index USING fts5 (
    heading, text, content = 'library_chunks', content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER library_chunks_indexed AFTER INSERT ON library_chunks BEGIN
    INSERT INTO library_index (rowid, heading, text) VALUES (new.id, new.heading, new.text);
END;
CREATE TRIGGER library_chunks_forgotten AFTER DELETE ON library_chunks BEGIN
    INSERT INTO library_index (library_index, rowid, heading, text)
    VALUES ('delete', old.id, old.heading, old.text);
END;
CREATE VIRTUAL TABLE library_words USING fts5vocab ('library_index', 'row');
CREATE VIRTUAL TABLE library_places USING fts5vocab ('library_index', 'instance');

-- The embedding model of all vectors, so there is at most one row.
CREATE TABLE library_maker (
    only  INTEGER PRIMARY KEY CHECK (only = 1),
    maker TEXT NOT NULL
) STRICT;

-- The vector of a chunk, one signed byte per number; and blocks of the signs of 128 chunks with consecutive keys, for the coarse
-- scan.
CREATE TABLE library_vectors (
    chunk   INTEGER PRIMARY KEY,
    numbers BLOB NOT NULL
) STRICT;
CREATE TABLE library_bits (
    block   INTEGER PRIMARY KEY,
    present BLOB NOT NULL,
    bits    BLOB NOT NULL
) STRICT;

-- Knowledge that agents saved under a key. A new version does not replace old ones; only the newest has a document.
CREATE TABLE knowledge (
    user     TEXT NOT NULL,
    key      TEXT NOT NULL,
    version  INTEGER NOT NULL,
    category TEXT NOT NULL,
    content  TEXT NOT NULL,
    tags     TEXT NOT NULL,
    source   TEXT NOT NULL,
    trust    TEXT NOT NULL CHECK (trust IN ('trusted', 'untrusted')),
    saved    INTEGER NOT NULL,
    document INTEGER UNIQUE,
    PRIMARY KEY (user, key, version)
) STRICT;

-- Learnings: problems that agents met, and the fixes that helped.
CREATE TABLE learnings (
    user          TEXT NOT NULL,
    occasion      TEXT NOT NULL,
    fix           TEXT NOT NULL,
    error_pattern TEXT NOT NULL,
    confidence    REAL NOT NULL,
    source        TEXT NOT NULL,
    trust         TEXT NOT NULL CHECK (trust IN ('trusted', 'untrusted')),
    saved         INTEGER NOT NULL,
    document      INTEGER UNIQUE,
    PRIMARY KEY (user, occasion, fix)
) STRICT;
