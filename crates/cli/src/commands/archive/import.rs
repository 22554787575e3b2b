//! `lango sessions import`.

use crate::args::ImportArguments;
use crate::screen::{self, Ticker, count, one_line};
use lango::app::archive::{self, ImportProgress};
use lango::app::{App, Failure};
use lango_core::SessionId;

/// Runs the command.
pub(crate) async fn import(app: &App, arguments: ImportArguments) -> Result<(), Failure> {
    let mut lines = ProgressLines(Ticker::new());
    let skip_existing = arguments.skip_existing;
    let imported = archive::import(app, &arguments.file, skip_existing, &mut lines).await;
    lines.0.clear();
    screen::say(&imported?);
    Ok(())
}

struct ProgressLines(Ticker);

impl ImportProgress for ProgressLines {
    fn line_read(&mut self, number: u64, imported: u64) {
        self.0
            .show(|| format!("line {number}, {} imported", count(imported, "session")));
    }

    fn session_done(&mut self, id: &SessionId, result: &str) -> Result<(), Failure> {
        self.0.clear();
        let id = one_line(id.as_str(), 100);
        Ok(screen::print(&format!("{id:<24}  {result}"))?)
    }
}
