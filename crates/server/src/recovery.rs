//! The loop that resumes interrupted work while the server runs: tasks of callers, and turns of sessions. A process that dies
//! releases its sessions, at once on one machine, when the lease expires on many; the next scan finds what it left.
//!
//! A turn that is a running task is resumed as a task, so that its caller hears how it goes.

use crate::approval_expiry::ApprovalExpiry;
use crate::attempts::latest_attempt;
use crate::context::{Notice, ServerContext};
use lango_a2a::server::AgentServer;
use lango_core::{Clock, SessionId, StoreError, TaskStore, TurnId, UnfinishedTurn, UserId};
use lango_engine::{RunnerError, Stop, TurnEnd};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Shortest interval between two scans for turns. Tasks are scanned more often, whenever one of them is over.
const TURN_SCAN_INTERVAL: Duration = Duration::from_secs(2);

/// Turns that are resumed at a time, and that are read at a time.
const MAX_RESUMING: usize = 256;
const PAGE: usize = 64;

/// Turns to skip that are remembered, so that not every scan replays them.
const MAX_SKIPPED: usize = 10_000;

/// The recovery loop of one server.
pub struct Recovery {
    server: AgentServer,
    context: Arc<dyn ServerContext>,
    tasks: Arc<dyn TaskStore>,
    /// The users whose turns are resumed here.
    users: Vec<UserId>,
    resuming: JoinSet<(TurnId, TurnRecovery)>,
    active: HashSet<TurnId>,
    parked: HashSet<TurnId>,
    /// Turns that were started in another folder.
    foreign: HashSet<TurnId>,
    expiry: Option<ApprovalExpiry>,
}

/// The result of recovering one turn.
enum TurnRecovery {
    /// It waits for an answer and was not interrupted.
    Parked,
    /// It was started in another folder, and is resumed there.
    Foreign,
    /// Anything else: if it has no outcome, the next scan finds it again.
    Done,
}

impl Recovery {
    /// Creates the loop for a server, its tasks, and the turns of these users.
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

    /// Scans until the server stops, then finishes what was resumed. Never returns; dropping it leaves unfinished turns in
    /// the log as they are.
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
                        self.note(turn, &recovery);
                    }
                    is_open = &mut due => break is_open,
                }
            };
            if !is_open {
                break;
            }
            // What could not be read now is read by the next scan.
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

    /// Starts to resume every interrupted turn that no process is at work on.
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

    fn note(&mut self, turn: TurnId, recovery: &TurnRecovery) {
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
        // Another process is at work on it, or was.
        Err(RunnerError::Store(
            StoreError::Busy { .. } | StoreError::Lost { .. } | StoreError::Conflict { .. },
        )) => TurnRecovery::Done,
        Err(RunnerError::BegunElsewhere { .. }) => TurnRecovery::Foreign,
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
    if !opened.is_cut_off() {
        return Ok(TurnRecovery::Parked);
    }
    let (shown, _) = mpsc::channel(1);
    let mut conversation = opened.impatient();
    let end = conversation.resume(&Stop::new(), &shown).await?;
    let outcome = match &end {
        Some(TurnEnd::Finished(report)) => report.outcome.word(),
        Some(TurnEnd::Waiting(_)) => "waits for an answer: lango approvals",
        None => return Ok(TurnRecovery::Done),
    };
    let session = &turn.session;
    context.notify(Notice::TurnResumed { session, outcome });
    context.turn_ended(&turn.user, session);
    Ok(TurnRecovery::Done)
}
