//! What a running turn needs besides its conversation: the lease of the session, who cancels it, and where its events
//! go.

use super::conversation::Conversation;
use super::{CancelToken, RunnerError, TurnCommit, TurnUpdate, UpdateSender};
use lango_core::{BoxLease, BusyPolicy, SessionId, StoreError};
use std::time::Duration;

/// How long to wait for the lease before publishing that the turn is queued.
const QUEUED_NOTICE_DELAY: Duration = Duration::from_millis(200);

/// The context of a running turn.
#[derive(Clone, Copy)]
pub(super) struct TurnContext<'a> {
    pub lease: &'a BoxLease,
    pub cancel: &'a CancelToken,
    pub updates: &'a UpdateSender,
    /// Stores the first and the last events of the turn, if the caller has data to store with them.
    pub commit: Option<&'a dyn TurnCommit>,
}

impl<'a> TurnContext<'a> {
    /// Creates the context of a turn whose events are stored alone.
    pub(crate) fn new(
        lease: &'a BoxLease,
        cancel: &'a CancelToken,
        updates: &'a UpdateSender,
    ) -> Self {
        Self {
            lease,
            cancel,
            updates,
            commit: None,
        }
    }

    /// Fails with [`RunnerError::Duplicate`] if another turn already has this message.
    pub(crate) async fn refuse_duplicate(&self) -> Result<(), RunnerError> {
        match self.commit {
            Some(commit) if commit.is_duplicate().await? => Err(RunnerError::Duplicate),
            _ => Ok(()),
        }
    }

    /// Awaits work on a session, and stops it when the lease of the session is lost.
    pub(crate) async fn while_leased<T>(
        &self,
        session: &SessionId,
        work: impl Future<Output = Result<T, RunnerError>>,
    ) -> Result<T, RunnerError> {
        tokio::select! {
            done = work => done,
            () = self.lease.lost() => Err(StoreError::LeaseLost { id: session.clone() }.into()),
        }
    }
}

impl Conversation {
    /// Acquires the session's lease. The busy policy decides whether to wait for its owner.
    pub(super) async fn acquire_lease(
        &self,
        cancel: &CancelToken,
        updates: &UpdateSender,
    ) -> Result<BoxLease, RunnerError> {
        let busy_policy = self.busy_policy;
        let acquiring = self.parts.store.acquire(&self.session, busy_policy);
        tokio::pin!(acquiring);
        if busy_policy != BusyPolicy::Refuse {
            let soon = tokio::time::timeout(QUEUED_NOTICE_DELAY, &mut acquiring).await;
            if let Ok(lease) = soon {
                return Ok(lease?);
            }
            updates.send(TurnUpdate::Queued);
        }
        tokio::select! {
            lease = &mut acquiring => Ok(lease?),
            () = cancel.cancelled() => Err(RunnerError::CancelledWhileQueued),
        }
    }
}
