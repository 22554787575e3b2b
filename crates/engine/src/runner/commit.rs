//! Stores the events of a turn, then publishes them.

use super::turn_context::TurnContext;
use super::{RunnerError, RunnerParts, TurnReport, TurnUpdate, UpdateSender};
use lango_core::{BoxFuture, Event, EventBatch, StoreError};
use std::sync::Arc;

/// Stores the first and the last events of a turn in one transaction with data of the caller.
pub trait TurnCommit: Send + Sync {
    /// Whether another turn already has this message. The runner checks this before it creates a session or resumes an
    /// earlier turn.
    fn is_duplicate(&self) -> BoxFuture<'_, Result<bool, StoreError>>;

    fn first(&self, events: EventBatch) -> BoxFuture<'_, Result<FirstCommit, StoreError>>;

    /// Stores the last events, which end the turn as reported, and releases the lease. Returns whether it did; if not,
    /// the runner stores them.
    fn last<'a>(
        &'a self,
        events: EventBatch,
        report: &'a TurnReport,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;
}

/// The result of [`TurnCommit::first`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstCommit {
    /// The events are stored.
    Stored,
    /// The runner must store them.
    Separate,
    /// Another turn already has this message, so this one must not run. Nothing was stored.
    Duplicate,
}

/// Stores events, then publishes them.
pub(super) async fn append(
    parts: &RunnerParts,
    events: Vec<Event>,
    updates: &UpdateSender,
) -> Result<EventBatch, RunnerError> {
    let batch: EventBatch = events.into();
    if !batch.is_empty() {
        parts.store.append(Arc::clone(&batch)).await?;
        publish(&batch, updates);
    }
    Ok(batch)
}

/// Stores the first events of a turn, then publishes them.
pub(super) async fn append_first(
    parts: &RunnerParts,
    events: Vec<Event>,
    context: TurnContext<'_>,
) -> Result<EventBatch, RunnerError> {
    let Some(commit) = context.commit else {
        return append(parts, events, context.updates).await;
    };
    let batch: EventBatch = events.into();
    match commit.first(Arc::clone(&batch)).await? {
        FirstCommit::Stored => {}
        FirstCommit::Separate => parts.store.append(Arc::clone(&batch)).await?,
        FirstCommit::Duplicate => return Err(RunnerError::Duplicate),
    }
    publish(&batch, context.updates);
    Ok(batch)
}

/// Stores the last events of a turn, then publishes them.
pub(super) async fn append_last(
    parts: &RunnerParts,
    events: Vec<Event>,
    report: &TurnReport,
    context: TurnContext<'_>,
) -> Result<EventBatch, RunnerError> {
    let Some(commit) = context.commit else {
        return append(parts, events, context.updates).await;
    };
    let batch: EventBatch = events.into();
    if !commit.last(Arc::clone(&batch), report).await? {
        parts.store.append(Arc::clone(&batch)).await?;
    }
    publish(&batch, context.updates);
    Ok(batch)
}

fn publish(batch: &EventBatch, updates: &UpdateSender) {
    updates.send(TurnUpdate::Stored(Arc::clone(batch)));
}
