//! The loop that resumes interrupted work while the server runs: tasks of callers, and turns of sessions. When a
//! process dies, its sessions are released: immediately on SQLite, and when the lease expires on PostgreSQL. The next
//! scan then finds its work.
//!
//! A turn that belongs to a running task is resumed as a task, so that its caller receives the reports.

use crate::approval_expiry::ApprovalExpiry;
use crate::attempts::latest_attempt;
use crate::context::{Notice, ServerContext};
use lango_a2a::server::AgentServer;
use lango_core::{Clock, SessionId, StoreError, TaskStore, TurnId, UnfinishedTurn, UserId};
use lango_engine::{CancelToken, RunnerError, TurnEnd, turn_updates};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The minimum interval between two scans for turns. Scans for tasks are more frequent: one follows the end of each
/// resumed task.
const TURN_SCAN_INTERVAL: Duration = Duration::from_secs(2);

/// How many turns to resume concurrently, and how many to read at a time.
const MAX_RESUMING: usize = 256;
const PAGE: usize = 64;

/// How many turns to remember as skipped, so that not every scan replays them.
const MAX_SKIPPED: usize = 10_000;

/// The recovery loop of one server.
pub struct Recovery {
    server: AgentServer,
    context: Arc<dyn ServerContext>,
    tasks: Arc<dyn TaskStore>,
    /// The users whose turns this server resumes.
    users: Vec<UserId>,
    resuming: JoinSet<(TurnId, TurnRecovery)>,
    active: HashSet<TurnId>,
    parked: HashSet<TurnId>,
    /// Turns that were started in another directory.
    foreign: HashSet<TurnId>,
    expiry: Option<ApprovalExpiry>,
}

/// The result of recovering one turn.
enum TurnRecovery {
    /// The turn waits for an answer and was not interrupted.
    Parked,
    /// The turn was started in another directory, and can only be resumed there.
    Foreign,
    /// Any other result. If the turn is still unfinished, the next scan finds it again.
    Done,
}

impl Recovery {
    /// Creates the loop for a server's tasks and for the turns of these users.
    pub fn new(
        server: AgentServer,
        context: Arc<dyn ServerContext>,
        tasks: Arc<dyn TaskStore>,
        users: Vec<UserId>,
    ) -> Self {
        Self {
            server,
            context,
            tasks,
            users,
            resuming: JoinSet::new(),
            active: HashSet::new(),
            parked: HashSet::new(),
            foreign: HashSet::new(),
            expiry: None,
        }
    }

    /// Also ends turns of this user whose approvals have been pending for longer than `after`.
    pub fn with_expiry(self, user: UserId, after: Duration, clock: Arc<dyn Clock>) -> Self {
        Self {
            expiry: Some(ApprovalExpiry::new(user, after, clock)),
            ..self
        }
    }

    /// Scans until the server stops, then waits for the resumed turns. Never returns. Dropping it leaves unfinished
    /// turns unchanged in the log.
    pub async fn run(mut self) {
        let server = self.server.clone();
        let mut next_turn_scan = Instant::now();
        loop {
            if next_turn_scan <= Instant::now() {
                next_turn_scan = Instant::now() + TURN_SCAN_INTERVAL;
                if let Err(error) = self.scan_turns().await {
                    self.context.notify(Notice::Error(&error));
                }
                if let Some(expiry) = &mut self.expiry {
                    expiry
                        .scan(&*self.context, &*self.tasks, &self.server)
                        .await;
                }
            }
            let due = server.next_recovery();
            tokio::pin!(due);
            let is_open = loop {
                tokio::select! {
                    Some(Ok((turn, recovery))) = self.resuming.join_next() => {
                        self.record(turn, &recovery);
                    }
                    is_open = &mut due => break is_open,
                }
            };
            if !is_open {
                break;
            }
            // If the scan fails, the next one tries again.
            if let Ok(recovered) = server.recover_stale().await
                && recovered.resumed > 0
            {
                let count = recovered.resumed;
                self.context.notify(Notice::TasksResumed { count });
            }
        }
        while self.resuming.join_next().await.is_some() {}
        std::future::pending().await
    }

    /// Starts to resume the interrupted turns that no process runs.
    async fn scan_turns(&mut self) -> Result<(), StoreError> {
        let catalog = self.context.catalog();
        let mut after: Option<SessionId> = None;
        loop {
            let page = catalog.unfinished(after.as_ref(), PAGE).await?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|turn| turn.session.clone());
            for turn in page {
                let is_parked = turn.is_waiting && self.parked.contains(&turn.turn);
                let is_ours = self.users.contains(&turn.user) && !self.foreign.contains(&turn.turn);
                if is_parked || !is_ours || self.active.contains(&turn.turn) {
                    continue;
                }
                if self.active.len() >= MAX_RESUMING {
                    return Ok(());
                }
                self.active.insert(turn.turn.clone());
                let (context, tasks) = (Arc::clone(&self.context), Arc::clone(&self.tasks));
                self.resuming.spawn(recover_turn(context, tasks, turn));
            }
            if is_last {
                return Ok(());
            }
        }
    }

    fn record(&mut self, turn: TurnId, recovery: &TurnRecovery) {
        self.active.remove(&turn);
        let skipped = match recovery {
            TurnRecovery::Parked => &mut self.parked,
            TurnRecovery::Foreign => &mut self.foreign,
            TurnRecovery::Done => return,
        };
        if skipped.len() >= MAX_SKIPPED {
            skipped.clear();
        }
        skipped.insert(turn);
    }
}

async fn recover_turn(
    context: Arc<dyn ServerContext>,
    tasks: Arc<dyn TaskStore>,
    turn: UnfinishedTurn,
) -> (TurnId, TurnRecovery) {
    let recovery = match resume(&*context, &*tasks, &turn).await {
        Ok(recovery) => recovery,
        // Another process runs the turn, or ran it until just now.
        Err(RunnerError::Store(
            StoreError::Busy { .. } | StoreError::LeaseLost { .. } | StoreError::Conflict { .. },
        )) => TurnRecovery::Done,
        Err(RunnerError::InterruptedInOtherFolder { .. }) => TurnRecovery::Foreign,
        // The agent may be configured later.
        Err(RunnerError::AgentMissing { .. }) => TurnRecovery::Done,
        Err(error) => {
            context.notify(Notice::Error(&error));
            TurnRecovery::Done
        }
    };
    (turn.turn, recovery)
}

async fn resume(
    context: &dyn ServerContext,
    tasks: &dyn TaskStore,
    turn: &UnfinishedTurn,
) -> Result<TurnRecovery, RunnerError> {
    let task = latest_attempt(tasks, &turn.user, &turn.turn).await?;
    if task.is_some_and(|task| task.is_running) {
        return Ok(TurnRecovery::Done);
    }
    let opened = context.runner().open(turn.session.clone()).await?;
    if !opened.is_interrupted() {
        return Ok(TurnRecovery::Parked);
    }
    let (updates, _) = turn_updates();
    let mut conversation = opened.without_waiting();
    let end = conversation.resume(&CancelToken::new(), &updates).await?;
    let outcome = match &end {
        Some(TurnEnd::Finished(report)) => report.outcome.name(),
        Some(TurnEnd::Waiting(_)) => "waits for an answer: lango approvals",
        None => return Ok(TurnRecovery::Done),
    };
    let session = &turn.session;
    context.notify(Notice::TurnResumed { session, outcome });
    context.turn_ended(&turn.user, session);
    Ok(TurnRecovery::Done)
}
