//! `lango trash`: lists, restores and permanently deletes what agents deleted.

use crate::args::TrashCommand;
use crate::exit::Exit;
use crate::screen::{self, Layout, age, count};
use lango::app::App;
use lango::app::Failure;
use lango_core::Clock;
use lango_core::text::sanitize;
use lango_engine::SystemClock;
use lango_tools::TrashItem;
use std::path::PathBuf;

/// Runs the command.
pub(super) async fn trash(
    config: Vec<String>,
    command: Option<TrashCommand>,
) -> Result<Exit, Failure> {
    let app = App::load(config).await?;
    match command.unwrap_or(TrashCommand::List { json: false }) {
        TrashCommand::List { json } => list(&app, json)?,
        TrashCommand::Restore { id } => {
            let item = app.trash.restore(&app.workspace, &id)?;
            let line = format!("restored {}", item.path.display());
            screen::print(&sanitize(&line))?;
        }
        TrashCommand::Empty => {
            let mut deleted = app.trash.empty()? as u64;
            for path in removed_after_commands(&app) {
                // No command can interfere, because these files are hidden from commands.
                let removed = match path.symlink_metadata() {
                    Ok(found) if found.is_dir() => std::fs::remove_dir_all(&path),
                    _ => std::fs::remove_file(&path),
                };
                removed.map_err(|error| {
                    let text = format!("cannot delete `{}`: {error}", path.display());
                    Failure::failed(text)
                })?;
                deleted += 1;
            }
            screen::print(&format!("{} permanently deleted", count(deleted, "item")))?;
        }
    }
    Ok(Exit::Ok)
}

fn list(app: &App, as_json: bool) -> Result<(), Failure> {
    let items = app.trash.list()?;
    if as_json {
        return Ok(screen::print(&screen::json(&items, Layout::Indented)?)?);
    }
    let after_commands = removed_after_commands(app);
    if items.is_empty() && after_commands.is_empty() {
        return Ok(screen::print("the trash is empty")?);
    }
    let now = SystemClock.now();
    for item in &items {
        let TrashItem {
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
    for path in &after_commands {
        let name = path.file_name().unwrap_or_default().display();
        screen::print(&sanitize(&format!("created by a command: {name}")))?;
    }
    if !items.is_empty() {
        screen::say("restore: lango trash restore ID");
    }
    if !after_commands.is_empty() {
        let folder = app.loaded.paths.clean_up_trash();
        screen::say(&format!(
            "files that a command created are in {}; check them before you move them back",
            folder.display()
        ));
    }
    Ok(())
}

/// Returns the protected files that commands created and clean-up moved here.
fn removed_after_commands(app: &App) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(app.loaded.paths.clean_up_trash());
    let entries = entries.into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
