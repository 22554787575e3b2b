-- Pending requests for approval, and grants for later calls. A row without a pattern is pending. An answer for a single call
-- and a revoked grant leave no row. The log has every request and every answer.

CREATE TABLE approvals (
    session TEXT NOT NULL REFERENCES sessions (id),
    id      TEXT NOT NULL,
    user    TEXT NOT NULL,
    turn    TEXT NOT NULL,
    time    INTEGER NOT NULL,
    request TEXT NOT NULL,
    pattern TEXT,
    folder  TEXT,
    PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX approvals_by_user ON approvals (user, time, id);

CREATE INDEX approvals_by_id ON approvals (user, id);

CREATE INDEX approvals_by_folder ON approvals (user, folder) WHERE folder IS NOT NULL;
