-- Makes `events` a rowid table with an index on (session, seq). Without rowids the inner pages contained whole events as keys, and
-- appending to one of many sessions inserted in the middle of the tree, which split pages often.

CREATE TABLE new_events (
    session TEXT NOT NULL REFERENCES sessions (id),
    seq     INTEGER NOT NULL,
    turn    TEXT NOT NULL,
    frame   TEXT NOT NULL,
    time    INTEGER NOT NULL,
    body    TEXT NOT NULL,
    author  TEXT NOT NULL DEFAULT '',
    hash    BLOB NOT NULL DEFAULT x'',
    PRIMARY KEY (session, seq)
) STRICT;

INSERT INTO new_events (session, seq, turn, frame, time, body, author, hash)
SELECT session, seq, turn, frame, time, body, author, hash FROM events ORDER BY session, seq;

DROP TABLE events;

ALTER TABLE new_events RENAME TO events;
