-- Deleting a session looks up the collections that only it can search.

CREATE INDEX library_collections_by_session ON library_collections (session) WHERE session <> '';
