//! `lango paths`: lists lango's files and folders, and how to uninstall it.

use crate::exit::Exit;
use crate::screen::{self, Layout};
use lango::app::Failure;
use lango::app::paths::Listing;

/// Runs the command.
pub(super) fn paths(config: Vec<String>, as_json: bool) -> Result<Exit, Failure> {
    let listing = Listing::read(config)?;
    if as_json {
        screen::print(&screen::json(&listing.json(), Layout::Indented)?)?;
        return Ok(Exit::Ok);
    }
    let names = listing.entries.iter().map(|entry| entry.name.len());
    let width = names.max().unwrap_or_default();
    for entry in &listing.entries {
        let state = match &entry.size {
            Some(size) => size.describe(),
            None => "does not exist".to_owned(),
        };
        let path = entry.path.display();
        screen::print(&format!("{:<width$}  {path}  ({state})", entry.name))?;
    }
    if let Some(server) = &listing.server {
        screen::print(&format!("{:<width$}  {server}", "database"))?;
    }
    if let Some(problem) = &listing.problem {
        screen::say(&format!(
            "warning: the configuration cannot be read, so these are the default locations: {problem}"
        ));
    }
    screen::print("logs go to stderr, and only if LANGO_LOG is set; lango writes no log files")?;
    screen::print(&listing.uninstall_note())?;
    Ok(Exit::Ok)
}
