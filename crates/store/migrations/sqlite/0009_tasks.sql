-- Tasks that somebody outside gave lango, as JSON in the words of their protocol, with what they are found by.

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

-- The end of a turn is looked for by the task that it was.
CREATE INDEX turns_by_id ON turns (session, turn, first_seq);

CREATE INDEX tasks_running ON tasks (updated, id) WHERE running;
