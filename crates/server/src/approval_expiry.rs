//! Ends turns of callers whose approvals have been pending for too long: denies the calls without another model call,
//! and the task fails. Callers cannot approve calls themselves, so a forgotten approval would block their conversation
//! forever.

use crate::attempts::latest_attempt;
use crate::context::{Notice, ServerContext};
use lango_a2a::server::AgentServer;
use lango_core::{Clock, SessionId, StoreError, TaskStore, Timestamp, TurnId, UserId};
use lango_engine::RunnerError;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The maximum interval between two scans. With a short expiry, scans are more frequent.
const SCAN_INTERVAL: Duration = Duration::from_secs(60);

/// Finds and ends turns whose approvals have expired.
pub(crate) struct ApprovalExpiry {
    user: UserId,
    after: Duration,
    clock: Arc<dyn Clock>,
    next_scan: Instant,
}

impl ApprovalExpiry {
    pub(crate) fn new(user: UserId, after: Duration, clock: Arc<dyn Clock>) -> Self {
        Self {
            user,
            after,
            clock,
            next_scan: Instant::now(),
        }
    }

    /// Ends the turns whose approvals have expired, if a scan is due. If that fails for a turn, the next scan tries
    /// again.
    pub(crate) async fn scan(
        &mut self,
        context: &dyn ServerContext,
        tasks: &dyn TaskStore,
        server: &AgentServer,
    ) {
        if Instant::now() < self.next_scan {
            return;
        }
        self.next_scan = Instant::now() + SCAN_INTERVAL.min(self.after / 4);
        match self.overdue(context).await {
            Ok((turns, requested_before)) => {
                for (turn, session) in turns {
                    let expired = expire(context, session, requested_before).await;
                    match expired {
                        Ok(true) => self.refresh(context, tasks, server, &turn).await,
                        Ok(false) => {}
                        Err(RunnerError::Store(StoreError::Busy { .. })) => {}
                        Err(error) => context.notify(Notice::Error(&error)),
                    }
                }
            }
            Err(error) => context.notify(Notice::Error(&error)),
        }
    }

    /// Updates the task of a turn that has ended.
    async fn refresh(
        &self,
        context: &dyn ServerContext,
        tasks: &dyn TaskStore,
        server: &AgentServer,
        turn: &TurnId,
    ) {
        match latest_attempt(tasks, &self.user, turn).await {
            Ok(Some(task)) => server.refresh(&self.user, &task.id).await,
            Ok(None) => {}
            Err(error) => context.notify(Notice::Error(&error)),
        }
    }

    /// Returns the turns with expired approvals, and the cutoff: approvals requested before that time have expired.
    async fn overdue(
        &self,
        context: &dyn ServerContext,
    ) -> Result<(BTreeMap<TurnId, SessionId>, Timestamp), StoreError> {
        let after = u64::try_from(self.after.as_millis()).unwrap_or(u64::MAX);
        let requested_before = Timestamp(self.clock.now().0.saturating_sub(after));
        let approvals = context.catalog().approvals(&self.user).await?;
        let overdue = approvals.waiting.into_iter();
        let overdue = overdue.filter(|waiting| waiting.asked < requested_before);
        let turns = overdue.map(|waiting| (waiting.turn, waiting.session));
        Ok((turns.collect(), requested_before))
    }
}

async fn expire(
    context: &dyn ServerContext,
    session: SessionId,
    requested_before: Timestamp,
) -> Result<bool, RunnerError> {
    let opened = context.runner().open(session).await?;
    opened.without_waiting().expire(requested_before).await
}
