-- The bytes of attachments, once for each user and digest, and the sessions that refer to them. Each put has a row until an event
-- refers to its bytes. Its time is in milliseconds; a put that no event refers to expires.

CREATE TABLE attachments (
    user   TEXT NOT NULL,
    digest TEXT NOT NULL,
    bytes  BLOB NOT NULL,
    PRIMARY KEY (user, digest)
) STRICT;

CREATE TABLE attachment_references (
    session TEXT NOT NULL REFERENCES sessions (id),
    digest  TEXT NOT NULL,
    user    TEXT NOT NULL,
    PRIMARY KEY (session, digest)
) STRICT, WITHOUT ROWID;

CREATE INDEX attachment_references_by_digest ON attachment_references (user, digest);

CREATE TABLE attachment_puts (
    user   TEXT NOT NULL,
    digest TEXT NOT NULL,
    time   INTEGER NOT NULL,
    PRIMARY KEY (user, digest, time)
) STRICT, WITHOUT ROWID;

CREATE INDEX attachment_puts_by_time ON attachment_puts (time);
