//! The statements on stored web pages.

pub(in crate::sqlite) const PAGE: &str =
    "SELECT fetched, fresh_until, etag, last_modified, content FROM web_pages
      WHERE user = ?1 AND digest = ?2";

pub(in crate::sqlite) const STORE_PAGE: &str =
    "INSERT INTO web_pages (user, digest, fetched, fresh_until, size, etag, last_modified, content)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
     ON CONFLICT (user, digest) DO UPDATE SET fetched = excluded.fetched,
        fresh_until = excluded.fresh_until, size = excluded.size, etag = excluded.etag,
        last_modified = excluded.last_modified, content = excluded.content";

pub(in crate::sqlite) const REMOVE_PAGE: &str =
    "DELETE FROM web_pages WHERE user = ?1 AND digest = ?2";

/// Deletes a user's oldest pages beyond `?2` bytes.
pub(in crate::sqlite) const EVICT_PAGES: &str =
    "DELETE FROM web_pages WHERE user = ?1 AND digest IN
        (SELECT digest FROM
            (SELECT digest, sum(size) OVER (ORDER BY fetched DESC, digest) AS total
               FROM web_pages WHERE user = ?1)
          WHERE total > ?2)";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::statements::tests::plan_of;

    #[test]
    fn no_statement_on_web_pages_scans_the_pages_of_other_users_or_sorts() {
        for statement in [PAGE, REMOVE_PAGE, EVICT_PAGES] {
            let plan = plan_of(statement);
            let is_scan = plan.contains("SCAN web_pages");
            assert!(!is_scan && !plan.contains("TEMP B-TREE"), "{plan}");
        }
    }
}
