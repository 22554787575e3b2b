-- For tasks that several replicas work on: the revision of a task, how often it was resumed, the id of the message that opened
-- it, which cannot open a second one, and whether the replica that runs it must cancel it.

ALTER TABLE tasks ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;

ALTER TABLE tasks ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;

ALTER TABLE tasks ADD COLUMN message TEXT;

ALTER TABLE tasks ADD COLUMN cancelled INTEGER NOT NULL DEFAULT 0;

CREATE UNIQUE INDEX tasks_by_message ON tasks (user, message) WHERE message IS NOT NULL;

CREATE INDEX tasks_to_cancel ON tasks (id) WHERE cancelled;
