-- Tasks that several copies of the program work on: which writing of a task this is, how often it was taken up again, and
-- the mark of the message that opened it, which opens none a second time.

ALTER TABLE tasks ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;

ALTER TABLE tasks ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;

ALTER TABLE tasks ADD COLUMN message TEXT;

CREATE UNIQUE INDEX tasks_by_message ON tasks (user, message) WHERE message IS NOT NULL;

-- Tasks at work that are to be cancelled, for whoever is at work on them.
CREATE TABLE task_cancels (
    task TEXT NOT NULL PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
