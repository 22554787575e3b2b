//! The updates of a task for one client. A client that is too slow gets the task as it is now instead of what it missed: it
//! delays no other client, and no queue grows for it.

use super::actor::{Published, Reply, Subscription};
use super::refusal::{Kind, Refusal};
use super::render::View;
use super::shared::{Key, Shared};
use super::task::Request;
use a2a::TaskState;
use lango_core::Text;
use std::sync::Arc;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// When a stream closes, apart from when its task ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closing {
    /// When the client must send a message, which opens another stream. While the task waits for an approval it stays
    /// open.
    WhenInputIsNeeded,
    /// Not before the end.
    AtTheEnd,
}

impl Closing {
    fn is_over(self, state: &TaskState) -> bool {
        state.is_terminal() || self == Self::WhenInputIsNeeded && *state == TaskState::InputRequired
    }
}

/// The updates of a task, each as JSON.
pub(super) struct Updates {
    first: Option<Text>,
    rest: Option<Rest>,
    _permit: OwnedSemaphorePermit,
}

struct Rest {
    shared: Arc<Shared>,
    key: Key,
    view: View,
    closing: Closing,
    updates: Receiver<Published>,
}

impl Updates {
    /// Reserves a stream.
    pub fn permit(shared: &Shared) -> Result<OwnedSemaphorePermit, Refusal> {
        let streams: &Arc<Semaphore> = &shared.streams;
        Arc::clone(streams).try_acquire_owned().map_err(|_| {
            Refusal::new(
                Kind::Busy,
                "the server is at its limit of open streams; poll the task instead, or retry later",
            )
        })
    }

    /// Creates a stream of one item.
    pub fn one(json: String, permit: OwnedSemaphorePermit) -> Self {
        Self {
            first: Some(json.into()),
            rest: None,
            _permit: permit,
        }
    }

    /// Creates a stream of a task and its updates.
    pub fn new(
        shared: Arc<Shared>,
        key: Key,
        view: View,
        subscription: Subscription,
        closing: Closing,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let first = whole(&subscription);
        let rest = (!closing.is_over(&subscription.state)).then_some(Rest {
            shared,
            key,
            view,
            closing,
            updates: subscription.updates,
        });
        Self {
            first: Some(first),
            rest,
            _permit: permit,
        }
    }

    /// Waits for the next update; nothing when the stream closes.
    pub async fn next(&mut self) -> Option<Text> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let rest = self.rest.as_mut()?;
        let (json, is_last) = match rest.updates.recv().await {
            Ok(Published { update, .. }) => (update.json, rest.closing.is_over(&update.state)),
            Err(RecvError::Closed) => {
                self.rest = None;
                return None;
            }
            Err(RecvError::Lagged(_)) => {
                let request = Request::Watch(rest.view);
                let asked = rest.shared.ask(&rest.key, request, Reply::Snapshot);
                let Ok(subscription) = asked.await else {
                    self.rest = None;
                    return None;
                };
                let json = whole(&subscription);
                rest.updates = subscription.updates;
                (json, rest.closing.is_over(&subscription.state))
            }
        };
        if is_last {
            self.rest = None;
        }
        Some(json)
    }
}

fn whole(subscription: &Subscription) -> Text {
    format!("{{\"task\":{}}}", subscription.json).into()
}
