-- The author of an event, and the hash that covers the row before it. Both are empty in older rows.

ALTER TABLE events ADD COLUMN author TEXT NOT NULL DEFAULT '';

ALTER TABLE events ADD COLUMN hash BLOB NOT NULL DEFAULT x'';
