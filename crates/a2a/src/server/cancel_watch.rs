//! Watches other replicas while the server is up: stops local runs that another replica was asked to cancel, and
//! notifies actors of tasks that another replica has written.

use super::actor::Command;
use super::shared::{Phase, Shared};
use futures_util::StreamExt as _;
use lango_core::{ChangeFeed, StoreChange, Text};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;

/// How many cancel requests to read at a time, and how many pages of them in one scan.
const PAGE: usize = 256;
const PAGES: usize = 4;

/// Pause before subscribing again after the stream of hints has ended.
const RESUBSCRIBE_PAUSE: Duration = Duration::from_secs(1);

pub(super) fn start(shared: &Arc<Shared>, changes: Option<Arc<dyn ChangeFeed>>) {
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

/// Stops runs that another replica was asked to cancel. Returns when the server stops.
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

async fn follow_hints(server: Weak<Shared>, changes: Arc<dyn ChangeFeed>) {
    while server.strong_count() > 0 {
        let mut hints = changes.subscribe();
        while let Some(change) = hints.next().await {
            let Some(shared) = server.upgrade() else {
                return;
            };
            match change {
                StoreChange::Task(id) => shared.hint(|(_, known)| known == &*id),
                StoreChange::Anything => shared.hint(|_| true),
                StoreChange::Session(_) => {}
            }
        }
        tokio::time::sleep(RESUBSCRIBE_PAUSE).await;
    }
}

impl Shared {
    /// Notifies local runs that must be cancelled. If there are too many requests for one scan, the next scan continues
    /// after `after`.
    async fn stop_cancelled(&self, after: &mut Option<Text>) {
        let active = self.active_tasks();
        let here: HashMap<&str, _> = active.keys().map(|key| (key.1.as_str(), key)).collect();
        for _ in 0..PAGES {
            // The next scan tries again.
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
