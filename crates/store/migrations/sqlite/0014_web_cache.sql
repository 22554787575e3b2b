-- Cached web pages, by user and the SHA-256 of their URL. Times are in milliseconds; `size` counts towards the user's limit.

CREATE TABLE web_pages (
    user          TEXT NOT NULL,
    digest        TEXT NOT NULL,
    fetched       INTEGER NOT NULL,
    fresh_until   INTEGER NOT NULL,
    size          INTEGER NOT NULL,
    etag          TEXT,
    last_modified TEXT,
    content       TEXT NOT NULL,
    PRIMARY KEY (user, digest)
) STRICT;

CREATE INDEX web_pages_by_age ON web_pages (user, fetched DESC, digest, size);
