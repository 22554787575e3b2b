//! The stream of a task's updates for one client. A client that is too slow gets the current task instead of the
//! updates that it missed, so it does not delay other clients, and no queue grows without limit.

use super::actor::{PublishedUpdate, Reply, Subscription};
use super::refusal::{Refusal, RefusalKind};
use super::render::View;
use super::shared::{Key, Shared};
use super::task::Request;
use a2a::TaskState;
use lango_core::Text;
use std::sync::Arc;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// When a stream closes. It always closes when its task has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClosePolicy {
    /// Also when the client must send a message, because that message opens another stream. The stream stays open while
    /// the task waits for an approval.
    OnInputRequired,
    /// Only when the task has ended.
    OnEnd,
}

impl ClosePolicy {
    fn is_over(self, state: &TaskState) -> bool {
        state.is_terminal() || self == Self::OnInputRequired && *state == TaskState::InputRequired
    }
}

/// The updates of a task, each as JSON.
pub(super) struct Updates {
    first: Option<Text>,
    live: Option<LiveUpdates>,
    _permit: OwnedSemaphorePermit,
}

/// The updates after the first item.
struct LiveUpdates {
    shared: Arc<Shared>,
    key: Key,
    view: View,
    close: ClosePolicy,
    updates: Receiver<PublishedUpdate>,
}

impl Updates {
    /// Reserves a stream, or refuses the request if too many are open.
    pub(super) fn permit(shared: &Shared) -> Result<OwnedSemaphorePermit, Refusal> {
        let streams: &Arc<Semaphore> = &shared.streams;
        Arc::clone(streams).try_acquire_owned().map_err(|_| {
            Refusal::new(
                RefusalKind::Busy,
                "the server is at its limit of open streams; poll the task instead, or retry later",
            )
        })
    }

    /// Creates a stream with a single item.
    pub(super) fn single(json: String, permit: OwnedSemaphorePermit) -> Self {
        Self {
            first: Some(json.into()),
            live: None,
            _permit: permit,
        }
    }

    /// Creates a stream that starts with the whole task and continues with its updates.
    pub(super) fn new(
        shared: Arc<Shared>,
        key: Key,
        view: View,
        subscription: Subscription,
        close: ClosePolicy,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let first = task_json(&subscription);
        let live = (!close.is_over(&subscription.state)).then_some(LiveUpdates {
            shared,
            key,
            view,
            close,
            updates: subscription.updates,
        });
        Self {
            first: Some(first),
            live,
            _permit: permit,
        }
    }

    /// Waits for the next update. Returns `None` when the stream closes.
    pub(super) async fn next(&mut self) -> Option<Text> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let live = self.live.as_mut()?;
        let (json, is_last) = match live.updates.recv().await {
            Ok(PublishedUpdate { update, .. }) => (update.json, live.close.is_over(&update.state)),
            Err(RecvError::Closed) => {
                self.live = None;
                return None;
            }
            Err(RecvError::Lagged(_)) => {
                let request = Request::Watch(live.view);
                let snapshot = live.shared.ask(&live.key, request, Reply::Snapshot);
                let Ok(subscription) = snapshot.await else {
                    self.live = None;
                    return None;
                };
                let json = task_json(&subscription);
                live.updates = subscription.updates;
                (json, live.close.is_over(&subscription.state))
            }
        };
        if is_last {
            self.live = None;
        }
        Some(json)
    }
}

fn task_json(subscription: &Subscription) -> Text {
    format!("{{\"task\":{}}}", subscription.json).into()
}
