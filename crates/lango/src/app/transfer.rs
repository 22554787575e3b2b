//! Copies everything from one database to another, and resumes an interrupted move.

use crate::app::failure::Failure;
use crate::app::notice::notice;
use crate::app::roster::Roster;
use lango_config::{ProcessEnv, StoreLocation};
use lango_core::AgentName;
use lango_store::tables::OpenMode;
use lango_store::transfer::{TransferError, TransferProgress, TransferReport, transfer_all};
use lango_store::{PostgresOptions, Store};
use std::sync::Arc;

/// A finished move.
pub struct MovedDatabase {
    pub report: TransferReport,
    /// The location of the new database, without secrets.
    pub place: String,
}

/// Copies the database `from` to `to`, both as in `session.store`, and compares every row.
pub async fn transfer(
    config: Vec<String>,
    from: &str,
    to: &str,
    progress: &mut (dyn FnMut(TransferProgress) + Send),
) -> Result<MovedDatabase, Failure> {
    let process_env = ProcessEnv::from_process(config)?;
    let loaded = lango_config::load(&process_env)?;
    let roster = Roster::read(&loaded, &process_env.cwd)?;
    let root = roster.root();
    let (source, target) = (
        parse_location(from, &process_env)?,
        parse_location(to, &process_env)?,
    );
    if source == target {
        let message = "both databases are the same";
        return Err(Failure::usage(message).next("name another database as the target"));
    }
    check_exists(&source)?;
    let from = open(&source, &root, OpenMode::Normal)?;
    let to = open(&target, &root, OpenMode::TransferTarget)?;
    from.open_now().await?;
    to.open_now().await?;
    let from_place = from.place();
    if to
        .checkpoint()
        .await?
        .is_some_and(|checkpoint| checkpoint.source == from_place)
    {
        notice(&format!("resuming the move from {from_place}"));
    }
    let moved = transfer_all(&from, &to, progress).await;
    let report = moved.map_err(|error| transfer_failure(error, &to.place()))?;
    let place = to.place();
    Ok(MovedDatabase { report, place })
}

/// Parses a database location given on the command line.
fn parse_location(text: &str, process_env: &ProcessEnv) -> Result<StoreLocation, Failure> {
    lango_config::store_location(text, process_env).map_err(|expected| {
        // The text is not repeated, because it may contain a password.
        let message = format!("a database must be {expected}");
        Failure::usage(message).next("lango store move sqlite:OLD sqlite:NEW")
    })
}

fn open(
    location: &StoreLocation,
    root: &AgentName,
    open_mode: OpenMode,
) -> Result<Arc<Store>, Failure> {
    let root = root.clone();
    Ok(match location {
        StoreLocation::Sqlite(path) => Arc::new(Store::sqlite_with(path, root, open_mode)?),
        StoreLocation::Postgres(address) => {
            let options = PostgresOptions {
                open_mode,
                ..PostgresOptions::default()
            };
            Arc::new(Store::postgres_with(address, root, options)?)
        }
    })
}

/// Fails if the source does not exist; opening it would create an empty database.
fn check_exists(source: &StoreLocation) -> Result<(), Failure> {
    match source {
        StoreLocation::Sqlite(path) if matches!(path.try_exists(), Ok(false)) => {
            let message = format!("there is no database `{}`", path.display());
            Err(Failure::usage(message)
                .next("run `lango config show --origin` to see where session.store is set"))
        }
        _ => Ok(()),
    }
}

fn transfer_failure(error: TransferError, target: &str) -> Failure {
    let next = match &error {
        TransferError::InUse { .. } => "stop the process that uses it, then move again".to_owned(),
        TransferError::HasServer { .. } => "stop `lango serve` there, then move again".to_owned(),
        TransferError::NotEmpty { .. } => {
            "name a database that is empty or does not exist yet".to_owned()
        }
        TransferError::OtherTransfer { source_place, .. } => format!(
            "continue that move: lango store move '{source_place}' '{target}'; or name a database that is empty or does not exist yet"
        ),
        TransferError::Changed { place, .. } if place == target => format!(
            "stop the process that writes to it; the source is unchanged: move again to an empty database, or remove {target} first"
        ),
        TransferError::Changed { .. } => format!(
            "stop the process that writes to it, remove {target} or name another empty database, and start the move again"
        ),
        TransferError::Store(_) => String::new(),
    };
    match error {
        TransferError::Store(error) => error.into(),
        error => Failure::usage(error.to_string()).next(next),
    }
}
