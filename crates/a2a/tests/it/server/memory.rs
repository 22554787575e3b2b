//! A task store in memory. It counts writes, and can be made to fail.

use lango_core::{
    BoxFuture, Clock, RunningTask, StoreError, TaskInsertOutcome, TaskPage, TaskPutOutcome,
    TaskQuery, TaskRecord, TaskStore, Text, Timestamp, UserId,
};
use lango_store::Store;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Default)]
pub(crate) struct MemoryTasks {
    tasks: Store,
    pub writes: AtomicUsize,
    /// How often the total size of a list was counted.
    pub counts: AtomicUsize,
    pub fails: AtomicBool,
    /// How many calls have failed.
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
    fn insert<'a>(
        &'a self,
        task: TaskRecord,
        message: &'a str,
    ) -> BoxFuture<'a, Result<TaskInsertOutcome, StoreError>> {
        Box::pin(async move {
            self.check()?;
            let opened = self.tasks.insert(task, message).await?;
            self.writes.fetch_add(1, Ordering::SeqCst);
            Ok(opened)
        })
    }

    fn opened_by<'a>(
        &'a self,
        user: &'a UserId,
        message: &'a str,
    ) -> BoxFuture<'a, Result<Option<Text>, StoreError>> {
        Box::pin(async move {
            self.check()?;
            self.tasks.opened_by(user, message).await
        })
    }

    fn put<'a>(&'a self, task: TaskRecord) -> BoxFuture<'a, Result<TaskPutOutcome, StoreError>> {
        Box::pin(async move {
            self.check()?;
            let put = self.tasks.put(task).await?;
            self.writes.fetch_add(1, Ordering::SeqCst);
            Ok(put)
        })
    }

    fn get<'a>(
        &'a self,
        user: &'a UserId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<TaskRecord>, StoreError>> {
        Box::pin(async move {
            self.check()?;
            self.tasks.get(user, id).await
        })
    }

    fn list<'a>(
        &'a self,
        user: &'a UserId,
        query: TaskQuery,
    ) -> BoxFuture<'a, Result<TaskPage, StoreError>> {
        Box::pin(async move {
            self.check()?;
            let counts = usize::from(query.is_counted);
            self.counts.fetch_add(counts, Ordering::SeqCst);
            self.tasks.list(user, query).await
        })
    }

    fn running<'a>(
        &'a self,
        after: Option<(Timestamp, Text)>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunningTask>, StoreError>> {
        Box::pin(async move {
            self.check()?;
            self.tasks.running(after, limit).await
        })
    }

    fn request_cancel<'a>(
        &'a self,
        user: &'a UserId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            self.check()?;
            self.tasks.request_cancel(user, id).await
        })
    }

    fn cancel_requests<'a>(
        &'a self,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Text>, StoreError>> {
        Box::pin(async move {
            self.check()?;
            self.tasks.cancel_requests(after, limit).await
        })
    }
}

/// The clock of the system.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Timestamp(since.map_or(0, |since| since.as_millis() as u64))
    }
}
