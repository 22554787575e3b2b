//! Tasks from outside that end with the process.

use super::MemoryStore;
use lango_core::{BoxFuture, StoreError, TaskPage, TaskQuery, TaskRecord, TaskStore, Text, UserId};
use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

impl MemoryStore {
    fn tasks(&self) -> MutexGuard<'_, BTreeMap<Text, TaskRecord>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskStore for MemoryStore {
    fn put(&self, task: TaskRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let mut tasks = self.tasks();
            match tasks.get(&task.id) {
                Some(other) if other.user != task.user => Err(StoreError::Failed {
                    detail: format!("the task `{}` is another user's", task.id),
                }),
                _ => {
                    tasks.insert(Text::clone(&task.id), task);
                    Ok(())
                }
            }
        })
    }

    fn get<'a>(
        &'a self,
        user: &'a UserId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<TaskRecord>, StoreError>> {
        Box::pin(async move {
            let found = self.tasks().get(id).cloned();
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
            let mut tasks: Vec<TaskRecord> = self.tasks().values().filter(fits).cloned().collect();
            let total = query.is_counted.then_some(tasks.len() as u64);
            if let Some((updated, id)) = &query.after {
                tasks.retain(|task| (task.updated, &task.id) < (*updated, id));
            }
            tasks.sort_by(|a, b| (b.updated, &b.id).cmp(&(a.updated, &a.id)));
            tasks.truncate(query.limit);
            Ok(TaskPage { tasks, total })
        })
    }

    fn running(&self, limit: usize) -> BoxFuture<'_, Result<Vec<TaskRecord>, StoreError>> {
        Box::pin(async move {
            let tasks = self.tasks();
            let running = tasks.values().filter(|task| task.is_running);
            let mut running: Vec<TaskRecord> = running.cloned().collect();
            running.sort_by(|a, b| (a.updated, &a.id).cmp(&(b.updated, &b.id)));
            running.truncate(limit);
            Ok(running)
        })
    }
}
