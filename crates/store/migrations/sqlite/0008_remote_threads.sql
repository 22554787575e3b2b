-- The conversation of a session with each remote agent, by the ids that the agent assigned. `task` is set while a task is open.
-- The rows are derived from the log.

CREATE TABLE remote_threads (
    session TEXT NOT NULL REFERENCES sessions (id),
    agent   TEXT NOT NULL,
    context TEXT NOT NULL,
    task    TEXT,
    PRIMARY KEY (session, agent)
) STRICT, WITHOUT ROWID;
