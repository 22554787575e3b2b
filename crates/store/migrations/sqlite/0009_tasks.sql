-- Tasks of remote callers, as JSON of their protocol, with the columns by which they are found.

CREATE TABLE tasks (
    id      TEXT NOT NULL PRIMARY KEY,
    user    TEXT NOT NULL,
    context TEXT NOT NULL,
    state   TEXT NOT NULL,
    running INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    body    TEXT NOT NULL
) STRICT;

CREATE INDEX tasks_by_user ON tasks (user, updated, id);

CREATE INDEX tasks_by_context ON tasks (user, context, updated, id);

CREATE INDEX tasks_by_state ON tasks (user, state, updated, id);

-- Finds the turn of a task, which has the same id.
CREATE INDEX turns_by_id ON turns (session, turn, first_seq);

CREATE INDEX tasks_running ON tasks (updated, id) WHERE running;
