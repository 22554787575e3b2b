//! Looking for tasks that are at work by the store and that nobody is at work on, at the start and every few seconds from then
//! on: another copy may have died. Many are looked through page by page, of each conversation the oldest first, and
//! taken up a few at a time.

use super::keeper::Command;
use super::refusal::Kind;
use super::shared::Shared;
use futures_util::StreamExt as _;
use lango_core::{RunningTask, StoreError, Text, Timestamp, UserId};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio::time::Instant;

/// What [`AgentServer::recover`](super::AgentServer::recover) found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// How many tasks are at work again.
    pub taken_up: usize,
    /// How many tasks have ended or wait now.
    pub seen_to: usize,
    /// How many were left as they are: somebody is at work on them or on another task of their conversation, there is no
    /// room now, or they could not be looked at. They are looked at again.
    pub left: usize,
    /// The ids of those whose record cannot be read, in order. They are left as they are; look at the database.
    pub damaged: Vec<String>,
}

/// What became of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recovery {
    TakenUp,
    SeenTo,
    Left,
    NoRoom,
}

/// Which tasks to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// All.
    All,
    /// Those that nobody has written since they were seen before: whoever is at work on the others is alive.
    Quiet,
}

/// What is known from one look to the next.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Where the next look goes on; at the beginning without it.
    after: Option<(Timestamp, Text)>,
    /// The tasks that were seen, in this round through all of them and in the one before.
    seen: HashMap<Text, Sight>,
    seen_before: HashMap<Text, Sight>,
    /// Those that cannot be read.
    damaged: HashSet<Text>,
}

/// A writing of a task, and since when it has been the last.
#[derive(Debug, Clone, Copy)]
struct Sight {
    revision: u64,
    since: Instant,
}

impl Known {
    /// Takes note of a task, and says since when nobody has written it, as far as was seen here.
    fn note(&mut self, task: &RunningTask) -> Instant {
        let known = self.seen_before.get(&task.id);
        let known = known.or_else(|| self.seen.get(&task.id)).copied();
        let sight = known.filter(|sight| sight.revision == task.revision);
        let sight = sight.unwrap_or_else(|| Sight {
            revision: task.revision,
            since: Instant::now(),
        });
        self.seen.insert(Text::clone(&task.id), sight);
        sight.since
    }

    fn begin_again(&mut self) {
        self.after = None;
        self.seen_before = std::mem::take(&mut self.seen);
    }
}

/// How many tasks are read at a time, and at most at one look.
const PAGE: usize = 256;
const PAGES: usize = 16;

/// How many are looked at more closely at one look, and at a time.
const LOOKS: usize = 256;
const AT_A_TIME: usize = 8;

/// How many damaged ones are remembered.
const DAMAGED: usize = 1024;

impl Shared {
    /// Looks for tasks that nobody is at work on, and takes them up.
    pub async fn look_for_lost(self: &Arc<Self>, which: Which) -> Result<Recovered, StoreError> {
        let mut recovered = Recovered::default();
        if self.recovering.available_permits() == 0 {
            return Ok(recovered);
        }
        let lost = self.candidates(which, &mut recovered).await?;
        if lost.is_empty() {
            return Ok(recovered);
        }
        let to_cancel = self.tasks.to_cancel(None, PAGE).await?;
        let to_cancel: HashSet<Text> = to_cancel.into_iter().collect();
        let mut looks = futures_util::stream::iter(lost)
            .map(|task| {
                let is_to_be_cancelled = to_cancel.contains(&task.id);
                async move { (self.see_to(&task, is_to_be_cancelled).await, task.id) }
            })
            .buffered(AT_A_TIME);
        while let Some((seen, id)) = looks.next().await {
            match seen {
                Ok(Recovery::TakenUp) => recovered.taken_up += 1,
                Ok(Recovery::SeenTo) => recovered.seen_to += 1,
                Ok(Recovery::Left | Recovery::NoRoom) => recovered.left += 1,
                Err(()) => recovered.damaged.push(id.to_string()),
            }
        }
        drop(looks);
        let mut known = self.known();
        let room = DAMAGED.saturating_sub(known.damaged.len());
        let damaged = recovered.damaged.iter().take(room);
        let damaged = damaged.map(|id| Text::from(id.as_str()));
        known.damaged.extend(damaged);
        recovered.damaged.sort();
        Ok(recovered)
    }

    /// The tasks to look at: of each conversation the oldest, if nobody is at work in it here.
    async fn candidates(
        &self,
        which: Which,
        recovered: &mut Recovered,
    ) -> Result<Vec<RunningTask>, StoreError> {
        let at_work = self.at_work();
        let busy = at_work.iter();
        let busy = busy.map(|((user, _), context)| (user.clone(), Text::from(context.as_str())));
        let mut busy: HashSet<(UserId, Text)> = busy.collect();
        let here: HashSet<&str> = at_work.keys().map(|(_, id)| id.as_str()).collect();
        let quiet_for = self.settings.limits.recover_every / 2;
        let mut lost = Vec::new();
        for _ in 0..PAGES {
            let after = self.known().after.clone();
            let page = self.tasks.running(after, PAGE).await?;
            let is_last = page.len() < PAGE;
            let mut known = self.known();
            for task in page {
                if lost.len() == LOOKS {
                    return Ok(lost);
                }
                known.after = Some((task.updated, Text::clone(&task.id)));
                let is_quiet = known.note(&task).elapsed() >= quiet_for;
                let is_passed_over = here.contains(&*task.id)
                    || (which == Which::Quiet && known.damaged.contains(&task.id));
                if is_passed_over {
                    continue;
                }
                let is_first = busy.insert((task.user.clone(), Text::clone(&task.context)));
                if is_first && (is_quiet || which == Which::All) {
                    lost.push(task);
                } else {
                    recovered.left += 1;
                }
            }
            if is_last {
                known.begin_again();
                break;
            }
        }
        Ok(lost)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn see_to(
        self: &Arc<Self>,
        task: &RunningTask,
        is_to_be_cancelled: bool,
    ) -> Result<Recovery, ()> {
        if !self.is_open() || self.recovering.available_permits() == 0 {
            return Ok(Recovery::NoRoom);
        }
        if !self.behind.is_free(&task.user, &task.context).await {
            return Ok(Recovery::Left);
        }
        let key = (task.user.clone(), task.id.to_string());
        let recover = |reply| Command::Recover {
            is_to_be_cancelled,
            reply,
        };
        match self.ask(&key, recover).await {
            Ok(recovery) => Ok(recovery),
            Err(refusal) if refusal.kind == Kind::Damaged => Err(()),
            Err(_) => Ok(Recovery::Left),
        }
    }
}
