//! Restores the database from a backup and marks the turns and tasks that were in flight, so
//! that no effect is repeated. Without a file it marks them in a database that was restored by other means.

use crate::app::App;
use crate::app::failure::Failure;
use lango_config::StoreLocation;
use lango_core::Clock as _;
use lango_core::text::count;
use lango_engine::SystemClock;
use lango_server::{InFlight, RestoredStore};
use lango_store::Store;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Interval between checks for leases that the backup contains.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Restores the database from this file, or marks what is in flight in a database that was restored by other means.
pub async fn restore(app: &App, from: Option<PathBuf>) -> Result<InFlight, Failure> {
    let settings = &app.loaded.settings.session;
    match (from, &settings.store) {
        (Some(from), StoreLocation::Sqlite(to)) => restore_file(app, &from, to).await,
        (Some(_), place @ StoreLocation::Postgres(_)) => {
            let message = format!(
                "`{place}` is on a database server; use the server's own tools to restore it"
            );
            Err(Failure::usage(message).next(format!(
                "pg_restore --dbname='{place}' lango.dump, then `lango store restore` without a file"
            )))
        }
        (None, _) => {
            let store = app.existing_store()?;
            if store.has_server().await? {
                return Err(in_use_failure());
            }
            wait_for_leases(&store, settings.lease.0).await?;
            mark_in_flight(app, &store).await
        }
    }
}

fn in_use_failure() -> Failure {
    Failure::usage("a server uses the database").next("stop `lango serve`, then restore again")
}

/// Copies a backup to a temporary file, marks what is in flight there, and then links it at the database's path.
async fn restore_file(app: &App, from: &Path, to: &Path) -> Result<InFlight, Failure> {
    let usage = |message: String, next: &str| Failure::usage(message).next(next);
    let wal = with_suffix(from, "-wal");
    if wal.metadata().is_ok_and(|wal| wal.len() > 0) {
        let message = format!("`{}` is in use, or was not closed", from.display());
        return Err(usage(message, "restore a file of `lango store backup`"));
    }
    // SQLite would replay the leftover log of another database into this one.
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let taken = with_suffix(to, suffix);
        if taken.try_exists().unwrap_or(true) {
            let message = format!("`{}` already exists", taken.display());
            let next = format!("stop lango and move {}* away first", to.display());
            return Err(usage(message, &next));
        }
    }
    if app.storage.database.has_server().await? {
        return Err(in_use_failure());
    }
    let part = with_suffix(to, &format!(".{}.part", std::process::id()));
    let restored = async {
        copy(from, &part)?;
        let store = Store::open_sqlite(&part, app.tree.root.name.clone())?;
        let in_flight = mark_in_flight(app, &store).await?;
        // The log is not moved along with the file, so it must be empty.
        if !store.checkpoint_log().await? {
            let message = format!("another program reads `{}`", part.display());
            return Err(Failure::failed(message).next("end it, then restore again"));
        }
        drop(store);
        // Fails if a file of this name was created meanwhile.
        fs::hard_link(&part, to)?;
        let folder = to.parent().filter(|folder| *folder != "");
        fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(in_flight)
    };
    let restored = restored.await;
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let _ = fs::remove_file(with_suffix(&part, suffix));
    }
    let _ = fs::remove_dir(part.with_extension("locks"));
    restored
}

fn copy(from: &Path, part: &Path) -> Result<(), Failure> {
    let copied = || -> io::Result<()> {
        let mut source = fs::File::open(from)?;
        if let Some(folder) = part.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        let mut copy = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(part)?;
        io::copy(&mut source, &mut copy)?;
        copy.sync_all()
    };
    copied().map_err(|error| {
        let message = format!("`{}` cannot be copied: {error}", from.display());
        Failure::usage(message).next("name a file of `lango store backup`")
    })
}

/// Waits until the leases in the backup have expired. Fails if a lease is valid for longer than that, because then a
/// running server renews it.
async fn wait_for_leases(store: &Store, length: Duration) -> Result<(), Failure> {
    let started = Instant::now();
    loop {
        let leases = store.count_leases().await?;
        if leases == 0 {
            return Ok(());
        }
        if started.elapsed() > length + CHECK_INTERVAL {
            let leases = count(leases as u64, "session");
            let message = format!("a running lango uses the database ({leases})");
            return Err(Failure::usage(message).next("stop it, then restore again"));
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

async fn mark_in_flight(app: &App, store: &Store) -> Result<InFlight, Failure> {
    let restored = RestoredStore {
        sessions: store,
        catalog: store,
        tasks: store,
        root: &app.tree.root.name,
    };
    Ok(restored.mark_in_flight(SystemClock.now()).await?)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
