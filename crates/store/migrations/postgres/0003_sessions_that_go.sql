-- What only a session could search is looked for when the session is deleted.

CREATE INDEX library_collections_by_session ON library_collections (session) WHERE session <> '';
