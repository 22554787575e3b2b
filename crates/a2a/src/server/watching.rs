//! What a server does by itself while it is up: it looks for tasks that nobody is at work on any more, and which of those at
//! work here another copy was asked to cancel. Each ends with the server.

use super::keeper::Command;
use super::recovery::Which;
use super::shared::{Phase, Shared};
use futures_util::StreamExt as _;
use lango_core::{Change, Changes, Text};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;

/// How many wishes to cancel are read at a time, and at most at one look.
const PAGE: usize = 256;
const PAGES: usize = 4;

/// How long after hints broke off they are asked for again.
const HINTS_AGAIN: Duration = Duration::from_secs(1);

/// Starts all of it.
pub(super) fn start(shared: &Arc<Shared>, changes: Option<Arc<dyn Changes>>) {
    let limits = &shared.settings.limits;
    let phase = || shared.phase.subscribe();
    let server = || Arc::downgrade(shared);
    tokio::spawn(look_for_lost(server(), limits.recover_every, phase()));
    tokio::spawn(look_for_cancels(server(), limits.follow_every, phase()));
    if let Some(changes) = changes {
        tokio::spawn(hear(server(), changes));
    }
}

/// Takes up what nobody is at work on, until the server takes no new work.
async fn look_for_lost(server: Weak<Shared>, pause: Duration, mut phase: watch::Receiver<Phase>) {
    while let Some(recovered) = server.upgrade().map(|shared| Arc::clone(&shared.recovered)) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = recovered.notified() => {}
            // Also when the server is gone.
            _ = phase.wait_for(|phase| *phase != Phase::Open) => return,
        }
        if let Some(shared) = server.upgrade() {
            // What could not be looked at now is looked at again.
            let _ = shared.look_for_lost(Which::Quiet).await;
        }
    }
}

/// Stops what another copy was asked to cancel, until the server has stopped.
async fn look_for_cancels(
    server: Weak<Shared>,
    pause: Duration,
    mut phase: watch::Receiver<Phase>,
) {
    let mut after: Option<Text> = None;
    while let Some(cancelling) = server
        .upgrade()
        .map(|shared| Arc::clone(&shared.cancelling))
    {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = cancelling.notified() => {}
            _ = phase.wait_for(|phase| *phase == Phase::Stopping) => return,
        }
        if let Some(shared) = server.upgrade().filter(|shared| !shared.is_idle()) {
            shared.stop_cancelled(&mut after).await;
        }
    }
}

async fn hear(server: Weak<Shared>, changes: Arc<dyn Changes>) {
    while server.strong_count() > 0 {
        let mut hints = changes.changes();
        while let Some(change) = hints.next().await {
            let Some(shared) = server.upgrade() else {
                return;
            };
            match change {
                Change::Task(id) => shared.hint(|(_, known)| known == &*id),
                Change::Anything => shared.hint(|_| true),
                Change::Session(_) => {}
            }
        }
        tokio::time::sleep(HINTS_AGAIN).await;
    }
}

impl Shared {
    /// Tells the jobs here that are to be cancelled. Where there are very many wishes the next look goes on after the last.
    async fn stop_cancelled(&self, after: &mut Option<Text>) {
        let at_work = self.at_work();
        let here: HashMap<&str, _> = at_work.keys().map(|key| (key.1.as_str(), key)).collect();
        for _ in 0..PAGES {
            // What cannot be read now is read at the next look.
            let Ok(page) = self.tasks.to_cancel(after.as_deref(), PAGE).await else {
                return;
            };
            for id in &page {
                if let Some(key) = here.get(&**id) {
                    self.tell(key, Command::CancelHere);
                }
            }
            let is_last = page.len() < PAGE;
            *after = page.into_iter().next_back().filter(|_| !is_last);
            if is_last {
                return;
            }
        }
    }
}
