-- What waits for a person, and what they granted for calls to come. A row is waiting while it has no pattern; an answer
-- for one call alone, and a grant that is taken back, leave no row. The log keeps every question and every answer.

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
