//! Tasks from outside: kept whole, found by user, conversation, state and time.

use super::PostgresStore;
use super::failure::Failure;
use super::keeper::TASKS;
use super::rows::{bound, limit, text, unsigned};
use super::statements::tasks::{BY_CONTEXT, BY_STATE, BY_USER, COUNT, GET, PUT, RUNNING};
use super::text::Words;
use lango_core::{
    BoxFuture, StoreError, TaskPage, TaskQuery, TaskRecord, TaskStore, Timestamp, UserId,
};
use tokio_postgres::Row;

impl TaskStore for PostgresStore {
    fn put(&self, task: TaskRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let (id, user) = (Words(&task.id), Words(task.user.as_str()));
            let (context, state) = (Words(&task.context), Words(&task.state));
            let (running, updated) = (i64::from(task.is_running), bound(task.updated.0));
            let body = Words(&task.body);
            let kept = self
                .database
                .query(
                    PUT,
                    &[&id, &user, &context, &state, &running, &updated, &body],
                )
                .await?;
            if kept.is_empty() {
                return Err(StoreError::Failed {
                    detail: format!("the task `{}` is another user's", task.id),
                });
            }
            self.leases().tell(TASKS, &task.id);
            Ok(())
        })
    }

    fn get<'a>(
        &'a self,
        user: &'a UserId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<TaskRecord>, StoreError>> {
        Box::pin(async move {
            let values = (Words(user.as_str()), Words(id));
            let rows = self.database.query(GET, &[&values.0, &values.1]).await?;
            Ok(self.values(&rows, record)?.pop())
        })
    }

    fn list<'a>(
        &'a self,
        user: &'a UserId,
        query: TaskQuery,
    ) -> BoxFuture<'a, Result<TaskPage, StoreError>> {
        Box::pin(async move {
            let user = Words(user.as_str());
            let context = query.context.as_deref().map(Words);
            let state = query.state.as_deref().map(Words);
            let since = query.since.map_or(0, |since| bound(since.0));
            let (before, id) = match &query.after {
                Some((time, id)) => (bound(time.0), Some(Words(id))),
                None => (i64::MAX, None),
            };
            let statement = match (context, state) {
                (Some(_), _) => BY_CONTEXT,
                (None, Some(_)) => BY_STATE,
                (None, None) => BY_USER,
            };
            let most = limit(query.limit);
            let rows = self
                .database
                .query(
                    statement,
                    &[&user, &context, &state, &since, &before, &id, &most],
                )
                .await?;
            let tasks = self.values(&rows, record)?;
            if !query.is_counted {
                return Ok(TaskPage { tasks, total: None });
            }
            let rows = self
                .database
                .query(COUNT, &[&user, &context, &state, &since])
                .await?;
            let total = self.values(&rows, |row| unsigned(row, 0))?.pop();
            Ok(TaskPage { tasks, total })
        })
    }

    fn running(&self, most: usize) -> BoxFuture<'_, Result<Vec<TaskRecord>, StoreError>> {
        Box::pin(async move {
            let rows = self.database.query(RUNNING, &[&limit(most)]).await?;
            self.values(&rows, record)
        })
    }
}

fn record(row: &Row) -> Result<TaskRecord, Failure> {
    Ok(TaskRecord {
        id: text(row, 0)?,
        user: UserId::new(text(row, 1)?),
        context: text(row, 2)?,
        state: text(row, 3)?,
        is_running: row.try_get::<_, i64>(4)? != 0,
        updated: Timestamp(unsigned(row, 5)?),
        body: text(row, 6)?,
    })
}
