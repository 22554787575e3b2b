-- The bytes of attachments, once for each user and digest, and the sessions that refer to them. Each put has a row until an event
-- refers to its bytes. Its time is in milliseconds; a put that no event refers to expires.

CREATE TABLE attachments (
    "user" TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    bytes  BYTEA NOT NULL,
    PRIMARY KEY ("user", digest)
);

CREATE TABLE attachment_references (
    session TEXT COLLATE "C" NOT NULL REFERENCES sessions (id),
    digest  TEXT COLLATE "C" NOT NULL,
    "user"  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (session, digest)
);

CREATE INDEX attachment_references_by_digest ON attachment_references ("user", digest);

CREATE TABLE attachment_puts (
    "user" TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    time   BIGINT NOT NULL,
    PRIMARY KEY ("user", digest, time)
);

CREATE INDEX attachment_puts_by_time ON attachment_puts (time);
