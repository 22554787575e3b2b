//! How the first and the last events of a turn are stored.

use super::{RunnerError, RunnerParts, Shown, TurnReport};
use lango_core::{Batch, BoxFuture, Event, StoreError};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Stores the first and the last events of a turn together with something of the caller's, in one transaction.
pub trait TurnCommit: Send + Sync {
    /// Returns whether another turn already has this question. The runner checks this before it creates a session or resumes an
    /// earlier turn.
    fn is_duplicate(&self) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Stores the first events.
    fn first(&self, events: Batch) -> BoxFuture<'_, Result<FirstCommit, StoreError>>;

    /// Stores the last events, which end the turn as reported, and releases the lease. Returns whether it did; otherwise the
    /// runner stores them.
    fn last<'a>(
        &'a self,
        events: Batch,
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
    /// The turn must not run, because another one has its question. Nothing was stored.
    Duplicate,
}

/// Where the events of a turn go.
#[derive(Clone, Copy)]
pub(super) struct Output<'a> {
    pub shown: &'a mpsc::Sender<Shown>,
    pub commit: Option<&'a dyn TurnCommit>,
}

impl Output<'_> {
    /// Fails with [`RunnerError::Duplicate`] if another turn already has this question.
    pub(super) async fn refuse_duplicate(&self) -> Result<(), RunnerError> {
        match self.commit {
            Some(commit) if commit.is_duplicate().await? => Err(RunnerError::Duplicate),
            _ => Ok(()),
        }
    }
}

/// Stores events, then shows them.
pub(super) async fn append(
    parts: &RunnerParts,
    events: Vec<Event>,
    shown: &mpsc::Sender<Shown>,
) -> Result<Batch, RunnerError> {
    let batch: Batch = events.into();
    if !batch.is_empty() {
        parts.store.append(Arc::clone(&batch)).await?;
        show(&batch, shown).await;
    }
    Ok(batch)
}

/// Stores the first events of a turn, then shows them.
pub(super) async fn append_first(
    parts: &RunnerParts,
    events: Vec<Event>,
    output: Output<'_>,
) -> Result<Batch, RunnerError> {
    let Some(commit) = output.commit else {
        return append(parts, events, output.shown).await;
    };
    let batch: Batch = events.into();
    match commit.first(Arc::clone(&batch)).await? {
        FirstCommit::Stored => {}
        FirstCommit::Separate => parts.store.append(Arc::clone(&batch)).await?,
        FirstCommit::Duplicate => return Err(RunnerError::Duplicate),
    }
    show(&batch, output.shown).await;
    Ok(batch)
}

/// Stores the last events of a turn, then shows them.
pub(super) async fn append_last(
    parts: &RunnerParts,
    events: Vec<Event>,
    report: &TurnReport,
    output: Output<'_>,
) -> Result<Batch, RunnerError> {
    let Some(commit) = output.commit else {
        return append(parts, events, output.shown).await;
    };
    let batch: Batch = events.into();
    if !commit.last(Arc::clone(&batch), report).await? {
        parts.store.append(Arc::clone(&batch)).await?;
    }
    show(&batch, output.shown).await;
    Ok(batch)
}

async fn show(batch: &Batch, shown: &mpsc::Sender<Shown>) {
    // Without a receiver the turn goes on.
    let _ = shown.send(Shown::Stored(Arc::clone(batch))).await;
}
