//! Stores a new task. Its run can do so in one transaction with the first events of its turn. If the run reports
//! something before that, or takes too long, the task is stored alone.

use lango_core::{StoreError, TaskInsertOutcome, TaskRecord, TaskStore};
use std::sync::Arc;
use tokio::sync::{Notify, OnceCell};

/// A task that may not be stored yet.
pub(super) struct TaskOpening {
    task: TaskRecord,
    /// The idempotency key of its message.
    key: String,
    tasks: Arc<dyn TaskStore>,
    opened: OnceCell<TaskInsertOutcome>,
    stored: Notify,
}

/// The result of storing a new task in one transaction with other data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedTaskOpening {
    /// Both were stored, or neither if the message had already opened another task.
    Joint(TaskInsertOutcome),
    /// The task had already been stored alone, or not at all if the message had already opened another task. The other
    /// data was not stored.
    Separate(TaskInsertOutcome),
}

impl TaskOpening {
    pub(super) fn new(task: TaskRecord, key: String, tasks: Arc<dyn TaskStore>) -> Self {
        Self {
            task,
            key,
            tasks,
            opened: OnceCell::new(),
            stored: Notify::new(),
        }
    }

    /// Waits until this replica has stored the task. Supports one waiter.
    pub(super) async fn stored(&self) {
        self.stored.notified().await;
    }

    /// Stores the task in a separate transaction, unless it is already stored. If a joint write is in progress, waits
    /// for it.
    pub(super) async fn ensure_stored(&self) -> Result<TaskInsertOutcome, StoreError> {
        let insert = || self.tasks.insert(self.task.clone(), &self.key);
        let opened = self.opened.get_or_try_init(insert).await?;
        self.stored.notify_one();
        Ok(opened.clone())
    }

    /// Returns whether the message already opened another task. If so, also wakes the caller of [`Self::stored`].
    pub(super) async fn is_duplicate(&self) -> Result<bool, StoreError> {
        let opened = self.tasks.opened_by(&self.task.user, &self.key).await?;
        if opened.is_none_or(|id| id == self.task.id) {
            return Ok(false);
        }
        // The other task may have been deleted since then. In that case this one is stored.
        Ok(matches!(
            self.ensure_stored().await?,
            TaskInsertOutcome::Known(_)
        ))
    }

    /// Stores the task in the transaction of `store`, unless it is already stored.
    pub(super) async fn store_with<F>(&self, store: F) -> Result<SharedTaskOpening, StoreError>
    where
        F: AsyncFnOnce(TaskRecord, &str) -> Result<TaskInsertOutcome, StoreError>,
    {
        let mut is_joint = false;
        let store = async || {
            is_joint = true;
            store(self.task.clone(), &self.key).await
        };
        let opened = self.opened.get_or_try_init(store).await?.clone();
        self.stored.notify_one();
        Ok(if is_joint {
            SharedTaskOpening::Joint(opened)
        } else {
            SharedTaskOpening::Separate(opened)
        })
    }
}
