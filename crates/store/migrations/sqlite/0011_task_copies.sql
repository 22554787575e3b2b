-- Tasks that several copies of the program work on: which writing of a task this is, how often it was taken up again, the
-- mark of the message that opened it, which opens none a second time, and whether it is to be cancelled by whoever is at
-- work on it.

ALTER TABLE tasks ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;

ALTER TABLE tasks ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;

ALTER TABLE tasks ADD COLUMN message TEXT;

ALTER TABLE tasks ADD COLUMN cancelled INTEGER NOT NULL DEFAULT 0;

CREATE UNIQUE INDEX tasks_by_message ON tasks (user, message) WHERE message IS NOT NULL;

CREATE INDEX tasks_to_cancel ON tasks (id) WHERE cancelled;
