//! Tasks in memory, for servers that are gone when the test is. It counts what is written, and can be told to fail.

use lango_core::{
    BoxFuture, Clock, StoreError, TaskPage, TaskQuery, TaskRecord, TaskStore, Timestamp, UserId,
};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Default)]
pub struct MemoryTasks {
    tasks: Mutex<HashMap<String, TaskRecord>>,
    pub writes: AtomicUsize,
    /// How often a whole list was counted.
    pub counts: AtomicUsize,
    pub fails: AtomicBool,
    /// How often it did.
    pub failures: AtomicUsize,
}

impl MemoryTasks {
    fn check(&self) -> Result<(), StoreError> {
        if self.fails.load(Ordering::SeqCst) {
            self.failures.fetch_add(1, Ordering::SeqCst);
            let detail = "secret detail of the disk".to_owned();
            return Err(StoreError::Failed { detail });
        }
        Ok(())
    }
}

impl TaskStore for MemoryTasks {
    fn put<'a>(&'a self, task: TaskRecord) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.check()?;
            let mut tasks = self.tasks.lock().unwrap();
            let known = tasks.get(&*task.id);
            if known.is_some_and(|known| known.user != task.user) {
                let detail = format!("task `{}` is another user's", task.id);
                return Err(StoreError::Failed { detail });
            }
            self.writes.fetch_add(1, Ordering::SeqCst);
            tasks.insert(task.id.to_string(), task);
            Ok(())
        })
    }

    fn get<'a>(
        &'a self,
        user: &'a UserId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<TaskRecord>, StoreError>> {
        Box::pin(async move {
            self.check()?;
            let tasks = self.tasks.lock().unwrap();
            Ok(tasks.get(id).filter(|task| task.user == *user).cloned())
        })
    }

    fn list<'a>(
        &'a self,
        user: &'a UserId,
        query: TaskQuery,
    ) -> BoxFuture<'a, Result<TaskPage, StoreError>> {
        Box::pin(async move {
            self.check()?;
            let tasks = self.tasks.lock().unwrap();
            let mut fitting: Vec<&TaskRecord> = tasks
                .values()
                .filter(|task| {
                    task.user == *user
                        && query.context.as_ref().is_none_or(|it| *it == task.context)
                        && query.state.as_ref().is_none_or(|it| *it == task.state)
                        && query.since.is_none_or(|since| task.updated >= since)
                })
                .collect();
            fitting.sort_by_key(|task| Reverse((task.updated, task.id.clone())));
            let total = query.is_counted.then_some(fitting.len() as u64);
            self.counts
                .fetch_add(usize::from(query.is_counted), Ordering::SeqCst);
            let tasks = fitting
                .into_iter()
                .filter(|task| {
                    let place = (task.updated, task.id.clone());
                    query.after.as_ref().is_none_or(|after| place < *after)
                })
                .take(query.limit)
                .cloned()
                .collect();
            Ok(TaskPage { tasks, total })
        })
    }

    fn running<'a>(&'a self, limit: usize) -> BoxFuture<'a, Result<Vec<TaskRecord>, StoreError>> {
        Box::pin(async move {
            self.check()?;
            let tasks = self.tasks.lock().unwrap();
            let running = tasks.values().filter(|task| task.is_running);
            Ok(running.take(limit).cloned().collect())
        })
    }
}

/// The time of day.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Timestamp(since.map_or(0, |since| since.as_millis() as u64))
    }
}
