//! `lango store move`: copies everything from one database to another with progress output, and resumes an
//! interrupted move.

use crate::config::{self, ProcessEnv, StoreLocation};
use crate::exit::{Exit, Failure};
use crate::roster::Roster;
use crate::screen::{self, ProgressBar, count};
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
    let process_env = ProcessEnv::from_process(config)?;
    let loaded = config::load(&process_env)?;
    let roster = Roster::read(&loaded, &process_env.cwd)?;
    let root = roster
        .topology
        .as_ref()
        .map_or(Tree::SINGLE, |topology| topology.root.as_str());
    let root = AgentName::from(root);
    let (source, target) = (
        parse_location(from, &process_env)?,
        parse_location(to, &process_env)?,
    );
    if source == target {
        let message = "both databases are the same";
        return Err(Failure::new(Exit::Usage, message).next("name another database as the target"));
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
        screen::say(&format!("resuming the move from {from_place}"));
    }
    let mut reporter = ProgressReporter::new();
    let moved = transfer_all(&from, &to, &mut |progress| reporter.report(progress)).await;
    reporter.bar.clear();
    let moved = moved.map_err(|error| transfer_failure(error, &to.place()))?;
    report(&moved, &to.place())?;
    Ok(match moved.damaged {
        0 => Exit::Ok,
        _ => Exit::Failed,
    })
}

/// Parses a database location given on the command line.
fn parse_location(text: &str, process_env: &ProcessEnv) -> Result<StoreLocation, Failure> {
    config::store_location(text, process_env).map_err(|expected| {
        // The text is not repeated, because it may contain a password.
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

/// Fails if the source does not exist; opening it would create an empty database.
fn check_exists(source: &StoreLocation) -> Result<(), Failure> {
    match source {
        StoreLocation::Sqlite(path) if matches!(path.try_exists(), Ok(false)) => {
            let message = format!("there is no database `{}`", path.display());
            Err(Failure::new(Exit::Usage, message)
                .next("run `lango config show --origin` to see where session.store is set"))
        }
        _ => Ok(()),
    }
}

fn report(moved: &TransferReport, place: &str) -> Result<(), Failure> {
    screen::print(&format!(
        "moved {}, {} and all related data, {}; every row was compared and every log verified",
        count(moved.sessions, "session"),
        count(moved.events, "event"),
        count(moved.rows, "row")
    ))?;
    if moved.damaged > 0 {
        let damaged = count(moved.damaged, "session");
        screen::say(&format!(
            "{damaged} damaged, as they were before the move; run `lango sessions verify --all` to list them"
        ));
    }
    screen::print(&format!(
        "next: set session.store = \"{place}\"; the old database is unchanged"
    ))?;
    Ok(())
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
        error => Failure::new(Exit::Usage, error.to_string()).next(next),
    }
}

/// Interval between progress lines if there is no terminal.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);

/// Progress output: a bar on a terminal; otherwise a line for each table that is not empty, and one at regular
/// intervals.
struct ProgressReporter {
    bar: ProgressBar,
    is_terminal: bool,
    last_report: Option<(TransferStage, Instant)>,
}

impl ProgressReporter {
    fn new() -> Self {
        Self {
            bar: ProgressBar::new(),
            is_terminal: std::io::stderr().is_terminal(),
            last_report: None,
        }
    }

    fn report(&mut self, progress: TransferProgress) {
        let TransferProgress { stage, done, total } = progress;
        let stage = match stage {
            TransferStage::Copying(table) => format!("copying {table}"),
            TransferStage::Comparing(table) => format!("comparing {table}"),
            TransferStage::CheckingLogs => "checking logs".to_owned(),
        };
        if self.is_terminal {
            let share = screen::progress_share(done, total);
            return self.bar.show(&format!("{share}  {stage}"));
        }
        let is_recent = match self.last_report {
            Some((stage, time)) => stage == progress.stage && time.elapsed() < REPORT_INTERVAL,
            None => false,
        };
        if !is_recent && progress.total > 0 {
            self.last_report = Some((progress.stage, Instant::now()));
            screen::say(&format!("{stage}: {done} of {total}"));
        }
    }
}
