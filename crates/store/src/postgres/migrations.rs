//! From any older schema to the newest, one numbered file at a time.
//!
//! The table `lango_migrations` has a row for each file that was applied. All that are missing are applied in one
//! transaction behind a lock, so that of many copies that start at once one does it, and one that ends in the middle has
//! migrated or has not.

use super::failure::Failure;
use super::statements::start::{
    APPLIED, CREATE_MIGRATIONS, CREATE_SCHEMA, HAS_MIGRATIONS, LOCK_MIGRATIONS, NOTE_MIGRATION,
    WHERE_WE_ARE,
};
use deadpool_postgres::Object;
use lango_core::StoreError;
use tokio_postgres::GenericClient;

/// The files in their order. They are never edited once released, only added to.
const MIGRATIONS: &[(&str, &str)] = &[
    (
        "0001_sessions",
        include_str!("../../migrations/postgres/0001_sessions.sql"),
    ),
    (
        "0002_knowledge",
        include_str!("../../migrations/postgres/0002_knowledge.sql"),
    ),
    (
        "0003_sessions_that_go",
        include_str!("../../migrations/postgres/0003_sessions_that_go.sql"),
    ),
    (
        "0004_attachments",
        include_str!("../../migrations/postgres/0004_attachments.sql"),
    ),
    (
        "0005_web_cache",
        include_str!("../../migrations/postgres/0005_web_cache.sql"),
    ),
    (
        "0006_vaults",
        include_str!("../../migrations/postgres/0006_vaults.sql"),
    ),
    (
        "0007_payments",
        include_str!("../../migrations/postgres/0007_payments.sql"),
    ),
];

/// The oldest PostgreSQL that has all that is used.
const OLDEST: i32 = 13;

/// Applies what is missing, and refuses a schema that a newer lango made.
pub(super) async fn migrate(client: &mut Object, place: &str) -> Result<(), Failure> {
    let here = client.query_one(WHERE_WE_ARE, &[]).await?;
    let (encoding, version): (&str, i32) = (here.try_get(0)?, here.try_get(2)?);
    let unfit = if encoding != "UTF8" {
        Some(format!(
            "it is encoded in {encoding}; make one that is in UTF8"
        ))
    } else if version < OLDEST {
        Some(format!(
            "it is PostgreSQL {version}; lango needs {OLDEST} or newer"
        ))
    } else {
        None
    };
    if let Some(detail) = unfit {
        return Err(Failure::Said(StoreError::Unreadable {
            place: place.to_owned(),
            detail,
        }));
    }
    if schema(&***client, place).await? == MIGRATIONS.len() {
        return Ok(());
    }
    let transaction = client.transaction().await?;
    transaction.batch_execute(LOCK_MIGRATIONS).await?;
    if here.try_get::<_, Option<&str>>(1)?.is_none() {
        // The schema that the address names first, if nobody has made it.
        transaction.batch_execute(CREATE_SCHEMA).await?;
    }
    transaction.batch_execute(CREATE_MIGRATIONS).await?;
    // Another copy may have been faster while this one waited for its turn.
    let done = schema(&*transaction, place).await?;
    for (number, (name, migration)) in MIGRATIONS.iter().enumerate().skip(done) {
        let applied = transaction.batch_execute(migration).await;
        applied.map_err(|error| foreign(error.into(), place))?;
        let version = i64::try_from(number + 1).unwrap_or(i64::MAX);
        transaction
            .execute(NOTE_MIGRATION, &[&version, name])
            .await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// How many files were applied.
async fn schema(client: &impl GenericClient, place: &str) -> Result<usize, Failure> {
    let is_there: bool = client.query_one(HAS_MIGRATIONS, &[]).await?.try_get(0)?;
    if !is_there {
        return Ok(0);
    }
    let applied: i64 = client.query_one(APPLIED, &[]).await?.try_get(0)?;
    let applied = usize::try_from(applied).unwrap_or(usize::MAX);
    if applied > MIGRATIONS.len() {
        return Err(Failure::Said(StoreError::TooNew {
            place: place.to_owned(),
            found: u32::try_from(applied).unwrap_or(u32::MAX),
            known: u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX),
        }));
    }
    Ok(applied)
}

/// Tables under our names that we did not make are somebody else's.
fn foreign(failure: Failure, place: &str) -> Failure {
    if !failure.is_taken() {
        return failure;
    }
    Failure::Said(StoreError::Foreign {
        place: place.to_owned(),
        detail:
            "it has tables of another program under the same names; give lango a schema of its own \
                 with `?options=-csearch_path%3Dlango`"
                .to_owned(),
    })
}
