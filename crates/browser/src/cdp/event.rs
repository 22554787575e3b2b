//! Events of the browser. The supervisor receives all of them in order; other readers receive those of one session, and
//! a marker for events that they were too slow to read.

use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::{broadcast, mpsc};

/// One event.
#[derive(Debug, Clone)]
pub struct Event {
    /// The domain and name, such as `Page.loadEventFired`.
    pub method: String,
    /// The session that it belongs to; none is the browser itself.
    pub session: Option<Arc<str>>,
    /// The fields.
    pub params: Value,
}

impl Event {
    /// Deserializes the fields; `None` if they do not fit `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(&self.params).ok()
    }
}

/// All events, for the task that maintains the state of a browser. It must not wait for a call while reading: the
/// connection stops reading when this is full.
pub type EventStream = mpsc::Receiver<Arc<Event>>;

/// The events of one session.
#[derive(Debug)]
pub struct Events {
    pub(super) session: Option<Arc<str>>,
    pub(super) receiver: broadcast::Receiver<Arc<Event>>,
}

/// An item of [`Events::next`].
#[derive(Debug, Clone)]
pub enum Received {
    /// The next event of the session.
    Event(Arc<Event>),
    /// The reader was too slow, and up to this many events of its session are lost.
    Lost(u64),
}

impl Events {
    /// Waits for the next event; `None` once the connection is lost.
    pub async fn next(&mut self) -> Option<Received> {
        loop {
            match self.receiver.recv().await {
                Ok(event) if event.session == self.session => return Some(Received::Event(event)),
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(count)) => {
                    return Some(Received::Lost(count));
                }
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
