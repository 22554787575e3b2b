-- Who said it, and the link to the row before. Both stay empty in rows that were written without them.

ALTER TABLE events ADD COLUMN author TEXT NOT NULL DEFAULT '';

ALTER TABLE events ADD COLUMN hash BLOB NOT NULL DEFAULT x'';
