-- Tokens of the HTTP API, by the SHA-256 of their secrets. A sign-in link is a token that is exchanged once. Times are in
-- milliseconds.

CREATE TABLE access_tokens (
    id      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "user"  TEXT COLLATE "C" NOT NULL,
    name    TEXT NOT NULL,
    kind    TEXT NOT NULL,
    scopes  TEXT NOT NULL,
    digest  BYTEA NOT NULL UNIQUE,
    created BIGINT NOT NULL,
    expires BIGINT
);
