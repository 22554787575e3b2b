//! Tasks from outside: kept whole, found by user, conversation, state and time.

use super::PostgresStore;
use super::database::Values;
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

/// How often a new task is tried to be kept.
const OPENINGS: usize = 3;

impl TaskStore for PostgresStore {
    fn keep_new<'a>(
        &'a self,
        task: TaskRecord,
        message: &'a str,
    ) -> BoxFuture<'a, Result<Opened, StoreError>> {
        Box::pin(async move {
            let columns = Columns::of(&task);
            let mut values = columns.values();
            let message = Words(message);
            values.push(&message);
            for _ in 0..OPENINGS {
                if !self.database.query(OPEN, &values).await?.is_empty() {
                    self.tell(TASKS, &task.id);
                    return Ok(Opened::New);
                }
                let owner = Words(task.user.as_str());
                let rows = self.database.query(OPENED_BY, &[&owner, &message]).await?;
                match self.values(&rows, |row| text(row, 0))?.pop() {
                    // An earlier try was carried out if it is this very one that is known.
                    Some(known) if known == task.id => {
                        self.tell(TASKS, &task.id);
                        return Ok(Opened::New);
                    }
                    Some(known) => return Ok(Opened::Known(known)),
                    // The one that was in the way was deleted in between.
                    None => {}
                }
            }
            Err(StoreError::Failed {
                detail: format!(
                    "the task `{}` was not kept: tasks of its message come and go; send it again",
                    task.id
                ),
            })
        })
    }

    fn put(&self, task: TaskRecord) -> BoxFuture<'_, Result<Put, StoreError>> {
        Box::pin(async move {
            let columns = Columns::of(&task);
            let answer = self.database.ask(PUT, &columns.values()).await?;
            if answer.rows.is_empty() {
                let is_kept = answer.is_repeated
                    && self.get(&task.user, &task.id).await? == Some(task.clone());
                if !is_kept {
                    return self.not_put(&task).await;
                }
            }
            self.tell(TASKS, &task.id);
            Ok(Put::Kept)
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
            let (updated, id) = after.map_or((-1, "".into()), |(time, id)| (bound(time.0), id));
            let values: Values<'_> = &[&updated, &Words(&id), &limit(most)];
            let rows = self.database.query(RUNNING, values).await?;
            self.values(&rows, running)
        })
    }

    fn ask_to_cancel<'a>(
        &'a self,
        user: &'a UserId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let values: Values<'_> = &[&Words(user.as_str()), &Words(id)];
            let is_running = !self.database.query(ASK_TO_CANCEL, values).await?.is_empty();
            if is_running {
                self.tell(TASKS, id);
            }
            Ok(is_running)
        })
    }

    fn to_cancel<'a>(
        &'a self,
        after: Option<&'a str>,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Text>, StoreError>> {
        Box::pin(async move {
            let values: Values<'_> = &[&Words(after.unwrap_or_default()), &limit(most)];
            let rows = self.database.query(TO_CANCEL, values).await?;
            self.values(&rows, |row| text(row, 0))
        })
    }
}

impl PostgresStore {
    /// Why a task was not kept.
    async fn not_put(&self, task: &TaskRecord) -> Result<Put, StoreError> {
        let rows = self.database.query(OWNER, &[&Words(&task.id)]).await?;
        let owner = self.values(&rows, |row| text(row, 0))?.pop();
        match owner {
            Some(owner) if *owner != *task.user.as_str() => Err(StoreError::Failed {
                detail: format!("the task `{}` is another user's", task.id),
            }),
            _ => Ok(Put::Overtaken),
        }
    }
}

/// A task as its columns take it.
struct Columns<'a> {
    texts: [Words<'a>; 5],
    running: i64,
    updated: i64,
    revision: i64,
    attempts: i64,
}

impl<'a> Columns<'a> {
    fn of(task: &'a TaskRecord) -> Self {
        let texts = [
            &*task.id,
            task.user.as_str(),
            &*task.context,
            &*task.state,
            &*task.body,
        ];
        Self {
            texts: texts.map(Words),
            running: task.is_running.into(),
            updated: bound(task.updated.0),
            revision: bound(task.revision),
            attempts: task.attempts.into(),
        }
    }

    fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        let [id, user, context, state, body] = &self.texts;
        let (running, updated) = (&self.running, &self.updated);
        vec![
            id,
            user,
            context,
            state,
            running,
            updated,
            body,
            &self.revision,
            &self.attempts,
        ]
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
        revision: unsigned(row, 7)?,
        attempts: u32::try_from(unsigned(row, 8)?).unwrap_or(u32::MAX),
    })
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
