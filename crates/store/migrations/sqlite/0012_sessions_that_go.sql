-- Deleting a session looks it up in every table that references it.

CREATE INDEX recollections_by_session ON recollections (session);

CREATE INDEX library_collections_by_session ON library_collections (session) WHERE session <> '';
