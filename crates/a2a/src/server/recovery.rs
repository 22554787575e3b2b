//! One scan for interrupted tasks: tasks that must run by the store, and that no replica is at work on. Many are read page by
//! page, of each conversation the oldest first, and resumed a few at a time. When to scan is decided by the caller.

use super::actor::Reply;
use super::refusal::Kind;
use super::shared::Shared;
use super::task::{Recovery, Request};
use futures_util::StreamExt as _;
use lango_core::{RunningTask, StoreError, Text, Timestamp, UserId};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio::time::Instant;

/// The result of a [scan](super::AgentServer::recover).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Tasks that run again.
    pub resumed: usize,
    /// Tasks that have ended or wait now.
    pub settled: usize,
    /// Tasks that were left as they are: another process is at work on them or on another task of their conversation, there
    /// is no slot, or they cannot be read now. The next scan looks at them again.
    pub skipped: usize,
    /// The ids of tasks whose record cannot be read, in order. They stay as they are; look at the database.
    pub damaged: Vec<String>,
}

/// Which tasks a scan looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    All,
    /// Tasks that no replica has written for a while: a replica that writes is alive.
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
    /// Notes a task, and returns since when no replica has written it, as far as was seen here.
    fn note(&mut self, task: &RunningTask) -> Instant {
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

/// Tasks that are read at a time, and pages that are read in one scan.
const PAGE: usize = 256;
const PAGES: usize = 16;

/// Tasks that are recovered in one scan, and at a time.
const MAX_RECOVERED: usize = 256;
const CONCURRENCY: usize = 8;

/// Damaged tasks that are remembered.
const MAX_DAMAGED: usize = 1024;

impl Shared {
    /// Scans for interrupted tasks and resumes them.
    pub async fn recover(self: &Arc<Self>, scope: Scope) -> Result<Recovered, StoreError> {
        let mut recovered = Recovered::default();
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
                Err(Damaged) => recovered.damaged.push(id.to_string()),
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

    /// Returns the tasks to recover: of each conversation the oldest, if nothing of it runs here.
    async fn candidates(
        &self,
        scope: Scope,
        recovered: &mut Recovered,
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
                let is_stale = scan.note(&task).elapsed() >= stale_after;
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
    ) -> Result<Recovery, Damaged> {
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
            Err(refusal) if refusal.kind == Kind::Damaged => Err(Damaged),
            Err(_) => Ok(Recovery::Skipped),
        }
    }
}

/// The record of a task cannot be read.
struct Damaged;
