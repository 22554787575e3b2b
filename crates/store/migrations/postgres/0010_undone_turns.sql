-- The position of the event that undid a turn.

ALTER TABLE turns ADD COLUMN undone_seq BIGINT;
