//! `lango trash`: what agents deleted, and getting it back.

use crate::app::App;
use crate::args::TrashCommand;
use crate::exit::{Exit, Failure};
use crate::markdown::sanitize;
use crate::screen::{self, Layout, age, count};
use lango_core::Clock;
use lango_engine::SystemClock;
use lango_tools::Trashed;

/// Runs the command.
pub async fn trash(config: Vec<String>, command: Option<TrashCommand>) -> Result<Exit, Failure> {
    let app = App::load(config).await?;
    match command.unwrap_or(TrashCommand::List { json: false }) {
        TrashCommand::List { json } => list(&app, json)?,
        TrashCommand::Restore { id } => {
            let item = app.trash.restore(&app.workspace, &id)?;
            let line = format!("restored {}", item.path.display());
            screen::print(&sanitize(&line))?;
        }
        TrashCommand::Empty => {
            let gone = app.trash.empty()? as u64;
            screen::print(&format!("{} deleted for good", count(gone, "thing")))?;
        }
    }
    Ok(Exit::Ok)
}

fn list(app: &App, as_json: bool) -> Result<(), Failure> {
    let items = app.trash.list()?;
    if as_json {
        return Ok(screen::print(&screen::json(&items, Layout::Indented)?)?);
    }
    if items.is_empty() {
        return Ok(screen::print("the trash is empty")?);
    }
    let now = SystemClock.now();
    for item in &items {
        let Trashed {
            id, path, files, ..
        } = item;
        let age = age(item.deleted_at, now);
        let line = format!(
            "{id}  {age:>10}  {:>8}  {}",
            count(*files, "file"),
            path.display()
        );
        screen::print(&sanitize(&line))?;
    }
    screen::say("get back: lango trash restore ID");
    Ok(())
}
