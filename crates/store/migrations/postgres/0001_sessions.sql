-- Sessions with their users, their append-only logs and the tables derived from them; tasks of remote callers; and the leases of
-- sessions. Tables and columns have the same names as in SQLite, and numbers the same width, so that rows can be moved. Text is
-- compared byte by byte.

CREATE TABLE sessions (
    id      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "user"  TEXT COLLATE "C" NOT NULL,
    title   TEXT NOT NULL DEFAULT '',
    created BIGINT NOT NULL,
    updated BIGINT NOT NULL
);

CREATE INDEX sessions_by_use ON sessions ("user", updated DESC, id);

CREATE INDEX sessions_by_id ON sessions ("user", id);

-- `body` is the event's JSON, including its `type`, exactly as it was written; `time` is in milliseconds.
CREATE TABLE events (
    session TEXT COLLATE "C" NOT NULL REFERENCES sessions (id),
    seq     BIGINT NOT NULL,
    turn    TEXT COLLATE "C" NOT NULL,
    frame   TEXT COLLATE "C" NOT NULL,
    time    BIGINT NOT NULL,
    body    TEXT NOT NULL,
    author  TEXT COLLATE "C" NOT NULL DEFAULT '',
    hash    BYTEA NOT NULL DEFAULT ''::bytea,
    PRIMARY KEY (session, seq)
);

-- One row per turn, with the positions of its question, its answer and the delegation behind that answer in the log.
CREATE TABLE turns (
    session        TEXT COLLATE "C" NOT NULL REFERENCES sessions (id),
    ordinal        BIGINT NOT NULL,
    turn           TEXT COLLATE "C" NOT NULL,
    first_seq      BIGINT NOT NULL,
    question_seq   BIGINT NOT NULL,
    delegation_seq BIGINT,
    answer_seq     BIGINT,
    finished       BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (session, ordinal)
);

CREATE INDEX turns_by_id ON turns (session, turn, first_seq);

CREATE INDEX turns_unfinished ON turns (session) WHERE finished = 0;

-- Pending requests for approval, and grants for later calls. A row without a pattern is pending.
CREATE TABLE approvals (
    session TEXT COLLATE "C" NOT NULL REFERENCES sessions (id),
    id      TEXT COLLATE "C" NOT NULL,
    "user"  TEXT COLLATE "C" NOT NULL,
    turn    TEXT COLLATE "C" NOT NULL,
    time    BIGINT NOT NULL,
    request TEXT NOT NULL,
    pattern TEXT,
    folder  TEXT COLLATE "C",
    PRIMARY KEY (session, id)
);

CREATE INDEX approvals_by_user ON approvals ("user", time, id);

CREATE INDEX approvals_by_id ON approvals ("user", id);

CREATE INDEX approvals_by_folder ON approvals ("user", folder) WHERE folder IS NOT NULL;

-- The conversation of a session with each remote agent. `task` is set while a task is open.
CREATE TABLE remote_threads (
    session TEXT COLLATE "C" NOT NULL REFERENCES sessions (id),
    agent   TEXT COLLATE "C" NOT NULL,
    context TEXT NOT NULL,
    task    TEXT,
    PRIMARY KEY (session, agent)
);

-- Tasks of remote callers, as JSON of their protocol, with the columns by which they are found.
CREATE TABLE tasks (
    id      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "user"  TEXT COLLATE "C" NOT NULL,
    context TEXT COLLATE "C" NOT NULL,
    state   TEXT COLLATE "C" NOT NULL,
    running BIGINT NOT NULL,
    updated BIGINT NOT NULL,
    body    TEXT NOT NULL,
    revision BIGINT NOT NULL DEFAULT 1,
    attempts BIGINT NOT NULL DEFAULT 0,
    message  TEXT COLLATE "C",
    cancelled BIGINT NOT NULL DEFAULT 0
);

-- One message opens one task.
CREATE UNIQUE INDEX tasks_by_message ON tasks ("user", message) WHERE message IS NOT NULL;

-- Running tasks that the replica that runs them must cancel.
CREATE INDEX tasks_to_cancel ON tasks (id) WHERE cancelled <> 0;

CREATE INDEX tasks_by_user ON tasks ("user", updated, id);

CREATE INDEX tasks_by_context ON tasks ("user", context, updated, id);

CREATE INDEX tasks_by_state ON tasks ("user", state, updated, id);

CREATE INDEX tasks_running ON tasks (updated, id) WHERE running <> 0;

-- The lease of each session: the replica that owns it, when it expires by this server's clock, and its unique fencing token. A
-- session can be leased before it is created. A released lease expired in the past and keeps its token. Tokens only increase.
CREATE TABLE holds (
    session TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    holder  TEXT COLLATE "C" NOT NULL,
    fence   BIGINT NOT NULL,
    until   TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 50);

CREATE SEQUENCE hold_fences;

-- The queue of waiters for a session, in the order of their tickets. A ticket that is not renewed is skipped.
CREATE TABLE hold_line (
    ticket  BIGSERIAL NOT NULL PRIMARY KEY,
    session TEXT COLLATE "C" NOT NULL,
    holder  TEXT COLLATE "C" NOT NULL,
    until   TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 50);

CREATE INDEX hold_line_by_session ON hold_line (session, ticket);
