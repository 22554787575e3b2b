//! A remote agent that speaks A2A.

use super::call::{Call, CallFailure};
use super::card::{Binding, Card};
use super::masking::EventMasks;
use super::wire::{Operation, Wire};
use a2a::{Message, Part, Role, SendMessageConfiguration, SendMessageRequest};
use futures_util::{StreamExt, stream};
use lango_core::{
    AgentName, AttachedFile, BoxFuture, BoxStream, RemoteAgent, RemoteCall, RemoteError,
    RemoteEvent, RemoteThread,
};
use lango_net::Egress;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// The media types that lango accepts. Data is shown as JSON; files are attached, whether inline or given by URL.
const OUTPUT_MODES: [&str; 9] = [
    "text/plain",
    "text/markdown",
    "application/json",
    "text/html",
    "application/pdf",
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
];

/// How long to wait for a remote agent to acknowledge a cancel.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// The capacity of the channel between a call and the reader of its events.
const EVENT_CAPACITY: usize = 16;

/// A remote agent with a usable card.
pub struct A2aAgent {
    name: AgentName,
    card: Card,
    pub(crate) wire: Wire,
    staleness: CardStaleness,
    timeout: Option<Duration>,
    pub(crate) egress: Egress,
}

/// Whether a card may be outdated. Marking it as stale wakes the background task that reads cards again.
pub(crate) struct CardStaleness {
    is_stale: AtomicBool,
    wake: Arc<Notify>,
}

impl CardStaleness {
    pub(crate) fn new(wake: Arc<Notify>) -> Self {
        Self {
            is_stale: AtomicBool::new(false),
            wake,
        }
    }
}

impl A2aAgent {
    pub(crate) fn new(
        name: AgentName,
        card: Card,
        wire: Wire,
        staleness: CardStaleness,
        timeout: Option<Duration>,
        egress: Egress,
    ) -> Self {
        Self {
            name,
            card,
            wire,
            staleness,
            timeout,
            egress,
        }
    }

    /// Returns the URL to which calls are sent.
    pub fn interface_url(&self) -> &str {
        self.card.interface.url.as_str()
    }

    pub fn binding(&self) -> Binding {
        self.card.interface.binding
    }

    /// Returns whether the agent streams its answers.
    pub fn streams(&self) -> bool {
        self.card.streams
    }

    /// Marks the card as stale: the interface of the agent may have moved.
    pub(crate) fn mark_stale(&self) {
        self.set_stale(true);
        self.staleness.wake.notify_one();
    }

    pub(crate) fn is_stale(&self) -> bool {
        self.staleness.is_stale.load(Ordering::Relaxed)
    }

    pub(crate) fn set_stale(&self, is_stale: bool) {
        self.staleness.is_stale.store(is_stale, Ordering::Relaxed);
    }

    /// Returns whether both agents have the same card.
    pub(crate) fn has_same_card(&self, other: &Self) -> bool {
        self.card == other.card
    }

    /// Builds the request that gives the agent a task or answers the agent's question.
    pub(crate) fn message(
        &self,
        key: &str,
        text: &str,
        files: &[AttachedFile],
        thread: Option<&RemoteThread>,
    ) -> SendMessageRequest {
        let context = thread.map(|thread| thread.context.to_string());
        let task = thread.and_then(|thread| thread.task.as_deref());
        // When answering a question, wait for the result. If the server returned immediately, the task could still show
        // the old question, which looks the same as a new one.
        let return_immediately = task.is_none();
        let file = |file: &AttachedFile| {
            Part::raw(file.bytes.to_vec())
                .with_filename(&file.name)
                .with_media_type(&*file.media_type)
        };
        let text = std::iter::once(Part::text(text));
        let parts = text.chain(files.iter().map(file)).collect();
        SendMessageRequest {
            message: Message {
                message_id: message_id(key),
                context_id: context.filter(|context| !context.is_empty()),
                task_id: task.map(str::to_owned),
                ..Message::new(Role::User, parts)
            },
            configuration: Some(SendMessageConfiguration {
                accepted_output_modes: Some(OUTPUT_MODES.map(str::to_owned).to_vec()),
                task_push_notification_config: None,
                history_length: None,
                return_immediately: Some(return_immediately),
            }),
            metadata: None,
            tenant: self.card.interface.tenant.clone(),
        }
    }

    /// Cancels the remote task, and waits briefly for the acknowledgement.
    pub(crate) async fn stop(&self, thread: &RemoteThread) {
        if let Some(task) = &thread.task {
            let _ = self
                .wire
                .request(Operation::Cancel { task }, CANCEL_TIMEOUT)
                .await;
        }
    }

    fn error(&self, failure: CallFailure) -> RemoteError {
        RemoteError {
            agent: self.name.clone(),
            detail: self.wire.masks.mask_text(&failure.detail).into_owned(),
            is_unknown: failure.is_unknown,
        }
    }
}

impl RemoteAgent for A2aAgent {
    fn name(&self) -> &AgentName {
        &self.name
    }

    fn description(&self) -> &str {
        &self.card.description
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn call(&self, call: RemoteCall) -> BoxStream<'_, Result<RemoteEvent, RemoteError>> {
        let (sender, receiver) = mpsc::channel(EVENT_CAPACITY);
        let work = async move {
            let mut running = Call::new(self, sender.clone());
            let ended = match &call {
                RemoteCall::Send {
                    key,
                    text,
                    files,
                    thread,
                } => running.send(key, text, files, thread.as_ref()).await,
                RemoteCall::Resume { thread } => running.resume(thread).await,
            };
            if ended.is_err() {
                running.withdraw().await;
            }
            let last = ended
                .map(RemoteEvent::Answer)
                .map_err(|failure| self.error(failure));
            let _ = sender.send(last).await;
        };
        // The stream polls the work itself. So the work runs only while the stream is read, and ends when it is
        // dropped.
        let work = stream::once(work).filter_map(|()| async { None });
        let receiver = stream::unfold(receiver, |mut receiver| async move {
            let event = receiver.recv().await?;
            Some((event, receiver))
        });
        let events = stream::select(receiver, work);
        let mut masking = EventMasks::new(self.wire.masks.clone());
        events
            .flat_map(move |event| stream::iter(masking.mask(event)))
            .boxed()
    }

    fn cancel<'a>(&'a self, thread: &'a RemoteThread) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let _ = tokio::time::timeout(CANCEL_TIMEOUT, self.stop(thread)).await;
        })
    }
}

/// Derives the id of a message from the key of its call, so that a server can recognise a message that it receives
/// twice.
fn message_id(key: &str) -> String {
    let hash = Sha256::digest(format!("lango message\0{key}"));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    // UUID version 8: the application defines the content.
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = base16ct::lower::encode_string(&bytes);
    let groups = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    groups.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_one_id_per_call_in_the_form_of_a_uuid() {
        let id = message_id("session/turn/call");
        assert_eq!(id, message_id("session/turn/call"));
        assert_ne!(id, message_id("session/turn/call2"));
        let lengths: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(&id[14..15], "8");
        assert!("89ab".contains(&id[19..20]));
    }
}
