//! `lango store move`: everything from one database to another, told as it goes, and taken up again where it was cut off.

use crate::config::{self, StoreLocation, Surroundings};
use crate::exit::{Exit, Failure};
use crate::roster::Roster;
use crate::screen::{self, Bar, count};
use lango_core::AgentName;
use lango_engine::Tree;
use lango_store::tables::OpenMode;
use lango_store::transfer::{
    TransferError, TransferProgress, TransferReport, TransferStage, transfer_all,
};
use lango_store::{PostgresOptions, Store};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs the command.
pub async fn transfer(config: Vec<String>, from: &str, to: &str) -> Result<Exit, Failure> {
    let surroundings = Surroundings::from_process(config)?;
    let loaded = config::load(&surroundings)?;
    let roster = Roster::read(&loaded, &surroundings.cwd)?;
    let root = roster
        .topology
        .as_ref()
        .map_or(Tree::SINGLE, |topology| topology.root.as_str());
    let root = AgentName::from(root);
    let (source, target) = (place(from, &surroundings)?, place(to, &surroundings)?);
    if source == target {
        let message = "both databases are the same";
        return Err(Failure::new(Exit::Usage, message).next("name another one to move to"));
    }
    must_be_there(&source)?;
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
        screen::say(&format!("resuming the move from {from_place}"));
    }
    let mut telling = Telling::new();
    let moved = transfer_all(&from, &to, &mut |progress| telling.tell(progress)).await;
    telling.bar.clear();
    let moved = moved.map_err(|error| refused(error, &to.place()))?;
    report(&moved, &to.place())?;
    Ok(match moved.damaged {
        0 => Exit::Ok,
        _ => Exit::Failed,
    })
}

/// A database as it is named on the command line.
fn place(text: &str, surroundings: &Surroundings) -> Result<StoreLocation, Failure> {
    config::store_location(text, surroundings).map_err(|expected| {
        // What it says may be a secret.
        let message = format!("a database must be {expected}");
        Failure::new(Exit::Usage, message).next("lango store move sqlite:OLD sqlite:NEW")
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

/// A file that is not there must not be made for want of something to move.
fn must_be_there(source: &StoreLocation) -> Result<(), Failure> {
    match source {
        StoreLocation::Sqlite(path) if matches!(path.try_exists(), Ok(false)) => {
            let message = format!("there is no database `{}`", path.display());
            Err(Failure::new(Exit::Usage, message)
                .next("`lango config show --origin` tells where session.store is set"))
        }
        _ => Ok(()),
    }
}

fn report(moved: &TransferReport, place: &str) -> Result<(), Failure> {
    screen::print(&format!(
        "moved {}, {} and all that belongs to them, {}; every row was compared and every log checked",
        count(moved.sessions, "session"),
        count(moved.events, "event"),
        count(moved.rows, "row")
    ))?;
    if moved.damaged > 0 {
        let damaged = count(moved.damaged, "session");
        screen::say(&format!(
            "{damaged} damaged, as before; `lango sessions verify --all` names them"
        ));
    }
    screen::print(&format!(
        "next: set session.store = \"{place}\"; what was moved is still where it was"
    ))?;
    Ok(())
}

fn refused(error: TransferError, target: &str) -> Failure {
    let next = match &error {
        TransferError::InUse { .. } => "end what runs there, then move again".to_owned(),
        TransferError::HasServer { .. } => "stop `lango serve` there, then move again".to_owned(),
        TransferError::NotEmpty { .. } => {
            "name a database that is empty or not there yet".to_owned()
        }
        TransferError::OtherTransfer { source_place, .. } => format!(
            "go on with that one: lango store move '{source_place}' '{target}'; or name a database that is empty or not there yet"
        ),
        TransferError::Changed { place, .. } if place == target => format!(
            "end whatever writes to it; the source is as it was: move again to a database that is empty, or remove what is at {target} first"
        ),
        TransferError::Changed { .. } => format!(
            "end whatever writes to it, remove what is at {target} or name another database that is empty, and move again from the beginning"
        ),
        TransferError::Store(_) => String::new(),
    };
    match error {
        TransferError::Store(error) => error.into(),
        error => Failure::new(Exit::Usage, error.to_string()).next(next),
    }
}

/// How often a line is shown where there is no terminal.
const SAID_EVERY: Duration = Duration::from_secs(2);

/// How far it is: a bar on a terminal; elsewhere a line for each table that has something in it, and one now and then.
struct Telling {
    bar: Bar,
    is_terminal: bool,
    told: Option<(TransferStage, Instant)>,
}

impl Telling {
    fn new() -> Self {
        Self {
            bar: Bar::new(),
            is_terminal: std::io::stderr().is_terminal(),
            told: None,
        }
    }

    fn tell(&mut self, progress: TransferProgress) {
        let TransferProgress { stage, done, total } = progress;
        let stage = match stage {
            TransferStage::Copying(table) => format!("copying {table}"),
            TransferStage::Comparing(table) => format!("comparing {table}"),
            TransferStage::CheckingLogs => "checking logs".to_owned(),
        };
        if self.is_terminal {
            let share = screen::share(done, total);
            return self.bar.show(&format!("{share}  {stage}"));
        }
        let is_told = match self.told {
            Some((stage, when)) => stage == progress.stage && when.elapsed() < SAID_EVERY,
            None => false,
        };
        if !is_told && progress.total > 0 {
            self.told = Some((progress.stage, Instant::now()));
            screen::say(&format!("{stage}: {done} of {total}"));
        }
    }
}
