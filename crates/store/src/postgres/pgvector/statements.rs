//! The SQL about the extension and its index, all of it. Where the extension is, and how long the vectors are, can only be
//! told by the text of a statement; both come from the database itself.

use super::Index;

/// How things stand: the extension's version and its schema; the numbers
/// of a vector; how many there are; whether the index can be used; whether it is ours to make; and where the extension is
/// not installed, the version that could be, and whether we may.
pub(super) const STATE: &str = r#"SELECT extension.extversion, quote_ident(namespace.nspname), maker.dimensions,
            (SELECT coalesce(sum(vectors), 0)::bigint FROM library_collections),
            index.indisvalid, pg_has_role(vectors.relowner, 'USAGE'), available.version,
            coalesce(available.may, false)
       FROM (SELECT (SELECT (maker::jsonb ->> 'dimensions')::bigint FROM library_maker WHERE "only" = 1))
            AS maker (dimensions)
       JOIN pg_class AS vectors ON vectors.oid = 'library_vectors'::regclass
       LEFT JOIN pg_extension AS extension ON extension.extname = 'vector'
       LEFT JOIN pg_namespace AS namespace ON namespace.oid = extension.extnamespace
       LEFT JOIN pg_index AS index ON index.indrelid = vectors.oid
        AND index.indexrelid = to_regclass('library_near_' || maker.dimensions)
       LEFT JOIN LATERAL (
            SELECT each.version, current_setting('is_superuser') = 'on'
                   OR (each.trusted AND has_database_privilege(current_database(), 'CREATE')) AS may
              FROM pg_available_extensions AS newest
              JOIN pg_available_extension_versions AS each
                ON each.name = newest.name AND each.version = newest.default_version
             WHERE newest.name = 'vector' AND extension.oid IS NULL) AS available ON true"#;

/// Installs the extension where a person would have. Being refused, for whatever reason, is an answer.
pub(super) const INSTALL: &str = "DO $$ BEGIN
     EXECUTE format('CREATE EXTENSION IF NOT EXISTS vector SCHEMA %I',
        CASE WHEN to_regnamespace('public') IS NULL THEN current_schema() ELSE 'public' END);
     EXCEPTION WHEN OTHERS THEN NULL;
     END $$";

/// One at a time makes the index beside others. The lock ends with the connection.
pub(super) const TRY_TO_LOCK_MAKING: &str = "SELECT pg_try_advisory_lock(hashtextextended('lango near ' || current_setting('search_path'), 0))";

/// How long that may take, and how much memory: what lies beyond is made on disk, more slowly. Many servers in containers
/// have too little shared memory for workers beside it.
pub(super) const TAKE_TIME: &str = "SET statement_timeout = '12h';
     SET max_parallel_maintenance_workers = 0;
     SELECT set_config('maintenance_work_mem', '256MB', false)
       FROM pg_settings WHERE name = 'maintenance_work_mem' AND setting::bigint < 262144";

/// The same for what is made at a start, which does not wait long for those who write.
pub(super) const ALONE: &str = "SET LOCAL max_parallel_maintenance_workers = 0;
     SET LOCAL lock_timeout = '5s'";

pub(super) const SAVEPOINT: &str = "SAVEPOINT near";
pub(super) const ROLL_BACK: &str = "ROLLBACK TO SAVEPOINT near";

/// The indexes that are of no use: of vectors with another length, and what a making that broke off left.
pub(super) const USELESS: &str = r"SELECT quote_ident(class.relname) FROM pg_index AS index
       JOIN pg_class AS class ON class.oid = index.indexrelid
      WHERE index.indrelid = 'library_vectors'::regclass AND class.relname ~ '^library_near_[0-9]+$'
        AND (class.relname <> 'library_near_' || $1::bigint OR NOT index.indisvalid)";

/// Removes one of them.
pub(super) fn remove(quoted: &str) -> String {
    format!("DROP INDEX CONCURRENTLY IF EXISTS {quoted}")
}

/// A byte is a number from -127 to 127.
pub(super) fn function(index: &Index) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION library_near (numbers bytea) RETURNS {}.halfvec
         LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS $$ BEGIN
            RETURN ARRAY(SELECT ((get_byte(numbers, place) + 128) & 255) - 128
                           FROM generate_series(0, length(numbers) - 1) AS place);
         END $$",
        index.schema
    )
}

/// The index; `how` is nothing, or `CONCURRENTLY`.
pub(super) fn index(index: &Index, how: &str) -> String {
    let Index { dimensions, schema } = index;
    format!(
        "CREATE INDEX {how} IF NOT EXISTS library_near_{dimensions} ON library_vectors
         USING hnsw ((library_near(numbers)::{schema}.halfvec({dimensions})) {schema}.halfvec_cosine_ops)
         WHERE length(numbers) = {dimensions}"
    )
}

/// How the index is asked, for the rest of the transaction: how many it looks at, at once and at most.
pub(super) fn look(at_once: usize, at_most: i64) -> String {
    format!(
        "{SAVEPOINT};
         SET LOCAL hnsw.ef_search = {at_once};
         SET LOCAL hnsw.iterative_scan = relaxed_order;
         SET LOCAL hnsw.max_scan_tuples = {at_most};
         SET LOCAL enable_seqscan = off;
         SET LOCAL enable_sort = off"
    )
}

/// The vectors of some collections that are nearest to `$1`, about in this order, and the place of each among those of all.
pub(super) fn nearest(index: &Index) -> String {
    let Index { dimensions, schema } = index;
    format!(
        "SELECT chunk, numbers, place FROM (
            SELECT chunk, numbers, row_number() OVER () AS place FROM (
                SELECT chunk, numbers FROM library_vectors WHERE length(numbers) = {dimensions}
                 ORDER BY library_near(numbers)::{schema}.halfvec({dimensions})
                          OPERATOR({schema}.<=>) $1::text::{schema}.halfvec({dimensions})) AS near) AS near
          WHERE chunk >> 32 = ANY ($2) LIMIT $3"
    )
}
