//! A remote agent that speaks A2A.

use super::call::{Call, Failure};
use super::card::{Binding, Card};
use super::masking::EventMasks;
use super::wire::{Ask, Wire};
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

/// What may come back. Data is shown as JSON; a file is attached, whether it comes with its bytes or is at a URL.
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

/// How long it is waited for that a server hears that it should stop.
const CANCEL_PATIENCE: Duration = Duration::from_secs(2);

/// The events of a call that may wait for whoever listens.
const EVENTS_WAITING: usize = 16;

/// An agent whose card was read and can be used.
pub struct A2aAgent {
    name: AgentName,
    card: Card,
    pub(crate) wire: Wire,
    doubt: Doubt,
    timeout: Option<Duration>,
    pub(crate) egress: Egress,
}

/// Whether a card still holds.
pub(crate) struct Doubt {
    is_raised: AtomicBool,
    wake: Arc<Notify>,
}

impl Doubt {
    pub fn new(wake: Arc<Notify>) -> Self {
        Self {
            is_raised: AtomicBool::new(false),
            wake,
        }
    }
}

impl A2aAgent {
    pub(crate) fn new(
        name: AgentName,
        card: Card,
        wire: Wire,
        doubt: Doubt,
        timeout: Option<Duration>,
        egress: Egress,
    ) -> Self {
        Self {
            name,
            card,
            wire,
            doubt,
            timeout,
            egress,
        }
    }

    /// Where its calls go.
    pub fn interface_url(&self) -> &str {
        self.card.interface.url.as_str()
    }

    /// How it is spoken to.
    pub fn binding(&self) -> Binding {
        self.card.interface.binding
    }

    /// Whether its answers are streamed.
    pub fn streams(&self) -> bool {
        self.card.streams
    }

    /// Notes that its interface may have moved.
    pub(crate) fn doubt(&self) {
        self.set_doubt(true);
        self.doubt.wake.notify_one();
    }

    pub(crate) fn is_doubtful(&self) -> bool {
        self.doubt.is_raised.load(Ordering::Relaxed)
    }

    pub(crate) fn set_doubt(&self, is_doubtful: bool) {
        self.doubt.is_raised.store(is_doubtful, Ordering::Relaxed);
    }

    /// Whether its card says the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.card == other.card
    }

    /// The request that gives it a task, or a reply to its question.
    pub(crate) fn message(
        &self,
        key: &str,
        text: &str,
        files: &[AttachedFile],
        thread: Option<&RemoteThread>,
    ) -> SendMessageRequest {
        let context = thread.map(|thread| thread.context.to_string());
        let task = thread.and_then(|thread| thread.task.as_deref());
        // A task that waits for a reply is known already, and may look as before until the reply is read: there, waiting
        // for the answer is what tells the two apart.
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

    /// Tells it to stop, and waits a moment that it hears so.
    pub(crate) async fn stop(&self, thread: &RemoteThread) {
        if let Some(task) = &thread.task {
            let _ = self.wire.ask(Ask::Cancel { task }, CANCEL_PATIENCE).await;
        }
    }

    fn error(&self, failure: Failure) -> RemoteError {
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
        let (listener, heard) = mpsc::channel(EVENTS_WAITING);
        let work = async move {
            let mut running = Call::new(self, listener.clone());
            let ended = match &call {
                RemoteCall::Send {
                    key,
                    text,
                    files,
                    thread,
                } => running.send(key, text, files, thread.as_ref()).await,
                RemoteCall::GoOn { thread } => running.go_on(thread).await,
            };
            if ended.is_err() {
                running.withdraw().await;
            }
            let last = ended
                .map(RemoteEvent::Answer)
                .map_err(|failure| self.error(failure));
            let _ = listener.send(last).await;
        };
        // Both are polled in one place: the work goes on only while somebody listens, and ends when the stream is dropped.
        let work = stream::once(work).filter_map(|()| async { None });
        let heard = stream::unfold(heard, |mut heard| async move {
            let event = heard.recv().await?;
            Some((event, heard))
        });
        let events = stream::select(heard, work);
        let mut masking = EventMasks::new(self.wire.masks.clone());
        events
            .flat_map(move |event| stream::iter(masking.mask(event)))
            .boxed()
    }

    fn cancel<'a>(&'a self, thread: &'a RemoteThread) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let _ = tokio::time::timeout(CANCEL_PATIENCE, self.stop(thread)).await;
        })
    }
}

/// The name of a message, the same for the same call: a server that is sent it twice can tell.
fn message_id(key: &str) -> String {
    let hash = Sha256::digest(format!("lango message\0{key}"));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    // The form of a UUID whose bits are the sender's own business.
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
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
