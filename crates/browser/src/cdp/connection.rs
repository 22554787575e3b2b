//! The connection to a browser: sends calls with a timeout, matches replies by id, and fails all calls when the browser
//! exits.

use super::message::{Incoming, read_message};
use super::{Event, EventStream, Events};
use crate::BrowserError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// The default timeout of a call.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Capacity of the queues for outgoing messages and incoming events.
const QUEUE: usize = 1024;

/// A connection to a browser. Clones share it; dropping the last clone closes the pipes and ends the browser.
#[derive(Debug, Clone)]
pub struct Connection {
    shared: Arc<Shared>,
    _tasks: Arc<Tasks>,
}

#[derive(Debug)]
struct Shared {
    next_id: AtomicU64,
    outgoing: mpsc::Sender<Vec<u8>>,
    calls: Mutex<Calls>,
    events: broadcast::Sender<Arc<Event>>,
    is_lost: watch::Sender<bool>,
}

/// Calls without a reply yet.
#[derive(Debug, Default)]
struct Calls {
    is_lost: bool,
    waiting: HashMap<u64, ReplySlot>,
}

/// Where to deliver a call's reply.
#[derive(Debug)]
struct ReplySlot {
    session: Option<Arc<str>>,
    reply: oneshot::Sender<Result<Value, CallFailure>>,
}

/// The reason why a call failed although the browser is running.
#[derive(Debug)]
enum CallFailure {
    /// The browser returned this error message.
    Refused(String),
    TargetCrashed,
}

#[derive(Debug)]
struct Tasks([JoinHandle<()>; 2]);

/// The parameters of a method that takes none.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct NoParams {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outgoing<'a, P> {
    id: u64,
    method: &'a str,
    params: P,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
}

impl Connection {
    /// Connects to a browser over these pipes. The returned stream receives every event; see [`EventStream`].
    pub fn open(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> (Self, EventStream) {
        let (outgoing, messages) = mpsc::channel(QUEUE);
        let (all_events, stream) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared {
            next_id: AtomicU64::new(1),
            outgoing,
            calls: Mutex::default(),
            events: broadcast::Sender::new(QUEUE),
            is_lost: watch::Sender::new(false),
        });
        let tasks = Tasks([
            tokio::spawn(read_all(Arc::clone(&shared), reader, all_events)),
            tokio::spawn(write_all(Arc::clone(&shared), writer, messages)),
        ]);
        let connection = Self {
            shared,
            _tasks: Arc::new(tasks),
        };
        (connection, stream)
    }

    /// Returns the session of the browser itself.
    pub fn browser(&self) -> CdpSession {
        CdpSession {
            connection: self.clone(),
            id: None,
        }
    }

    /// Returns the session of an attached target.
    pub fn session(&self, id: impl Into<Arc<str>>) -> CdpSession {
        CdpSession {
            connection: self.clone(),
            id: Some(id.into()),
        }
    }

    /// Returns whether the connection is lost, usually because the browser exited.
    pub fn is_lost(&self) -> bool {
        *self.shared.is_lost.borrow()
    }

    /// Waits until the connection is lost.
    pub async fn wait_until_lost(&self) {
        let mut is_lost = self.shared.is_lost.subscribe();
        // The sender lives as long as this connection.
        let _ = is_lost.wait_for(|is_lost| *is_lost).await;
    }
}

/// One target of a connection: a tab, an out-of-process frame, or the browser itself.
#[derive(Debug, Clone)]
pub struct CdpSession {
    connection: Connection,
    id: Option<Arc<str>>,
}

impl CdpSession {
    /// Returns the session id in messages; `None` for the browser.
    pub fn id(&self) -> Option<&Arc<str>> {
        self.id.as_ref()
    }

    /// Calls a method and reads its result, within [`CALL_TIMEOUT`].
    pub async fn call<R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: impl Serialize,
    ) -> Result<R, BrowserError> {
        self.call_within(CALL_TIMEOUT, method, params).await
    }

    /// Calls a method with the timeout `limit`. If the future is dropped, the reply is discarded, but the browser may
    /// still carry out the call.
    pub async fn call_within<R: DeserializeOwned>(
        &self,
        limit: Duration,
        method: &'static str,
        params: impl Serialize,
    ) -> Result<R, BrowserError> {
        let shared = &self.connection.shared;
        let id = shared.next_id.fetch_add(1, Ordering::Relaxed);
        let failed = |message: String| BrowserError::Protocol { method, message };
        let message = Outgoing {
            id,
            method,
            params,
            session_id: self.id.as_deref(),
        };
        let mut bytes = serde_json::to_vec(&message).map_err(|error| failed(error.to_string()))?;
        bytes.push(0);
        let (sender, reply) = oneshot::channel();
        let slot = ReplySlot {
            session: self.id.clone(),
            reply: sender,
        };
        let _waiting = shared.add_call(id, slot)?;
        let exchange = async {
            let sent = shared.outgoing.send(bytes).await;
            sent.map_err(|_| BrowserError::Crashed)?;
            reply.await.map_err(|_| BrowserError::Crashed)
        };
        let result = tokio::time::timeout(limit, exchange).await;
        let result = result.map_err(|_| BrowserError::TimedOut {
            method,
            seconds: limit.as_secs(),
        })??;
        let result = result.map_err(|failure| match failure {
            CallFailure::TargetCrashed => BrowserError::PageCrashed,
            CallFailure::Refused(message) if is_page_change(&message) => BrowserError::PageChanged,
            CallFailure::Refused(message) => failed(message),
        })?;
        R::deserialize(result).map_err(|error| failed(error.to_string()))
    }

    /// Subscribes to the events of this session.
    pub fn events(&self) -> Events {
        Events {
            session: self.id.clone(),
            receiver: self.connection.shared.events.subscribe(),
        }
    }
}

/// Returns whether the browser refused a call because the document, frame or node no longer exists.
fn is_page_change(message: &str) -> bool {
    const MESSAGES: [&str; 8] = [
        "Cannot find context with specified id",
        "Execution context was destroyed",
        "Inspected target navigated or closed",
        "No frame for given id found",
        "Frame with the given id was not found",
        "No node with given id found",
        "No node found for given backend id",
        "Session with given id not found",
    ];
    MESSAGES.iter().any(|known| message.starts_with(known))
}

/// Removes a call from the waiting list when dropped.
struct WaitingCall<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        self.shared.lock_calls().waiting.remove(&self.id);
    }
}

impl Shared {
    fn lock_calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_call(&self, id: u64, slot: ReplySlot) -> Result<WaitingCall<'_>, BrowserError> {
        let mut calls = self.lock_calls();
        if calls.is_lost {
            return Err(BrowserError::Crashed);
        }
        calls.waiting.insert(id, slot);
        Ok(WaitingCall { shared: self, id })
    }

    /// Fails the pending calls of a target whose process crashed. Later calls may succeed, because a new document may
    /// start a new process.
    fn fail_calls_of(&self, session: &Option<Arc<str>>) {
        let mut calls = self.lock_calls();
        let failed = calls.waiting.extract_if(|_, slot| slot.session == *session);
        for (_, slot) in failed {
            // The caller may have given up.
            let _ = slot.reply.send(Err(CallFailure::TargetCrashed));
        }
    }

    /// Fails every pending call, and all later ones.
    fn mark_lost(&self) {
        let mut calls = self.lock_calls();
        calls.is_lost = true;
        calls.waiting.clear();
        self.is_lost.send_replace(true);
    }
}

async fn read_all(
    shared: Arc<Shared>,
    reader: impl AsyncRead + Send + Unpin,
    all_events: mpsc::Sender<Arc<Event>>,
) {
    let mut reader = BufReader::with_capacity(64 << 10, reader);
    let mut buffer = Vec::new();
    while let Ok(Some(size)) = read_message(&mut reader, &mut buffer).await {
        match Incoming::parse(&buffer, size) {
            Incoming::Reply { id, result } => {
                let waiting = shared.lock_calls().waiting.remove(&id);
                if let Some(slot) = waiting {
                    // The caller may have given up.
                    let _ = slot.reply.send(result.map_err(CallFailure::Refused));
                }
            }
            Incoming::Event(event) => {
                let event = Arc::new(event);
                if event.method == "Inspector.targetCrashed" {
                    shared.fail_calls_of(&event.session);
                }
                // Both fail only if nothing reads events any more.
                let _ = shared.events.send(Arc::clone(&event));
                let _ = all_events.send(event).await;
            }
            Incoming::Other => {}
        }
    }
    shared.mark_lost();
}

async fn write_all(
    shared: Arc<Shared>,
    mut writer: impl AsyncWrite + Send + Unpin,
    mut messages: mpsc::Receiver<Vec<u8>>,
) {
    while let Some(message) = messages.recv().await {
        let written = async {
            writer.write_all(&message).await?;
            writer.flush().await
        };
        if written.await.is_err() {
            break;
        }
    }
    shared.mark_lost();
}

impl Drop for Tasks {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}
