//! The updates of a task as one client gets them. A client that cannot keep up is given the task as it is now instead of
//! what it missed: it holds nobody up, and nothing piles up for it.

use super::keeper::{Command, Watching};
use super::ledger::Update;
use super::refusal::{Kind, Refusal};
use super::shared::{Key, Shared};
use super::shown::View;
use a2a::TaskState;
use lango_core::Text;
use std::sync::Arc;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// When a stream closes, apart from when its task ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closing {
    /// When the client has to say something, which opens another stream. What somebody has to allow is settled elsewhere,
    /// so then it stays open.
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
    updates: Receiver<Update>,
}

impl Updates {
    /// A place among the streams.
    pub fn permit(shared: &Shared) -> Result<OwnedSemaphorePermit, Refusal> {
        let streams: &Arc<Semaphore> = &shared.streams;
        Arc::clone(streams).try_acquire_owned().map_err(|_| {
            Refusal::new(
                Kind::Busy,
                "as many streams are open as may be; get the task instead, or try again later",
            )
        })
    }

    /// One thing and nothing after it.
    pub fn one(json: String, permit: OwnedSemaphorePermit) -> Self {
        Self {
            first: Some(json.into()),
            rest: None,
            _permit: permit,
        }
    }

    /// A task, and what follows.
    pub fn new(
        shared: Arc<Shared>,
        key: Key,
        view: View,
        watching: Watching,
        closing: Closing,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let first = whole(&watching);
        let rest = (!closing.is_over(&watching.state)).then_some(Rest {
            shared,
            key,
            view,
            closing,
            updates: watching.updates,
        });
        Self {
            first: Some(first),
            rest,
            _permit: permit,
        }
    }

    /// The next update; nothing when the stream closes.
    pub async fn next(&mut self) -> Option<Text> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let rest = self.rest.as_mut()?;
        let (json, is_last) = match rest.updates.recv().await {
            Ok(update) => (update.json, rest.closing.is_over(&update.state)),
            Err(RecvError::Closed) => {
                self.rest = None;
                return None;
            }
            Err(RecvError::Lagged(_)) => {
                let view = rest.view;
                let ask = |reply| Command::Watch { view, reply };
                let Ok(watching) = rest.shared.ask(&rest.key, ask).await else {
                    self.rest = None;
                    return None;
                };
                let json = whole(&watching);
                rest.updates = watching.updates;
                (json, rest.closing.is_over(&watching.state))
            }
        };
        if is_last {
            self.rest = None;
        }
        Some(json)
    }
}

fn whole(watching: &Watching) -> Text {
    format!("{{\"task\":{}}}", watching.json).into()
}
