-- Cached web pages, by user and the SHA-256 of their URL. Times are in milliseconds; `size` counts towards the user's limit.

CREATE TABLE web_pages (
    "user"        TEXT COLLATE "C" NOT NULL,
    digest        TEXT COLLATE "C" NOT NULL,
    fetched       BIGINT NOT NULL,
    fresh_until   BIGINT NOT NULL,
    size          BIGINT NOT NULL,
    etag          TEXT,
    last_modified TEXT,
    content       TEXT NOT NULL,
    PRIMARY KEY ("user", digest)
);

CREATE INDEX web_pages_by_age ON web_pages ("user", fetched DESC, digest, size);
