//! Events of the browser. The supervisor receives all of them in order; other readers receive those of one session, and
//! a marker for events that they were too slow to read.

use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::{broadcast, mpsc};

#[derive(Debug, Clone)]
pub struct Event {
    /// The domain and name, such as `Page.loadEventFired`.
    pub method: String,
    /// `None` for events of the browser itself.
    pub session: Option<Arc<str>>,
    pub params: Value,
}

impl Event {
    /// Deserializes the parameters; `None` if they do not match `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(&self.params).ok()
    }
}

/// All events, for the task that maintains the state of a browser. That task must not wait for a call: when this queue
/// is full, the connection stops reading, so the reply would never arrive.
pub type EventStream = mpsc::Receiver<Arc<Event>>;

/// The events of one session.
#[derive(Debug)]
pub struct Events {
    pub(super) session: Option<Arc<str>>,
    pub(super) receiver: broadcast::Receiver<Arc<Event>>,
}

/// An item of [`Events::next`].
#[derive(Debug, Clone)]
pub enum EventItem {
    /// The next event of the session.
    Event(Arc<Event>),
    /// The reader was too slow; up to this many events of its session were dropped.
    Lost(u64),
}

impl Events {
    /// Waits for the next event; `None` once the connection is lost.
    pub async fn next(&mut self) -> Option<EventItem> {
        loop {
            match self.receiver.recv().await {
                Ok(event) if event.session == self.session => return Some(EventItem::Event(event)),
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(count)) => {
                    return Some(EventItem::Lost(count));
                }
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
