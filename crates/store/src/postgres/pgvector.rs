//! Finds the nearest vectors with an index of the server, if the database has version 0.8 or newer of the extension pgvector
//! (`vector`).
//!
//! The vectors are stored as bytes, as in every database. The index is on a function of the stored bytes, so the server updates it
//! with every write and drops it with the extension. The index uses half-precision numbers, which represent a byte exactly, take
//! half the space and allow 4,000 dimensions; longer vectors are scanned. The index covers vectors of one length only.
//!
//! Inserting a vector takes many times as long with the index as without it, and building the index later takes a tenth of that
//! time. So lango creates it only when there are many vectors
//! ([`PostgresOptions::min_indexed_vectors`](super::PostgresOptions)): at the next start if that is quick, otherwise when the user
//! runs `lango store compact`, concurrently with other work. Searches use the index once it exists. They scan if it does not exist,
//! if the extension is too old, or if they search only a small part of the vectors.

use super::database::Database;
use super::error::BackendError;
use super::statements::LOCK_MIGRATIONS;
use crate::backend::{Result, Tx};
use crate::library::VectorSearch;
use crate::library::nearest::{NearestQuery, nearest_first};
use crate::library::vectors::cosine;
use deadpool_postgres::Object;
use tokio_postgres::{GenericClient, Row};

/// The oldest version with iterative scans, which continue if a filter leaves too few results.
const MIN_VERSION: [u32; 2] = [0, 8];

/// Maximum length of indexed vectors.
const MAX_DIMENSIONS: i64 = 4000;

/// Maximum number of vectors times dimensions to index when lango starts. Indexing 50,000 vectors of 256 dimensions
/// takes about ten seconds.
const MAX_INDEXED_AT_START: i64 = 50_000 * 256;

/// Number of search candidates (`hnsw.ef_search`) per requested hit, and its limits.
const CANDIDATES_PER_HIT: usize = 2;
const MIN_CANDIDATES: usize = 100;
const MAX_CANDIDATES: usize = 1000;

/// Maximum number of vectors that a search visits.
const MAX_VISITED: i64 = 20_000;
/// Maximum rank of the last hit among the visited vectors. A search that reaches [`MAX_VISITED`] returns whatever it has visited,
/// which need not be the nearest vectors, so a result with a higher rank is discarded.
const MAX_RANK: i64 = 4000;

/// The state of the extension and its index in the database.
#[derive(Debug)]
struct State {
    /// The version of the installed extension, and its quoted schema.
    installed: Option<(String, String)>,
    /// The length of the vectors, if an embedding model is set.
    dimensions: Option<i64>,
    vectors: i64,
    /// Whether the index is valid, or `None` if it does not exist.
    index: Option<bool>,
    /// Whether this user may create indexes on the table.
    is_owner: bool,
    /// The version that could be installed, if none is.
    available: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Index {
    dimensions: i64,
    /// The quoted schema of the extension.
    schema: String,
}

impl State {
    async fn of(client: &impl GenericClient) -> Result<Self> {
        Self::read(&client.query_one(STATE, &[]).await?)
    }

    fn read(row: &Row) -> Result<Self> {
        let (version, schema) = (row.try_get::<_, Option<_>>(0)?, row.try_get(1)?);
        Ok(Self {
            installed: version.zip(schema),
            dimensions: row.try_get(2)?,
            vectors: row.try_get(3)?,
            index: row.try_get(4)?,
            is_owner: row.try_get(5)?,
            available: row.try_get(6)?,
        })
    }

    /// Returns the index that can exist in this database, if any.
    fn possible(&self) -> Option<Index> {
        let (version, schema) = self.installed.as_ref()?;
        let dimensions = self.dimensions?;
        let fits = is_new_enough(version) && (1..=MAX_DIMENSIONS).contains(&dimensions);
        let schema = schema.clone();
        fits.then_some(Index { dimensions, schema })
    }

    fn usable(&self) -> Option<Index> {
        self.possible().filter(|_| self.index == Some(true))
    }

    fn is_useful(&self, min_indexed: u64) -> bool {
        u64::try_from(self.vectors).is_ok_and(|vectors| vectors > min_indexed)
    }

    /// Returns the index if it is missing, useful and quick to create. An invalid index counts as existing: it is being created, or
    /// was left by a failed attempt.
    fn quickly_created(&self, min_indexed: u64) -> Option<Index> {
        let is_missing = self.index.is_none() && self.is_owner && self.is_useful(min_indexed);
        let is_quick =
            |index: &Index| self.vectors.saturating_mul(index.dimensions) <= MAX_INDEXED_AT_START;
        self.possible()
            .filter(|index| is_missing && is_quick(index))
    }

    fn describe(&self, min_indexed: u64) -> VectorSearch {
        let [major, minor] = MIN_VERSION;
        let why = match (&self.installed, self.dimensions) {
            (None, _) if self.available.is_some() => {
                "pgvector is not installed in this database".to_owned()
            }
            (None, _) => "pgvector is not installed on this server".to_owned(),
            (Some((version, _)), _) if !is_new_enough(version) => {
                format!("pgvector {version} is older than {major}.{minor}")
            }
            (_, Some(dimensions)) if dimensions > MAX_DIMENSIONS => format!(
                "pgvector indexes at most {MAX_DIMENSIONS} dimensions, and the vectors have {dimensions}"
            ),
            (Some((version, _)), _) if self.usable().is_some() => {
                let by = format!("pgvector {version}");
                return VectorSearch::Indexed { by };
            }
            (Some((version, _)), _) if !self.is_useful(min_indexed) => {
                format!("pgvector {version} is used from {min_indexed} vectors on")
            }
            _ if !self.is_owner => {
                "another user owns the table of the vectors, so lango cannot create pgvector's index".to_owned()
            }
            _ => "pgvector's index does not exist yet; `lango store compact` creates it".to_owned(),
        };
        VectorSearch::Scan { reason: Some(why) }
    }
}

/// Returns whether a version such as `0.8.5` is supported.
fn is_new_enough(version: &str) -> bool {
    let parts = version.split(['.', '-']);
    let numbers = parts.map_while(|part| part.parse::<u32>().ok());
    numbers.ge(MIN_VERSION)
}

/// Describes how the nearest vectors are found, for users.
pub(crate) async fn describe(tx: &mut Tx<'_>, min_indexed: u64) -> Result<VectorSearch> {
    let transaction = tx.as_postgres();
    let transaction = transaction.ok_or_else(|| BackendError::other("this is not PostgreSQL"))?;
    Ok(State::of(&**transaction).await?.describe(min_indexed))
}

/// Prepares the index when lango starts, after migrations: installs the extension if possible, and creates the index if
/// that is useful and quick. If there is nothing to do, this takes one statement. If installing or creating fails,
/// searches scan.
pub(super) async fn prepare(client: &mut Object, min_indexed: u64) -> Result<()> {
    match install_and_create(client, min_indexed).await {
        Err(failure) if failure.may_be_committed() => Err(failure),
        _ => Ok(()),
    }
}

async fn install_and_create(client: &mut Object, min_indexed: u64) -> Result<()> {
    let state = State::of(&***client).await?;
    let can_be_installed = state.available.as_deref().is_some_and(is_new_enough);
    if !can_be_installed && state.quickly_created(min_indexed).is_none() {
        return Ok(());
    }
    let transaction = client.transaction().await?;
    transaction.batch_execute(LOCK_MIGRATIONS).await?;
    transaction.batch_execute(INSTALL).await?;
    // Another replica may have created it while this one waited for the lock.
    if let Some(index) = State::of(&*transaction).await?.quickly_created(min_indexed) {
        transaction.batch_execute(&index.create_at_start()).await?;
    }
    Ok(transaction.commit().await?)
}

/// Creates the index if it is useful, even if that takes long, concurrently with other work. Also drops useless indexes. Returns
/// how the nearest vectors are found afterwards.
pub(super) async fn create_index(database: &Database) -> Result<VectorSearch> {
    let min_indexed = database.options.min_indexed_vectors;
    // The connection is taken out of the pool, because its settings and its lock must end with it.
    let client = Object::take(database.pool.get().await?);
    let state = State::of(&*client).await?;
    let Some(index) = state.possible() else {
        return Ok(state.describe(min_indexed));
    };
    if state.is_owner {
        client.batch_execute(EXTEND_LIMITS).await?;
        let locked = client.query_one(TRY_TO_LOCK, &[]).await?;
        if !locked.try_get(0)? {
            let detail =
                "another `lango store compact` is creating the index; retry when it has finished";
            return Err(BackendError::other(detail));
        }
        for useless in client.query(USELESS, &[&index.dimensions]).await? {
            let name: &str = useless.try_get(0)?;
            let drop = format!("DROP INDEX CONCURRENTLY IF EXISTS {name}");
            client.batch_execute(&drop).await?;
        }
        if state.usable().is_none() && state.is_useful(min_indexed) {
            client.batch_execute(&index.function()).await?;
            client.batch_execute(&index.create("CONCURRENTLY")).await?;
        }
    }
    Ok(State::of(&*client).await?.describe(min_indexed))
}

/// Finds the nearest vectors with the index. `vectors` is the number of vectors in the searched collections. Returns `None` if
/// there is no suitable index or its result is not reliable.
pub(crate) async fn nearest(
    tx: &mut Tx<'_>,
    query: &NearestQuery,
    vectors: i64,
) -> Result<Option<Vec<(i64, f64)>>> {
    let (Some(transaction), Some(vector)) = (tx.as_postgres(), vector_text(&query.vector)) else {
        return Ok(None);
    };
    let state = transaction.prepare_cached(STATE).await?;
    let state = State::read(&transaction.query_one(&state, &[]).await?)?;
    let fits = |index: &Index| usize::try_from(index.dimensions) == Ok(query.vector.len());
    let Some(index) = state.usable().filter(fits) else {
        return Ok(None);
    };
    let candidates =
        (query.limit.saturating_mul(CANDIDATES_PER_HIT)).clamp(MIN_CANDIDATES, MAX_CANDIDATES);
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let rows = async {
        transaction.batch_execute(&settings(candidates)).await?;
        let statement = transaction.prepare_cached(&index.nearest()).await?;
        let values: super::database::Values<'_> = &[&vector, &query.collections, &limit];
        Ok(transaction.query(&statement, values).await?)
    };
    let rows: Vec<Row> = match rows.await {
        // The extension may have been removed.
        Err(failure @ BackendError::Postgres(_)) if !failure.is_transient() => Vec::new(),
        rows => rows?,
    };
    let expected = query.limit.min(usize::try_from(vectors).unwrap_or(0));
    let last = rows
        .last()
        .map(|row| row.try_get::<_, i64>(2))
        .transpose()?;
    if rows.len() < expected || last.is_some_and(|rank| rank > MAX_RANK) {
        transaction.batch_execute(ROLL_BACK).await?;
        return Ok(None);
    }
    let with_cosine = |row: &Row| Ok((row.try_get(0)?, cosine(&query.vector, row.try_get(1)?)));
    let cosines: Result<_> = rows.iter().map(with_cosine).collect();
    Ok(Some(nearest_first(cosines?, query.limit)))
}

/// Formats a vector for the extension, scaled for half precision. Returns `None` if it is zero or not finite.
fn vector_text(vector: &[f32]) -> Option<String> {
    let greatest = vector
        .iter()
        .fold(0.0_f32, |most, number| most.max(number.abs()));
    if greatest <= 0.0 || !vector.iter().all(|number| number.is_finite()) {
        return None;
    }
    let scaled = vector.iter().map(|number| number / greatest * 1000.0);
    serde_json::to_string(&scaled.collect::<Vec<_>>()).ok()
}

/// Selects the version and schema of the extension, the length and number of the vectors, whether the index is valid,
/// whether this user may create it, and, if the extension is not installed, the version that could be installed.
const STATE: &str = r#"SELECT extension.extversion, quote_ident(namespace.nspname), maker.dimensions,
            (SELECT coalesce(sum(vectors), 0)::bigint FROM library_collections),
            index.indisvalid, pg_has_role(vectors.relowner, 'USAGE'),
            CASE WHEN extension.oid IS NULL
                 THEN (SELECT default_version FROM pg_available_extensions WHERE name = 'vector') END
       FROM (SELECT (SELECT (maker::jsonb ->> 'dimensions')::bigint FROM library_maker WHERE "only" = 1))
            AS maker (dimensions)
       JOIN pg_class AS vectors ON vectors.oid = 'library_vectors'::regclass
       LEFT JOIN pg_extension AS extension ON extension.extname = 'vector'
       LEFT JOIN pg_namespace AS namespace ON namespace.oid = extension.extnamespace
       LEFT JOIN pg_index AS index ON index.indrelid = vectors.oid
        AND index.indexrelid = to_regclass('library_near_' || maker.dimensions)"#;

/// Installs the extension. Does nothing if that fails.
const INSTALL: &str = "DO $$ BEGIN
     EXECUTE format('CREATE EXTENSION IF NOT EXISTS vector SCHEMA %I',
        CASE WHEN to_regnamespace('public') IS NULL THEN current_schema() ELSE 'public' END);
     EXCEPTION WHEN OTHERS THEN NULL;
     END $$";

/// Takes the lock that lets only one process at a time create the index. The lock ends with the connection.
const TRY_TO_LOCK: &str = "SELECT pg_try_advisory_lock(hashtextextended('lango near ' || current_setting('search_path'), 0))";

/// Sets the time and memory for creating the index. With less memory it is built on disk, more slowly. Parallel workers are
/// switched off, because many servers in containers have too little shared memory for them.
const EXTEND_LIMITS: &str = "SET statement_timeout = '12h';
     SET max_parallel_maintenance_workers = 0;
     SELECT set_config('maintenance_work_mem', '256MB', false)
       FROM pg_settings WHERE name = 'maintenance_work_mem' AND setting::bigint < 262144";

const ROLL_BACK: &str = "ROLLBACK TO SAVEPOINT near";

/// Selects indexes for vectors of another length, and indexes left by failed attempts.
const USELESS: &str = r"SELECT quote_ident(class.relname) FROM pg_index AS index
       JOIN pg_class AS class ON class.oid = index.indexrelid
      WHERE index.indrelid = 'library_vectors'::regclass AND class.relname ~ '^library_near_[0-9]+$'
        AND (class.relname <> 'library_near_' || $1::bigint OR NOT index.indisvalid)";

/// Returns statements that configure searches of the index for the rest of the transaction.
fn settings(candidates: usize) -> String {
    format!(
        "SAVEPOINT near;
         SET LOCAL hnsw.ef_search = {candidates};
         SET LOCAL hnsw.iterative_scan = relaxed_order;
         SET LOCAL hnsw.max_scan_tuples = {MAX_VISITED};
         SET LOCAL enable_seqscan = off;
         SET LOCAL enable_sort = off"
    )
}

/// Statements that depend on the schema of the extension and on the length of the vectors.
impl Index {
    /// Returns the statement that creates the function from bytes to a vector of numbers from -127 to 127.
    fn function(&self) -> String {
        format!(
            "CREATE OR REPLACE FUNCTION library_near (numbers bytea) RETURNS {}.halfvec
             LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS $$ BEGIN
                RETURN ARRAY(SELECT ((get_byte(numbers, place) + 128) & 255) - 128
                               FROM generate_series(0, length(numbers) - 1) AS place);
             END $$",
            self.schema
        )
    }

    fn create(&self, option: &str) -> String {
        let Self { dimensions, schema } = self;
        format!(
            "CREATE INDEX {option} IF NOT EXISTS library_near_{dimensions} ON library_vectors
             USING hnsw ((library_near(numbers)::{schema}.halfvec({dimensions})) {schema}.halfvec_cosine_ops)
             WHERE length(numbers) = {dimensions}"
        )
    }

    /// Returns statements that create the function and the index without waiting long for writers. They do nothing on failure.
    fn create_at_start(&self) -> String {
        let (function, create) = (self.function(), self.create(""));
        format!(
            "SET LOCAL max_parallel_maintenance_workers = 0;
             SET LOCAL lock_timeout = '5s';
             DO $do$ BEGIN {function}; {create};
             EXCEPTION WHEN OTHERS THEN NULL;
             END $do$"
        )
    }

    /// Returns the statement that selects the vectors of collections `$2` nearest to `$1`, approximately in that order, with the
    /// rank of each among the visited vectors.
    fn nearest(&self) -> String {
        let Self { dimensions, schema } = self;
        format!(
            "SELECT chunk, numbers, place FROM (
                SELECT chunk, numbers, row_number() OVER () AS place FROM (
                    SELECT chunk, numbers FROM library_vectors WHERE length(numbers) = {dimensions}
                     ORDER BY library_near(numbers)::{schema}.halfvec({dimensions})
                              OPERATOR({schema}.<=>) $1::text::{schema}.halfvec({dimensions})) AS near) AS near
              WHERE chunk >> 32 = ANY ($2) LIMIT $3"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use crate::backend::plans::plan_of;
    use lango_testkit::postgres;
    use tokio_postgres::NoTls;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for version in ["0.8.0", "0.8.5", "0.10.0", "1.0", "0.8-dev"] {
            assert!(is_new_enough(version), "{version}");
        }
        for version in ["0.7.4", "0.5.1", "", "eight", "0"] {
            assert!(!is_new_enough(version), "{version}");
        }
    }

    #[test]
    fn a_zero_or_infinite_vector_is_not_searched_for() {
        assert_eq!(vector_text(&[]), None);
        assert_eq!(
            vector_text(&[0.5, -0.25]).as_deref(),
            Some("[1000.0,-500.0]")
        );
        for vector in [[0.0, 0.0], [1.0, f32::NAN], [f32::INFINITY, 1.0]] {
            assert_eq!(vector_text(&vector), None);
        }
    }

    /// Inserts two collections, and vectors of another length.
    const FILL: &str = r#"
INSERT INTO library_maker VALUES (1, '{"provider": "p", "model": "m", "dimensions": 64, "version": 1}');
INSERT INTO library_collections ("user", name, vectors) VALUES ('ada', 'c', 4000), ('bob', 'c', 90000);
INSERT INTO library_vectors (chunk, numbers)
SELECT ((1 + n % 2)::bigint << 32) + n, decode(md5(n::text) || md5('a' || n) || md5('b' || n) || md5('c' || n), 'hex')
  FROM generate_series(1, 8000) AS n;
INSERT INTO library_vectors (chunk, numbers) SELECT (3::bigint << 32) + n, '\x0102' FROM generate_series(1, 100) AS n"#;

    #[tokio::test]
    async fn a_search_uses_the_index_with_generic_and_constant_values() {
        let address = postgres::fresh_schema_with_pgvector();
        let store = Store::at(&address, "root".into()).unwrap();
        store.open_now().await.unwrap();
        let (client, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(FILL).await.unwrap();
        let state = State::of(&client).await.unwrap();
        let index = state.possible().expect("the extension is installed");
        assert_eq!((index.dimensions, index.schema.as_str()), (64, "public"));
        assert_eq!(state.usable(), None);

        store.index_vectors().await.unwrap();
        client
            .batch_execute("ANALYZE library_vectors")
            .await
            .unwrap();
        let state = State::of(&client).await.unwrap();
        assert_eq!(state.usable().as_ref(), Some(&index));
        let set = format!(
            "BEGIN; {}; SET LOCAL plan_cache_mode = force_generic_plan",
            settings(200)
        );
        client.batch_execute(&set).await.unwrap();
        let ones = vec!["1"; 64].join(",");
        let constant = index.nearest();
        let constant = constant.replace("$1", &format!("'[{ones}]'"));
        let constant = constant.replace("$2", "'{1}'").replace("$3", "100");
        for statement in [index.nearest(), constant] {
            let plan = plan_of(&client, &statement).await;
            let by_index = plan.contains("Index Scan using library_near_64 on library_vectors");
            let scans = plan.contains("Sort") || plan.contains("Seq Scan");
            assert!(by_index && !scans, "{plan}");
        }

        // The index has no vectors of another length, and a search for those does not use it.
        let count =
            "SELECT reltuples::bigint FROM pg_class WHERE oid = 'library_near_64'::regclass";
        let indexed: i64 = client.query_one(count, &[]).await.unwrap().get(0);
        assert_eq!(indexed, 8000);
        let other = Index {
            dimensions: 2,
            ..index
        };
        let plan = plan_of(&client, &other.nearest()).await;
        let by_index = plan.contains("library_near_64");
        assert!(plan.contains("Sort") && !by_index, "{plan}");
    }
}
