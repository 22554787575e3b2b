//! `lango store`: backs up, restores, compacts and moves the whole database.

mod restore;
mod transfer;

use crate::args::StoreCommand;
use crate::exit::Exit;
use crate::screen::{self, Ticker};
use lango::app::App;
use lango::app::Failure;
use lango_config::StoreLocation;
use lango_store::archive::WipeOutcome;
use lango_store::{Store, VectorSearch};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Runs the command.
pub(super) async fn store(config: Vec<String>, command: StoreCommand) -> Result<Exit, Failure> {
    match command {
        StoreCommand::Backup { to } => back_up(&App::load(config).await?, to).await?,
        StoreCommand::Restore { from } => {
            restore::restore(&App::load(config).await?, from).await?;
        }
        StoreCommand::Compact => compact(&App::load(config).await?).await?,
        StoreCommand::Move { from, to } => return transfer::transfer(config, &from, &to).await,
    }
    Ok(Exit::Ok)
}

/// Returns the store in the file of `session.store`, which must exist.
fn file(app: &App) -> Result<Store, Failure> {
    app.existing_store()?;
    match &app.loaded.settings.session.store {
        StoreLocation::Sqlite(path) => Ok(Store::sqlite(path, app.tree.root.name.clone())?),
        place @ StoreLocation::Postgres(_) => {
            let message = format!(
                "`{place}` is on a database server; use the server's own tools to back it up"
            );
            Err(Failure::usage(message).next(format!(
                "pg_dump --format=custom --file=lango.dump '{place}'"
            )))
        }
    }
}

async fn compact(app: &App) -> Result<(), Failure> {
    let store = app.existing_store()?;
    screen::print(match store.wipe_deleted().await? {
        WipeOutcome::Clean => "the database file was rewritten; it contains no deleted data",
        WipeOutcome::InUse => {
            "another process is using the database, so bytes of deleted data may be left; run this again when it is not in use"
        }
        WipeOutcome::LeftToServer => {
            "the database server was asked to reclaim the space of deleted data"
        }
    })?;
    // The message above comes first, because indexing may take long.
    if let VectorSearch::Indexed { by } = store.index_vectors().await? {
        screen::print(&format!("all vectors are indexed by {by}"))?;
    }
    Ok(())
}

async fn back_up(app: &App, to: PathBuf) -> Result<(), Failure> {
    let store = file(app)?;
    let taken = to.try_exists().unwrap_or(false);
    if taken {
        let message = format!("`{}` already exists", to.display());
        return Err(Failure::usage(message).next("choose a file name that does not exist yet"));
    }
    let ticker = Mutex::new(Ticker::new());
    let seen = move |left: u64, total: u64| {
        let mut ticker = ticker.lock().unwrap_or_else(PoisonError::into_inner);
        match left {
            0 => ticker.clear(),
            left => {
                ticker.show(|| format!("{} pages", screen::progress_share(total - left, total)))
            }
        }
    };
    store.back_up(to.clone(), seen).await?;
    let place = std::path::absolute(&to).unwrap_or(to);
    screen::print(&format!(
        "copied the current database to {}\n  to restore it: stop lango, move the database away, then run `lango store restore {}`",
        place.display(),
        place.display()
    ))?;
    Ok(())
}
