//! What memory does after a turn, while the person reads the answer.

use super::watch::asked_to_end;
use crate::app::App;
use crate::screen::{self, count};
use lango_core::{SessionId, UserId};
use std::time::Duration;

/// Observes and condenses what is due. Ctrl-C leaves it for the next time: nothing is lost, and nothing done twice.
pub async fn remember(app: &App, user: &UserId, session: &SessionId, quiet: bool) {
    let work = app.remember(user, session);
    tokio::pin!(work);
    let patience = tokio::time::sleep(Duration::from_secs(1));
    tokio::pin!(patience);
    let mut has_told = quiet;
    let report = loop {
        tokio::select! {
            report = &mut work => break report,
            _ = tokio::signal::ctrl_c() => break None,
            () = asked_to_end() => break None,
            () = &mut patience, if !has_told => {
                has_told = true;
                screen::say("remembering what was said; ctrl-c leaves it for the next time");
            }
        }
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
