//! A running turn, as a stream of events.

use crate::Error;
use futures_core::Stream;
use lango_core::{AgentName, CallId, Event, FrameId, PendingApproval, Text};
use lango_engine::{CancelToken, TurnEnd, TurnReport, TurnUpdate, UpdateReceiver};
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot;

/// What happens in a turn.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "most items are the large ones, and a box would be in the way of `match`"
)]
pub enum TurnEvent {
    /// The session is busy, and the turn is queued.
    Queued,
    /// An event was stored.
    Stored(Event),
    /// The next piece of a text that may become the answer. It is the answer only if [`TurnEvent::Finished`] says so.
    Draft {
        /// The agent that writes it.
        author: AgentName,
        /// The piece.
        text: String,
    },
    /// The draft so far does not become the answer.
    DraftWithdrawn,
    /// A model call failed and is retried.
    Retrying {
        /// The agent whose model failed.
        agent: AgentName,
        /// Why it failed.
        reason: String,
    },
    /// A model call started.
    ModelStarted {
        /// The run of the agent that made the call.
        frame: FrameId,
        /// The agent.
        agent: AgentName,
        /// The name of the model, as `provider/model`.
        model: Text,
    },
    /// A model call produced more output: text, reasoning or arguments of calls.
    ModelProgress {
        /// The run of the agent that made the call.
        frame: FrameId,
        /// How many more bytes it produced. Output of failed attempts counts.
        bytes: usize,
    },
    /// The next output of a running tool call, for display. Secrets in it are masked. A reader that is slower than the tool
    /// gets only the end of it; the stored result of the call has what was recorded.
    ToolOutput {
        /// The call.
        call: CallId,
        /// The next lines, or a part of a line. A carriage return starts the last line again.
        text: String,
    },
    /// The turn ended. This is the last item.
    Finished(TurnReport),
    /// The turn waits for these approvals, and exists only in the store until
    /// [`Session::answer`](crate::Session::answer) continues it. This is the last item.
    Waiting(Vec<PendingApproval>),
}

/// A running turn: a stream of [`TurnEvent`]s that ends with the report.
///
/// Awaiting it instead gives the [`TurnReport`]. The turn runs on its own: it neither waits for a reader nor stops when
/// this is dropped. [`TurnStream::cancel`] stops it.
pub struct TurnStream {
    updates: UpdateReceiver,
    /// Events of a batch that were not returned yet.
    stored: VecDeque<Event>,
    /// The result of the turn, until it was returned.
    end: Option<oneshot::Receiver<Result<TurnEnd, Error>>>,
    cancel: CancelToken,
}

impl TurnStream {
    pub(crate) fn new(
        updates: UpdateReceiver,
        end: oneshot::Receiver<Result<TurnEnd, Error>>,
        cancel: CancelToken,
    ) -> Self {
        Self {
            updates,
            stored: VecDeque::new(),
            end: Some(end),
            cancel,
        }
    }

    /// Cancels the turn. It ends soon, with [`Outcome::Cancelled`](crate::Outcome::Cancelled).
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Returns a handle that cancels the turn, also after this was dropped.
    pub fn cancel_token(&self) -> CancelToken {
        self.cancel.clone()
    }

    /// Waits for the end of the turn and ignores its events.
    ///
    /// # Errors
    /// The turn could not run or be stored, or waits for an approval ([`Error::Waiting`]).
    pub async fn report(mut self) -> Result<TurnReport, Error> {
        let end = self.end.take();
        // Without a reader, updates cost nothing.
        drop(self.updates);
        let end = match end {
            Some(end) => end.await.unwrap_or(Err(Error::Interrupted))?,
            None => return Err(Error::Interrupted),
        };
        match end {
            TurnEnd::Finished(report) => Ok(report),
            TurnEnd::Waiting(approvals) => Err(Error::Waiting(approvals)),
        }
    }
}

impl Stream for TurnStream {
    type Item = Result<TurnEvent, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(event) = this.stored.pop_front() {
                return Poll::Ready(Some(Ok(TurnEvent::Stored(event))));
            }
            let Some(update) = ready!(Pin::new(&mut this.updates).poll_next(context)) else {
                break;
            };
            let event = match update {
                TurnUpdate::Stored(batch) => {
                    this.stored.extend(batch.iter().cloned());
                    continue;
                }
                TurnUpdate::Queued => TurnEvent::Queued,
                TurnUpdate::Draft { author, text, .. } => TurnEvent::Draft { author, text },
                TurnUpdate::DraftWithdrawn => TurnEvent::DraftWithdrawn,
                TurnUpdate::Retrying { agent, reason } => TurnEvent::Retrying { agent, reason },
                TurnUpdate::ModelStarted {
                    frame,
                    agent,
                    model,
                } => TurnEvent::ModelStarted {
                    frame,
                    agent,
                    model,
                },
                TurnUpdate::ModelProgress { frame, bytes } => {
                    TurnEvent::ModelProgress { frame, bytes }
                }
                TurnUpdate::ToolOutput { call, text } => TurnEvent::ToolOutput { call, text },
            };
            return Poll::Ready(Some(Ok(event)));
        }
        let Some(end) = &mut this.end else {
            return Poll::Ready(None);
        };
        let end = ready!(Pin::new(end).poll(context)).unwrap_or(Err(Error::Interrupted));
        this.end = None;
        Poll::Ready(Some(end.map(|end| match end {
            TurnEnd::Finished(report) => TurnEvent::Finished(report),
            TurnEnd::Waiting(approvals) => TurnEvent::Waiting(approvals),
        })))
    }
}

impl IntoFuture for TurnStream {
    type Output = Result<TurnReport, Error>;
    type IntoFuture = lango_core::BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.report())
    }
}
