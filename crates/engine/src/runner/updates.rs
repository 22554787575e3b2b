//! The channel from a running turn to its user interface. Sending never waits, so a turn does not depend on a reader:
//! it runs to its end if its updates are read slowly, late or never.
//!
//! What was not read yet is merged. Consecutive pieces of a draft become one, a withdrawn draft disappears, and a
//! retry replaces the previous one of the same agent. So the queue holds at most the stored events of the turn, the
//! starts of its model calls and the text of one draft, and a late reader sees the same result as an early one.
//!
//! The progress of running steps is the exception, because only its latest state is worth showing: see `progress`.

mod printed;
mod progress;

use super::TurnUpdate;
use crate::turn::{PartialReply, PrintedOutput};
use futures_util::Stream;
use lango_core::{AgentName, CallId, Event, EventBatch, EventBody, FrameId, Text};
use printed::PrintedOutputs;
use progress::{StepProgress, end_of_output};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;

/// Creates a channel for the updates of a turn. Without a reader, drop the receiver.
pub fn turn_updates() -> (UpdateSender, UpdateReceiver) {
    let channel = Arc::new(Channel::default());
    let sender = UpdateSender {
        channel: Arc::clone(&channel),
        replies: Mutex::default(),
        printed: PrintedOutputs::default(),
    };
    (sender, UpdateReceiver(channel))
}

/// The sending half, which a turn borrows. Dropping it ends the stream of updates.
#[derive(Debug)]
pub struct UpdateSender {
    channel: Arc<Channel>,
    /// The replies that are being written and are not stored yet.
    replies: Mutex<Vec<PartialReply>>,
    printed: PrintedOutputs,
}

/// The receiving half. Dropping it discards all updates, and the turn continues.
#[derive(Debug)]
pub struct UpdateReceiver(Arc<Channel>);

/// A view of the updates that were not read yet. It does not keep the channel open.
#[derive(Debug, Clone)]
pub struct UpdateBacklog(Arc<Channel>);

#[derive(Debug, Default)]
struct Channel {
    queue: Mutex<Queue>,
    /// Notified when the last unread update is taken, if the backlog is watched.
    emptied: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    unread: VecDeque<TurnUpdate>,
    progress: StepProgress,
    /// Whether the reader has a part of a draft that is neither withdrawn nor the answer of a finished turn.
    has_read_draft: bool,
    is_sender_gone: bool,
    is_receiver_gone: bool,
    reader: Option<Waker>,
    is_backlog_watched: bool,
}

impl UpdateSender {
    /// Sends an update. Does nothing if the receiver is gone.
    pub fn send(&self, update: TurnUpdate) {
        self.note(&update);
        self.channel.change(|queue| queue.push(update));
    }

    /// Sends that the model call of a frame produced more output.
    pub(crate) fn send_model_progress(&self, frame: &FrameId, bytes: usize) {
        if bytes > 0 {
            let mut replies = self.lock_replies();
            if let Some(reply) = replies.iter_mut().find(|reply| reply.frame == *frame) {
                reply.bytes += bytes;
            }
            drop(replies);
            self.channel
                .change(|queue| queue.progress.add_bytes(frame, bytes));
        }
    }

    /// Sends masked output of a running call. `has_gap` says that output before it was dropped.
    pub(crate) fn send_output(&self, call: &CallId, masked: &str, has_gap: bool) {
        self.printed.push(call, masked, has_gap);
        let end = end_of_output(masked);
        if !end.is_empty() {
            self.send(TurnUpdate::ToolOutput {
                call: call.clone(),
                text: end.to_owned(),
            });
        }
    }

    /// Returns what the running calls have printed until now.
    pub(crate) fn printed(&self) -> Vec<PrintedOutput> {
        self.printed.all()
    }

    /// Returns the replies that are being written now.
    pub(crate) fn partial_replies(&self) -> Vec<PartialReply> {
        self.lock_replies().clone()
    }

    /// Keeps track of the replies that are being written.
    fn note(&self, update: &TurnUpdate) {
        let mut replies = self.lock_replies();
        let new = |frame: &FrameId, agent: &AgentName, model: &Text| PartialReply {
            frame: frame.clone(),
            agent: agent.clone(),
            model: Text::clone(model),
            bytes: 0,
            text: String::new(),
        };
        match update {
            TurnUpdate::ModelStarted {
                frame,
                agent,
                model,
            } => {
                replies.retain(|reply| reply.frame != *frame);
                replies.push(new(frame, agent, model));
            }
            TurnUpdate::Draft {
                frame,
                author,
                text,
            } => {
                // A remote agent starts no model.
                if !replies.iter().any(|reply| reply.frame == *frame) {
                    replies.push(new(frame, author, &"".into()));
                }
                let mut replies = replies.iter_mut();
                if let Some(reply) = replies.find(|reply| reply.frame == *frame) {
                    reply.text.push_str(text);
                }
            }
            TurnUpdate::DraftWithdrawn => replies.iter_mut().for_each(|reply| reply.text.clear()),
            TurnUpdate::Stored(batch) => {
                self.printed.stored(batch);
                let is_stored = |reply: &PartialReply| {
                    batch.iter().any(|event| ends_reply(event, &reply.frame))
                };
                replies.retain(|reply| !is_stored(reply));
            }
            _ => {}
        }
    }

    fn lock_replies(&self) -> MutexGuard<'_, Vec<PartialReply>> {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a view of the updates that were not read yet.
    pub fn backlog(&self) -> UpdateBacklog {
        UpdateBacklog(Arc::clone(&self.channel))
    }
}

impl Drop for UpdateSender {
    fn drop(&mut self) {
        let mut queue = self.channel.lock();
        queue.is_sender_gone = true;
        let reader = queue.reader.take();
        drop(queue);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl UpdateReceiver {
    /// Waits for the next update. Returns `None` if the sender is gone and everything was read.
    pub async fn recv(&mut self) -> Option<TurnUpdate> {
        std::future::poll_fn(|context| self.poll_recv(context)).await
    }

    /// Returns the next update if there is one.
    pub fn try_recv(&mut self) -> Option<TurnUpdate> {
        self.0.pop(self.0.lock())
    }

    fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<TurnUpdate>> {
        let mut queue = self.0.lock();
        if !queue.is_empty() {
            return Poll::Ready(self.0.pop(queue));
        }
        if queue.is_sender_gone {
            return Poll::Ready(None);
        }
        match &mut queue.reader {
            Some(reader) => reader.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

impl Stream for UpdateReceiver {
    type Item = TurnUpdate;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<TurnUpdate>> {
        self.get_mut().poll_recv(context)
    }
}

impl Drop for UpdateReceiver {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.is_receiver_gone = true;
        let unread = std::mem::take(&mut queue.unread);
        let progress = std::mem::take(&mut queue.progress);
        drop(queue);
        drop((unread, progress));
        self.0.emptied.notify_waiters();
    }
}

impl UpdateBacklog {
    /// Waits until every update was taken from the channel, or the receiver is gone.
    pub async fn emptied(&self) {
        loop {
            // Created before the check, so that no notification in between is missed.
            let emptied = self.0.emptied.notified();
            {
                let mut queue = self.0.lock();
                if queue.is_empty() {
                    return;
                }
                queue.is_backlog_watched = true;
            }
            emptied.await;
        }
    }
}

impl Channel {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the queue and wakes the reader. Does nothing if the receiver is gone.
    fn change(&self, change: impl FnOnce(&mut Queue)) {
        let mut queue = self.lock();
        if queue.is_receiver_gone {
            return;
        }
        change(&mut queue);
        let reader = queue.reader.take();
        drop(queue);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Takes the next update, and releases the queue before it wakes anyone.
    fn pop(&self, mut queue: MutexGuard<'_, Queue>) -> Option<TurnUpdate> {
        let update = queue.pop();
        let is_emptied = queue.is_empty() && std::mem::take(&mut queue.is_backlog_watched);
        drop(queue);
        if is_emptied {
            self.emptied.notify_waiters();
        }
        update
    }
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.unread.is_empty() && self.progress.is_empty()
    }

    /// Adds an update, or merges it with those that were not read yet.
    fn push(&mut self, update: TurnUpdate) {
        match update {
            TurnUpdate::Draft {
                frame,
                author,
                text,
            } => match self.unread.back_mut() {
                Some(TurnUpdate::Draft {
                    frame: last_frame,
                    author: last_author,
                    text: unread,
                }) if *last_frame == frame && *last_author == author => unread.push_str(&text),
                _ => self.unread.push_back(TurnUpdate::Draft {
                    frame,
                    author,
                    text,
                }),
            },
            TurnUpdate::DraftWithdrawn => self.withdraw(),
            TurnUpdate::Retrying { agent, reason } => match self.unread_retry_of(&agent) {
                Some(unread) => *unread = reason,
                None => self
                    .unread
                    .push_back(TurnUpdate::Retrying { agent, reason }),
            },
            TurnUpdate::ModelProgress { frame, bytes } => self.progress.add_bytes(&frame, bytes),
            TurnUpdate::ToolOutput { call, text } => self.progress.add_output(call, text),
            TurnUpdate::Queued | TurnUpdate::Stored(_) | TurnUpdate::ModelStarted { .. } => {
                self.progress.queued(&update);
                self.unread.push_back(update);
            }
        }
    }

    /// Removes the unread text of the current draft. The reader is notified only if it has read a part of it.
    fn withdraw(&mut self) {
        let is_boundary = |update: &TurnUpdate| match update {
            TurnUpdate::DraftWithdrawn => true,
            TurnUpdate::Stored(batch) => ends_turn(batch),
            _ => false,
        };
        let boundary = self.unread.iter().rposition(is_boundary);
        let first = boundary.map_or(0, |boundary| boundary + 1);
        let mut at = self.unread.len();
        while at > first {
            at -= 1;
            if matches!(self.unread[at], TurnUpdate::Draft { .. }) {
                self.unread.remove(at);
            }
        }
        if boundary.is_none() && self.has_read_draft {
            self.unread.push_back(TurnUpdate::DraftWithdrawn);
        }
    }

    fn unread_retry_of(&mut self, of: &AgentName) -> Option<&mut String> {
        let retries = self.unread.iter_mut().rev();
        let mut retries = retries.map_while(|update| match update {
            TurnUpdate::Retrying { agent, reason } => Some((agent, reason)),
            _ => None,
        });
        retries.find_map(|(agent, reason)| (agent == of).then_some(reason))
    }

    fn pop(&mut self) -> Option<TurnUpdate> {
        if let Some(update) = self.progress.pop(self.unread.is_empty()) {
            return Some(update);
        }
        let update = self.unread.pop_front()?;
        match &update {
            TurnUpdate::Draft { .. } => self.has_read_draft = true,
            TurnUpdate::DraftWithdrawn => self.has_read_draft = false,
            TurnUpdate::Stored(batch) if ends_turn(batch) => self.has_read_draft = false,
            _ => {}
        }
        self.progress.read(&update);
        Some(update)
    }
}

/// Whether a turn ends with these events. A draft before them is its answer, or was dropped with the turn.
fn ends_turn(batch: &EventBatch) -> bool {
    let last = batch.last().map(|event| &event.body);
    matches!(last, Some(EventBody::TurnFinished { .. }))
}

/// Whether a call of the model or the remote agent of this frame ended with this event.
fn ends_reply(event: &Event, frame: &FrameId) -> bool {
    let is_end = matches!(
        event.body,
        EventBody::AgentMessage { .. }
            | EventBody::RemoteReturned { .. }
            | EventBody::TurnCorrected { .. }
    );
    is_end && event.frame == *frame
}

#[cfg(test)]
mod tests;
