//! One scan for interrupted tasks: tasks that are stored as running, but that no replica runs. A scan reads them page
//! by page, takes the oldest task of each conversation, and resumes a few at a time. The caller decides when to scan.

use super::actor::Reply;
use super::refusal::RefusalKind;
use super::shared::Shared;
use super::task::{Recovery, Request};
use futures_util::StreamExt as _;
use lango_core::{RunningTask, StoreError, Text, Timestamp, UserId};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio::time::Instant;

/// The result of a [scan](super::AgentServer::recover).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecoveryReport {
    /// The number of tasks that were resumed.
    pub resumed: usize,
    /// The number of tasks that turned out to have ended or to wait for input.
    pub settled: usize,
    /// The number of tasks left unchanged: another process runs them or another task of their conversation, there is no
    /// free slot, or they cannot be loaded now. The next scan tries them again.
    pub skipped: usize,
    /// The sorted ids of tasks whose stored record cannot be parsed. They stay unchanged; an operator must inspect the
    /// database.
    pub damaged: Vec<String>,
}

/// The tasks that a scan includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    All,
    /// Tasks that no replica has written for a while. A recent write means that the replica is alive.
    Stale,
}

/// State carried from one scan to the next.
#[derive(Debug, Default)]
pub(super) struct ScanState {
    /// Cursor of the next scan; `None` starts at the oldest task.
    after: Option<(Timestamp, Text)>,
    /// Revisions seen in this pass over all tasks, and in the previous one.
    seen: HashMap<Text, SeenRevision>,
    seen_before: HashMap<Text, SeenRevision>,
    damaged: HashSet<Text>,
}

/// The newest known revision of a task, and when it was first seen.
#[derive(Debug, Clone, Copy)]
struct SeenRevision {
    revision: u64,
    since: Instant,
}

impl ScanState {
    /// Records the revision of a task, and returns when this server first saw that revision.
    fn record(&mut self, task: &RunningTask) -> Instant {
        let known = self.seen_before.get(&task.id);
        let known = known.or_else(|| self.seen.get(&task.id)).copied();
        let known = known.filter(|seen| seen.revision == task.revision);
        let seen = known.unwrap_or_else(|| SeenRevision {
            revision: task.revision,
            since: Instant::now(),
        });
        self.seen.insert(Text::clone(&task.id), seen);
        seen.since
    }

    fn start_next_pass(&mut self) {
        self.after = None;
        self.seen_before = std::mem::take(&mut self.seen);
    }
}

/// How many tasks to read at a time, and how many pages of them in one scan.
const PAGE: usize = 256;
const PAGES: usize = 16;

/// How many tasks to recover in one scan, and how many of them concurrently.
const MAX_RECOVERED: usize = 256;
const CONCURRENCY: usize = 8;

/// How many damaged tasks to remember.
const MAX_DAMAGED: usize = 1024;

impl Shared {
    /// Scans for interrupted tasks and resumes them.
    pub(super) async fn recover(
        self: &Arc<Self>,
        scope: Scope,
    ) -> Result<RecoveryReport, StoreError> {
        let mut recovered = RecoveryReport::default();
        if self.recovering.available_permits() == 0 {
            return Ok(recovered);
        }
        let candidates = self.candidates(scope, &mut recovered).await?;
        if candidates.is_empty() {
            return Ok(recovered);
        }
        let to_cancel = self.tasks.cancel_requests(None, PAGE).await?;
        let to_cancel: HashSet<Text> = to_cancel.into_iter().collect();
        let mut results = futures_util::stream::iter(candidates)
            .map(|task| {
                let is_cancel_requested = to_cancel.contains(&task.id);
                async move { (self.recover_task(&task, is_cancel_requested).await, task.id) }
            })
            .buffered(CONCURRENCY);
        while let Some((result, id)) = results.next().await {
            match result {
                Ok(Recovery::Resumed) => recovered.resumed += 1,
                Ok(Recovery::Settled) => recovered.settled += 1,
                Ok(Recovery::Skipped | Recovery::NoSlot) => recovered.skipped += 1,
                Err(DamagedRecord) => recovered.damaged.push(id.to_string()),
            }
        }
        drop(results);
        let mut scan = self.scan();
        let room = MAX_DAMAGED.saturating_sub(scan.damaged.len());
        let damaged = recovered.damaged.iter().take(room);
        let damaged = damaged.map(|id| Text::from(id.as_str()));
        scan.damaged.extend(damaged);
        recovered.damaged.sort();
        Ok(recovered)
    }

    /// Returns the tasks to recover: the oldest one of each conversation that has no run here.
    async fn candidates(
        &self,
        scope: Scope,
        recovered: &mut RecoveryReport,
    ) -> Result<Vec<RunningTask>, StoreError> {
        let active = self.active_tasks();
        let busy = active.iter();
        let busy = busy.map(|((user, _), context)| (user.clone(), Text::from(context.as_str())));
        let mut busy: HashSet<(UserId, Text)> = busy.collect();
        let here: HashSet<&str> = active.keys().map(|(_, id)| id.as_str()).collect();
        let stale_after = self.settings.limits.recover_every / 2;
        let mut candidates = Vec::new();
        for _ in 0..PAGES {
            let after = self.scan().after.clone();
            let page = self.tasks.running(after, PAGE).await?;
            let is_last = page.len() < PAGE;
            let mut scan = self.scan();
            for task in page {
                if candidates.len() == MAX_RECOVERED {
                    return Ok(candidates);
                }
                scan.after = Some((task.updated, Text::clone(&task.id)));
                let is_stale = scan.record(&task).elapsed() >= stale_after;
                let is_excluded = here.contains(&*task.id)
                    || (scope == Scope::Stale && scan.damaged.contains(&task.id));
                if is_excluded {
                    continue;
                }
                let is_first = busy.insert((task.user.clone(), Text::clone(&task.context)));
                if is_first && (is_stale || scope == Scope::All) {
                    candidates.push(task);
                } else {
                    recovered.skipped += 1;
                }
            }
            if is_last {
                scan.start_next_pass();
                break;
            }
        }
        Ok(candidates)
    }

    fn scan(&self) -> MutexGuard<'_, ScanState> {
        self.scan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn recover_task(
        self: &Arc<Self>,
        task: &RunningTask,
        is_cancel_requested: bool,
    ) -> Result<Recovery, DamagedRecord> {
        if !self.is_open() || self.recovering.available_permits() == 0 {
            return Ok(Recovery::NoSlot);
        }
        if !self.backend.is_idle(&task.user, &task.context).await {
            return Ok(Recovery::Skipped);
        }
        let key = (task.user.clone(), task.id.to_string());
        let request = Request::Recover {
            is_cancel_requested,
        };
        match self.ask(&key, request, Reply::Recovery).await {
            Ok(recovery) => Ok(recovery),
            Err(refusal) if refusal.kind == RefusalKind::Damaged => Err(DamagedRecord),
            Err(_) => Ok(Recovery::Skipped),
        }
    }
}

/// The stored record of a task cannot be parsed.
struct DamagedRecord;
