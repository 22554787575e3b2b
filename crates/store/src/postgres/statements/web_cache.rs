//! The statements on stored web pages.

pub(in crate::postgres) const PAGE: &str = r#"SELECT fetched, fresh_until, etag, last_modified, content FROM web_pages
      WHERE "user" = $1 AND digest = $2"#;

pub(in crate::postgres) const STORE_PAGE: &str = r#"INSERT INTO web_pages ("user", digest, fetched, fresh_until, size, etag, last_modified, content)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
     ON CONFLICT ("user", digest) DO UPDATE SET fetched = excluded.fetched,
        fresh_until = excluded.fresh_until, size = excluded.size, etag = excluded.etag,
        last_modified = excluded.last_modified, content = excluded.content"#;

pub(in crate::postgres) const REMOVE_PAGE: &str =
    r#"DELETE FROM web_pages WHERE "user" = $1 AND digest = $2"#;

/// Deletes a user's oldest pages beyond `$2` bytes.
pub(in crate::postgres) const EVICT_PAGES: &str = r#"DELETE FROM web_pages WHERE "user" = $1 AND digest IN
        (SELECT digest FROM
            (SELECT digest, sum(size) OVER (ORDER BY fetched DESC, digest) AS total
               FROM web_pages WHERE "user" = $1) AS pages
          WHERE total > $2::bigint)"#;
