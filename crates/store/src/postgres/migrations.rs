//! Migrates any older PostgreSQL schema to the newest, one numbered file at a time.
//!
//! The table `lango_migrations` has a row for each applied file. All missing files are applied in one transaction behind a lock.
//! So only one of several replicas that start together migrates, and a crash leaves the schema unchanged.

use super::error::BackendError;
use super::statements::LOCK_MIGRATIONS;
use crate::backend::Result;
use deadpool_postgres::Object;
use lango_core::StoreError;
use tokio_postgres::GenericClient;
use tokio_postgres::error::SqlState;

macro_rules! migration {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../migrations/postgres/", $name, ".sql")),
        )
    };
}

/// The migrations, in the order in which they run. Never change one that has been released; add a new one instead.
const MIGRATIONS: &[(&str, &str)] = &[
    migration!("0001_sessions"),
    migration!("0002_knowledge"),
    migration!("0003_sessions_that_go"),
    migration!("0004_attachments"),
    migration!("0005_web_cache"),
    migration!("0006_vaults"),
    migration!("0007_payments"),
    migration!("0008_lease_length"),
    migration!("0009_access_tokens"),
    migration!("0010_undone_turns"),
];

/// The oldest supported version of PostgreSQL.
const OLDEST: i32 = 13;

/// Returns the server's encoding, the current schema (NULL if it does not exist), and the server's major version.
const SERVER: &str = "SELECT current_setting('server_encoding'), current_schema()::text,
            current_setting('server_version_num')::int / 10000";

/// Creates the first schema of the search path.
const CREATE_SCHEMA: &str = "DO $$ BEGIN
     EXECUTE format('CREATE SCHEMA IF NOT EXISTS %I',
        trim(both ' \"' from split_part(current_setting('search_path'), ',', 1)));
     END $$";

const CREATE_TABLE: &str = "CREATE TABLE IF NOT EXISTS lango_migrations (
     version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, applied TIMESTAMPTZ NOT NULL DEFAULT now())";

/// Applies the missing migrations. Fails if the server is too old or its encoding is not UTF-8.
pub(super) async fn migrate(client: &mut Object, place: &str) -> Result<()> {
    let server = client.query_one(SERVER, &[]).await?;
    let (encoding, version): (&str, i32) = (server.try_get(0)?, server.try_get(2)?);
    let unfit = if encoding != "UTF8" {
        let wanted = "create a database with the encoding UTF8";
        Some(format!("its encoding is {encoding}; {wanted}"))
    } else if version < OLDEST {
        let wanted = format!("lango needs {OLDEST} or newer");
        Some(format!("it is PostgreSQL {version}; {wanted}"))
    } else {
        None
    };
    if let Some(detail) = unfit {
        let place = place.to_owned();
        return Err(StoreError::Unreadable { place, detail }.into());
    }
    if schema(&***client, place).await? == MIGRATIONS.len() {
        return Ok(());
    }
    let transaction = client.transaction().await?;
    transaction.batch_execute(LOCK_MIGRATIONS).await?;
    if server.try_get::<_, Option<&str>>(1)?.is_none() {
        transaction.batch_execute(CREATE_SCHEMA).await?;
    }
    transaction.batch_execute(CREATE_TABLE).await?;
    // Another replica may have applied them while this one waited for the lock.
    let done = schema(&*transaction, place).await?;
    for (number, (name, migration)) in MIGRATIONS.iter().enumerate().skip(done) {
        let applied = transaction.batch_execute(migration).await;
        applied.map_err(|error| match error.code() {
            Some(&SqlState::DUPLICATE_TABLE | &SqlState::DUPLICATE_OBJECT) => foreign(place),
            _ => error.into(),
        })?;
        let version = i64::try_from(number + 1).unwrap_or(i64::MAX);
        let add = "INSERT INTO lango_migrations (version, name) VALUES ($1, $2)";
        transaction.execute(add, &[&version, name]).await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// Returns the number of applied migrations. Fails if a newer version of lango has migrated the schema.
pub(super) async fn schema(client: &impl GenericClient, place: &str) -> Result<usize> {
    let exists = "SELECT to_regclass('lango_migrations') IS NOT NULL";
    if !client.query_one(exists, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(0);
    }
    let applied = "SELECT coalesce(max(version), 0) FROM lango_migrations";
    let applied: i64 = client.query_one(applied, &[]).await?.try_get(0)?;
    let applied = usize::try_from(applied).unwrap_or(usize::MAX);
    if applied > MIGRATIONS.len() {
        return Err(BackendError::Store(StoreError::TooNew {
            place: place.to_owned(),
            found: u32::try_from(applied).unwrap_or(u32::MAX),
            known: u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX),
        }));
    }
    Ok(applied)
}

fn foreign(place: &str) -> BackendError {
    BackendError::Store(StoreError::Foreign {
        place: place.to_owned(),
        detail:
            "another program has tables with the same names there; give lango its own schema by adding \
                 `?options=-csearch_path%3Dlango` to the address"
                .to_owned(),
    })
}
