//! What a server learns from other replicas while it is up: which tasks that run here they were asked to cancel, and which
//! tasks they have written. Ends with the server.

use super::actor::Command;
use super::shared::{Phase, Shared};
use futures_util::StreamExt as _;
use lango_core::{Change, Changes, Text};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;

/// Requests to cancel that are read at a time, and pages that are read in one scan.
const PAGE: usize = 256;
const PAGES: usize = 4;

/// Pause before hints that broke off are subscribed to again.
const RESUBSCRIBE_PAUSE: Duration = Duration::from_secs(1);

pub(super) fn start(shared: &Arc<Shared>, changes: Option<Arc<dyn Changes>>) {
    let pause = shared.settings.limits.follow_every;
    let server = Arc::downgrade(shared);
    tokio::spawn(scan_cancels(
        server.clone(),
        pause,
        shared.phase.subscribe(),
    ));
    if let Some(changes) = changes {
        tokio::spawn(follow_hints(server, changes));
    }
}

/// Stops what another replica was asked to cancel, until the server has stopped.
async fn scan_cancels(server: Weak<Shared>, pause: Duration, mut phase: watch::Receiver<Phase>) {
    let mut after: Option<Text> = None;
    while let Some(hint) = server
        .upgrade()
        .map(|shared| Arc::clone(&shared.cancel_hint))
    {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = hint.notified() => {}
            _ = phase.wait_for(|phase| *phase == Phase::Stopping) => return,
        }
        if let Some(shared) = server.upgrade().filter(|shared| !shared.is_idle()) {
            shared.stop_cancelled(&mut after).await;
        }
    }
}

async fn follow_hints(server: Weak<Shared>, changes: Arc<dyn Changes>) {
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
        tokio::time::sleep(RESUBSCRIBE_PAUSE).await;
    }
}

impl Shared {
    /// Tells the runs here that must be cancelled. Where there are very many requests the next scan continues after the last.
    async fn stop_cancelled(&self, after: &mut Option<Text>) {
        let active = self.active_tasks();
        let here: HashMap<&str, _> = active.keys().map(|key| (key.1.as_str(), key)).collect();
        for _ in 0..PAGES {
            // What cannot be read now is read by the next scan.
            let Ok(page) = self.tasks.cancel_requests(after.as_deref(), PAGE).await else {
                return;
            };
            for id in &page {
                if let Some(key) = here.get(&**id) {
                    self.notify(key, Command::CancelRequested);
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
