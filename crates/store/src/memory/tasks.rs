//! Tasks from outside that end with the process.

use super::MemoryStore;
use lango_core::{
    BoxFuture, Opened, Put, RunningTask, StoreError, TaskPage, TaskQuery, TaskRecord, TaskStore,
    Text, Timestamp, UserId,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{MutexGuard, PoisonError};

/// Tasks, the messages that opened them, and which are to be cancelled.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    kept: BTreeMap<Text, TaskRecord>,
    opened_by: HashMap<(UserId, String), Text>,
    to_cancel: BTreeSet<Text>,
}

impl MemoryStore {
    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskStore for MemoryStore {
    fn keep_new<'a>(
        &'a self,
        task: TaskRecord,
        message: &'a str,
    ) -> BoxFuture<'a, Result<Opened, StoreError>> {
        Box::pin(async move {
            let mut tasks = self.tasks();
            let opener = (task.user.clone(), message.to_owned());
            if let Some(known) = tasks.opened_by.get(&opener) {
                return Ok(Opened::Known(Text::clone(known)));
            }
            if tasks.kept.contains_key(&task.id) {
                return Err(StoreError::Failed {
                    detail: format!("there is a task `{}` already", task.id),
                });
            }
            tasks.opened_by.insert(opener, Text::clone(&task.id));
            tasks.kept.insert(Text::clone(&task.id), task);
            Ok(Opened::New)
        })
    }

    fn put(&self, task: TaskRecord) -> BoxFuture<'_, Result<Put, StoreError>> {
        Box::pin(async move {
            let mut tasks = self.tasks();
            match tasks.kept.get_mut(&task.id) {
                Some(other) if other.user != task.user => Err(StoreError::Failed {
                    detail: format!("the task `{}` is another user's", task.id),
                }),
                Some(kept) if kept.revision + 1 == task.revision => {
                    let (id, is_running) = (Text::clone(&task.id), task.is_running);
                    *kept = task;
                    if !is_running {
                        tasks.to_cancel.remove(&id);
                    }
                    Ok(Put::Kept)
                }
                _ => Ok(Put::Overtaken),
            }
        })
    }

    fn get<'a>(
        &'a self,
        user: &'a UserId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<TaskRecord>, StoreError>> {
        Box::pin(async move {
            let found = self.tasks().kept.get(id).cloned();
            Ok(found.filter(|task| task.user == *user))
        })
    }

    fn list<'a>(
        &'a self,
        user: &'a UserId,
        query: TaskQuery,
    ) -> BoxFuture<'a, Result<TaskPage, StoreError>> {
        Box::pin(async move {
            let fits = |task: &&TaskRecord| {
                task.user == *user
                    && query.context.as_ref().is_none_or(|it| *it == task.context)
                    && query.state.as_ref().is_none_or(|it| *it == task.state)
                    && query.since.is_none_or(|since| task.updated >= since)
            };
            let mut tasks: Vec<TaskRecord> =
                self.tasks().kept.values().filter(fits).cloned().collect();
            let total = query.is_counted.then_some(tasks.len() as u64);
            if let Some((updated, id)) = &query.after {
                tasks.retain(|task| (task.updated, &task.id) < (*updated, id));
            }
            tasks.sort_by(|a, b| (b.updated, &b.id).cmp(&(a.updated, &a.id)));
            tasks.truncate(query.limit);
            Ok(TaskPage { tasks, total })
        })
    }

    fn running(
        &self,
        after: Option<(Timestamp, Text)>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunningTask>, StoreError>> {
        Box::pin(async move {
            let tasks = self.tasks();
            let running = tasks.kept.values().filter(|task| task.is_running);
            let mut running: Vec<RunningTask> = running.map(light).collect();
            if let Some((updated, id)) = after {
                running.retain(|task| (task.updated, &task.id) > (updated, &id));
            }
            running.sort_by(|a, b| (a.updated, &a.id).cmp(&(b.updated, &b.id)));
            running.truncate(limit);
            Ok(running)
        })
    }

    fn ask_to_cancel<'a>(
        &'a self,
        user: &'a UserId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let mut tasks = self.tasks();
            let found = tasks.kept.get(id);
            let found = found.filter(|task| task.is_running && task.user == *user);
            let Some(id) = found.map(|task| Text::clone(&task.id)) else {
                return Ok(false);
            };
            tasks.to_cancel.insert(id);
            Ok(true)
        })
    }

    fn to_cancel<'a>(
        &'a self,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Text>, StoreError>> {
        Box::pin(async move {
            let after = after.map_or(Bound::Unbounded, Bound::Excluded);
            let tasks = self.tasks();
            let found = tasks.to_cancel.range::<str, _>((after, Bound::Unbounded));
            Ok(found.take(limit).cloned().collect())
        })
    }
}

fn light(task: &TaskRecord) -> RunningTask {
    RunningTask {
        id: Text::clone(&task.id),
        user: task.user.clone(),
        context: Text::clone(&task.context),
        updated: task.updated,
        revision: task.revision,
    }
}
