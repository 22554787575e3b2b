//! Updates memory after a turn, while the user reads the answer.

use crate::screen::{self, count};
use lango::app::App;
use lango::app::signals::StopSignals;
use lango_core::{SessionId, UserId};
use std::time::Duration;

/// Observes and condenses what is due. Ctrl-C postpones it: nothing is lost, and nothing is done twice.
pub(super) async fn remember(app: &App, user: &UserId, session: &SessionId, quiet: bool) {
    let Ok(mut signals) = StopSignals::listen() else {
        return;
    };
    let work = app.remember(user, session);
    tokio::pin!(work);
    let notice_delay = tokio::time::sleep(Duration::from_secs(1));
    tokio::pin!(notice_delay);
    let mut has_notified = quiet;
    let report = loop {
        tokio::select! {
            report = &mut work => break report,
            _ = signals.next() => break None,
            () = &mut notice_delay, if !has_notified => {
                has_notified = true;
                screen::say("updating memory; press ctrl-c to postpone it");
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
