//! What memory does after a turn, while the person reads the answer.

use crate::app::App;
use crate::screen::{self, count};
use lango_core::SessionId;

/// Observes and condenses what is due. Ctrl-C leaves it for the next time: nothing is lost, and nothing done twice.
pub async fn remember(app: &App, session: &SessionId, quiet: bool) {
    let report = tokio::select! {
        report = app.remember(session) => report,
        _ = tokio::signal::ctrl_c() => None,
    };
    let Some(report) = report.filter(|_| !quiet) else {
        return;
    };
    if report.turns > 0 {
        let by = match report.by_rules {
            0 => "",
            _ => " (by built-in rules)",
        };
        screen::say(&format!("remembered {}{by}", count(report.turns, "turn")));
    }
    if let Some(failure) = &report.failure {
        screen::say(&format!("not remembered yet: {failure}"));
    }
}
