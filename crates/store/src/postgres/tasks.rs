//! Tasks from outside: kept whole, found by user, conversation, state and time.

use super::PostgresStore;
use super::failure::Failure;
use super::keeper::TASKS;
use super::rows::{bound, limit, text, unsigned};
use super::statements::tasks::{
    ASK_TO_CANCEL, BY_CONTEXT, BY_STATE, BY_USER, COUNT, GET, OPEN, OPENED_BY, OWNER, PUT, RUNNING,
    TO_CANCEL,
};
use super::text::Words;
use lango_core::{
    BoxFuture, Opened, Put, RunningTask, StoreError, TaskPage, TaskQuery, TaskRecord, TaskStore,
    Text, Timestamp, UserId,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

impl TaskStore for PostgresStore {
    fn open<'a>(
        &'a self,
        task: TaskRecord,
        message: &'a str,
    ) -> BoxFuture<'a, Result<Opened, StoreError>> {
        Box::pin(async move {
            let message = Words(message);
            let kept = self.write(OPEN, &task, Some(&message)).await?;
            if !kept.is_empty() {
                return Ok(Opened::New);
            }
            let user = Words(task.user.as_str());
            let rows = self.database.query(OPENED_BY, &[&user, &message]).await?;
            let known = self.values(&rows, |row| text(row, 0))?.pop();
            match known {
                // A try of ours whose answer was lost on the way.
                Some(id) if id == task.id => Ok(Opened::New),
                Some(id) => Ok(Opened::Known(id)),
                None => Err(StoreError::Failed {
                    detail: "the task that this message opened was removed just now".to_owned(),
                }),
            }
        })
    }

    fn put(&self, task: TaskRecord) -> BoxFuture<'_, Result<Put, StoreError>> {
        Box::pin(async move {
            let kept = self.write(PUT, &task, None).await?;
            if !kept.is_empty() {
                self.leases().tell(TASKS, &task.id);
                return Ok(Put::Kept);
            }
            let rows = self.database.query(OWNER, &[&Words(&task.id)]).await?;
            match self.values(&rows, |row| text(row, 0))?.pop() {
                Some(owner) if *owner != *task.user.as_str() => Err(StoreError::Failed {
                    detail: format!("the task `{}` is another user's", task.id),
                }),
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

    fn running(
        &self,
        after: Option<(Timestamp, Text)>,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<RunningTask>, StoreError>> {
        Box::pin(async move {
            let (updated, id) = match &after {
                Some((time, id)) => (bound(time.0), Words(id)),
                None => (-1, Words("")),
            };
            let values: [&(dyn ToSql + Sync); 3] = [&updated, &id, &limit(most)];
            let rows = self.database.query(RUNNING, &values).await?;
            self.values(&rows, running)
        })
    }

    fn ask_to_cancel<'a>(
        &'a self,
        user: &'a UserId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let values = (Words(user.as_str()), Words(id));
            let values: [&(dyn ToSql + Sync); 2] = [&values.0, &values.1];
            let asked = self.database.query(ASK_TO_CANCEL, &values).await?;
            self.leases().tell(TASKS, id);
            Ok(!asked.is_empty())
        })
    }

    fn to_cancel<'a>(
        &'a self,
        after: Option<&'a str>,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Text>, StoreError>> {
        Box::pin(async move {
            let after = Words(after.unwrap_or_default());
            let values: [&(dyn ToSql + Sync); 2] = [&after, &limit(most)];
            let rows = self.database.query(TO_CANCEL, &values).await?;
            self.values(&rows, |row| text(row, 0))
        })
    }
}

impl PostgresStore {
    /// Writes a task, with the mark of its message if it is new. No row comes back if it was not written.
    async fn write(
        &self,
        statement: &'static str,
        task: &TaskRecord,
        message: Option<&Words<'_>>,
    ) -> Result<Vec<Row>, StoreError> {
        let (id, user) = (Words(&task.id), Words(task.user.as_str()));
        let (context, state) = (Words(&task.context), Words(&task.state));
        let (running, updated) = (i64::from(task.is_running), bound(task.updated.0));
        let body = Words(&task.body);
        let (revision, attempts) = (bound(task.revision), i64::from(task.attempts));
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![
            &id, &user, &context, &state, &running, &updated, &body, &revision, &attempts,
        ];
        values.extend(message.map(|message| message as &(dyn ToSql + Sync)));
        self.database.query(statement, &values).await
    }
}

fn running(row: &Row) -> Result<RunningTask, Failure> {
    Ok(RunningTask {
        id: text(row, 0)?,
        user: UserId::new(text(row, 1)?),
        context: text(row, 2)?,
        updated: Timestamp(unsigned(row, 3)?),
        revision: unsigned(row, 4)?,
    })
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
        revision: unsigned(row, 7)?,
        attempts: u32::try_from(unsigned(row, 8)?).unwrap_or(u32::MAX),
    })
}
