-- Where the conversation of a session with each remote agent stands, by the names that the agent gave. The task is there
-- while it is not over. Kept in step with the log, which could tell all of it.

CREATE TABLE remote_threads (
    session TEXT NOT NULL REFERENCES sessions (id),
    agent   TEXT NOT NULL,
    context TEXT NOT NULL,
    task    TEXT,
    PRIMARY KEY (session, agent)
) STRICT, WITHOUT ROWID;
