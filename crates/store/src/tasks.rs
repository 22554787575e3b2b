//! Stores the A2A tasks of servers, each as a whole, and finds them by user, conversation, state and time.

use crate::StoreFuture;
use crate::backend::{BackendError, Result, ToValue as _, Tx, Value, records, statements, values};
use crate::decode::failed;
use crate::postgres::renewer::TASKS;
use crate::store::Store;
use lango_core::{
    EventBatch, RunningTask, TaskInsertOutcome, TaskLog, TaskPage, TaskPutOutcome, TaskQuery,
    TaskRecord, TaskStore, Text, Timestamp, UserId,
};

/// Maximum number of attempts to insert a task.
const INSERT_ATTEMPTS: usize = 3;

impl TaskStore for Store {
    fn insert(&self, task: TaskRecord, message: &str) -> StoreFuture<'_, TaskInsertOutcome> {
        let args = (task, message.to_owned());
        Box::pin(async move {
            let id = args.0.id.clone();
            let opened = self.backend.write_autocommit(args, |tx, (task, message)| {
                Box::pin(open(tx, task, message))
            });
            let opened = opened.await?;
            if opened == TaskInsertOutcome::New {
                self.backend.notify(TASKS, &id);
            }
            Ok(opened)
        })
    }

    fn opened_by(&self, user: &UserId, message: &str) -> StoreFuture<'_, Option<Text>> {
        self.backend
            .query_opt(OPENED_BY, values![user, message], |row| row.get(0))
    }

    fn put(&self, task: TaskRecord) -> StoreFuture<'_, TaskPutOutcome> {
        Box::pin(async move {
            let id = task.id.clone();
            let put = self
                .backend
                .write_autocommit(task, |tx, task| Box::pin(put(tx, task)));
            let put = put.await?;
            if put == TaskPutOutcome::Stored {
                self.backend.notify(TASKS, &id);
            }
            Ok(put)
        })
    }

    fn get(&self, user: &UserId, id: &str) -> StoreFuture<'_, Option<TaskRecord>> {
        self.backend
            .query_opt(GET, values![user, id], |row| row.read())
    }

    fn list(&self, user: &UserId, query: TaskQuery) -> StoreFuture<'_, TaskPage> {
        let args = (user.clone(), query);
        self.backend
            .read(args, |tx, (user, query)| Box::pin(list(tx, user, query)))
    }

    fn running(
        &self,
        after: Option<(Timestamp, Text)>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<RunningTask>> {
        let (time, id) = match &after {
            Some((time, id)) => (time.to_value(), &**id),
            None => (Value::Int(-1), ""),
        };
        self.backend
            .query(RUNNING, values![time, id, limit], |row| row.read())
    }

    fn request_cancel(&self, user: &UserId, id: &str) -> StoreFuture<'_, bool> {
        let asked = self.backend.execute(ASK_TO_CANCEL, values![user, id]);
        let id = id.to_owned();
        Box::pin(async move {
            let is_running = asked.await? > 0;
            if is_running {
                self.backend.notify(TASKS, &id);
            }
            Ok(is_running)
        })
    }

    fn cancel_requests(&self, after: Option<&str>, limit: usize) -> StoreFuture<'_, Vec<Text>> {
        let after = after.unwrap_or_default();
        self.backend
            .query(TO_CANCEL, values![after, limit], |row| row.get(0))
    }
}

/// A write of a task in the transaction that appends events of its turn.
pub(crate) enum TaskWrite {
    Insert { task: TaskRecord, message: String },
    Put(TaskRecord),
}

/// The result of a [`TaskWrite`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TaskWriteOutcome {
    Inserted(TaskInsertOutcome),
    Put(TaskPutOutcome),
}

impl TaskWrite {
    fn task(&self) -> &TaskRecord {
        match self {
            Self::Insert { task, .. } | Self::Put(task) => task,
        }
    }

    /// Returns the values of the statement: the columns of the task and, for an insert, the message.
    pub(crate) fn values(&self) -> Vec<Value<'_>> {
        let mut values = columns(self.task());
        if let Self::Insert { message, .. } = self {
            values.push(message.to_value());
        }
        values
    }
}

impl Store {
    fn append_with_task(
        &self,
        events: EventBatch,
        task: TaskWrite,
    ) -> StoreFuture<'_, TaskWriteOutcome> {
        let id = Text::clone(&task.task().id);
        let append = self.append_batch(events, Some(task));
        Box::pin(async move {
            let written = append.await?;
            let written = written.ok_or_else(|| failed("a task was stored without events"))?;
            if let TaskWriteOutcome::Inserted(TaskInsertOutcome::New)
            | TaskWriteOutcome::Put(TaskPutOutcome::Stored) = written
            {
                self.backend.notify(TASKS, &id);
            }
            Ok(written)
        })
    }
}

impl TaskLog for Store {
    fn append_first<'a>(
        &'a self,
        events: EventBatch,
        task: TaskRecord,
        message: &'a str,
    ) -> StoreFuture<'a, TaskInsertOutcome> {
        let message = message.to_owned();
        let append = self.append_with_task(events, TaskWrite::Insert { task, message });
        Box::pin(async move {
            match append.await? {
                TaskWriteOutcome::Inserted(outcome) => Ok(outcome),
                TaskWriteOutcome::Put(_) => Err(failed("a task was replaced instead of inserted")),
            }
        })
    }

    fn append_last(&self, events: EventBatch, task: TaskRecord) -> StoreFuture<'_, TaskPutOutcome> {
        let append = self.append_with_task(events, TaskWrite::Put(task));
        Box::pin(async move {
            match append.await? {
                TaskWriteOutcome::Put(outcome) => Ok(outcome),
                TaskWriteOutcome::Inserted(_) => {
                    Err(failed("a task was inserted instead of replaced"))
                }
            }
        })
    }
}

pub(crate) async fn open(
    tx: &mut Tx<'_>,
    task: &TaskRecord,
    message: &str,
) -> Result<TaskInsertOutcome> {
    for _ in 0..INSERT_ATTEMPTS {
        let mut values = columns(task);
        values.push(message.to_value());
        if tx.execute(OPEN, &values).await? > 0 {
            return Ok(TaskInsertOutcome::New);
        }
        if let Some(opened) = opened_by(tx, task, message).await? {
            return Ok(opened);
        }
        // The conflicting task has just been deleted.
    }
    Err(BackendError::other(format!(
        "the task `{}` was not stored, because other tasks of the same message were created and deleted; \
         send the message again",
        task.id
    )))
}

/// Returns the task that a message opened, if any. It is either this task, opened by an earlier attempt, or another
/// task.
pub(crate) async fn opened_by(
    tx: &mut Tx<'_>,
    task: &TaskRecord,
    message: &str,
) -> Result<Option<TaskInsertOutcome>> {
    let known: Option<Text> = tx.value(OPENED_BY, values![task.user, message]).await?;
    Ok(known.map(|known| {
        if known == task.id {
            TaskInsertOutcome::New
        } else {
            TaskInsertOutcome::Known(known)
        }
    }))
}

pub(crate) async fn put(tx: &mut Tx<'_>, task: &TaskRecord) -> Result<TaskPutOutcome> {
    if tx.execute(PUT, &columns(task)).await? > 0 {
        return Ok(TaskPutOutcome::Stored);
    }
    not_replaced(tx, task).await
}

/// Returns the reason why a task was not replaced.
pub(crate) async fn not_replaced(tx: &mut Tx<'_>, task: &TaskRecord) -> Result<TaskPutOutcome> {
    if tx.is_repeated() {
        let key = values![task.user, task.id];
        let stored = tx.query_opt(GET, key, |row| row.read::<TaskRecord>());
        if stored.await?.as_ref() == Some(task) {
            return Ok(TaskPutOutcome::Stored);
        }
    }
    match tx.value::<UserId>(OWNER, values![task.id]).await? {
        Some(owner) if owner != task.user => Err(BackendError::other(format!(
            "the task `{}` belongs to another user",
            task.id
        ))),
        _ => Ok(TaskPutOutcome::Outdated),
    }
}

async fn list(tx: &mut Tx<'_>, user: &UserId, query: &TaskQuery) -> Result<TaskPage> {
    let since = query.since.unwrap_or_default();
    let (before, before_id) = match &query.after {
        Some((time, id)) => (time.0, Some(id)),
        None => (u64::MAX, None),
    };
    let (context, state) = (&query.context, &query.state);
    let statement = match (context, state) {
        (Some(_), _) => BY_CONTEXT,
        (None, Some(_)) => BY_STATE,
        (None, None) => BY_USER,
    };
    let values = values![user, context, state, since, before, before_id, query.limit];
    let tasks = tx.query(statement, values, |row| row.read()).await?;
    let total = if query.is_counted {
        let values = values![user, context, state, since];
        tx.value(COUNT, values).await?
    } else {
        None
    };
    Ok(TaskPage { tasks, total })
}

/// Returns the first nine values of [`OPEN`] and [`PUT`].
fn columns(task: &TaskRecord) -> Vec<Value<'_>> {
    values![
        task.id,
        task.user,
        task.context,
        task.state,
        task.is_running,
        task.updated,
        task.body,
        task.revision,
        task.attempts
    ]
    .to_vec()
}

records! {
    TaskRecord { id, user, context, state, is_running, updated, body, revision, attempts }
    RunningTask { id, user, context, updated, revision }
}

/// Selects the columns of a [`TaskRecord`].
macro_rules! select {
    ($($rest:literal),+) => {
        concat!(
            r#"SELECT id, "user", context, state, running, updated, body, revision, attempts FROM tasks "#,
            $($rest),+
        )
    };
}

/// Lists a user's tasks after a cursor, newest first.
macro_rules! list {
    ($index:literal, $condition:literal) => {
        select!(
            "/*sqlite INDEXED BY ",
            $index,
            r#"*/ WHERE "user" = $1 AND "#,
            $condition,
            " AND updated >= $4
        AND (updated, id) < ($5, coalesce($6, /*sqlite char(1114111)*/ /*postgres chr(1114111)*/))
      ORDER BY updated DESC, id DESC LIMIT $7"
        )
    };
}

statements! {
    /// Inserts a task, unless its message has already opened one.
    OPEN: r#"INSERT INTO tasks (id, "user", context, state, running, updated, body, revision, attempts, message)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     ON CONFLICT ("user", message) WHERE message IS NOT NULL DO NOTHING"#;

    OPENED_BY: r#"SELECT id FROM tasks WHERE "user" = $1 AND message = $2"#;

    /// Replaces a task if its revision follows the stored one. Clears the cancel request of a task that has stopped.
    PUT: r#"UPDATE tasks SET context = $3, state = $4, running = $5, updated = $6, body = $7,
        revision = $8, attempts = $9, cancelled = CASE WHEN cancelled < $5 THEN cancelled ELSE $5 END
      WHERE id = $1 AND "user" = $2 AND revision = $8::bigint - 1"#;

    OWNER: r#"SELECT "user" FROM tasks WHERE id = $1"#;

    GET: select!(r#"WHERE id = $2 AND "user" = $1"#);

    BY_USER: list!("tasks_by_user", "$2::text IS NULL AND $3::text IS NULL");

    BY_CONTEXT: list!("tasks_by_context", "context = $2 AND ($3::text IS NULL OR state = $3)");

    BY_STATE: list!("tasks_by_state", "$2::text IS NULL AND state = $3");

    COUNT: r#"SELECT count(*) FROM tasks WHERE "user" = $1
        AND ($2::text IS NULL OR context = $2) AND ($3::text IS NULL OR state = $3) AND updated >= $4"#;

    RUNNING: r#"SELECT id, "user", context, updated, revision FROM tasks /*sqlite INDEXED BY tasks_running*/
      WHERE running /*postgres <> 0*/ AND (updated, id) > ($1, $2) ORDER BY updated, id LIMIT $3"#;

    ASK_TO_CANCEL: r#"UPDATE tasks SET cancelled = 1 WHERE id = $2 AND "user" = $1 AND running <> 0"#;

    TO_CANCEL: "SELECT id FROM tasks /*sqlite INDEXED BY tasks_to_cancel*/
      WHERE cancelled /*postgres <> 0*/ AND id > $1 ORDER BY id LIMIT $2";
}
