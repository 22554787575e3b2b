-- Sessions with their users, and their append-only logs.

CREATE TABLE sessions (
    id      TEXT NOT NULL PRIMARY KEY,
    user    TEXT NOT NULL,
    title   TEXT NOT NULL DEFAULT '',
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_use ON sessions (user, updated DESC, id);

CREATE INDEX sessions_by_id ON sessions (user, id);

-- `body` is the event's JSON, including its `type`, exactly as it was written; `time` is in milliseconds.
CREATE TABLE events (
    session TEXT NOT NULL REFERENCES sessions (id),
    seq     INTEGER NOT NULL,
    turn    TEXT NOT NULL,
    frame   TEXT NOT NULL,
    time    INTEGER NOT NULL,
    body    TEXT NOT NULL,
    PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;
