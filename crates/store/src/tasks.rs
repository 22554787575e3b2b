//! Tasks of servers: stored whole, found by user, conversation, state and time.

use crate::engine::{Failure, Row, Sql, Tx, Value, sql, values};
use crate::postgres::renewer::TASKS;
use crate::store::Store;
use lango_core::{
    BoxFuture, Opened, Put, RunningTask, StoreError, TaskPage, TaskQuery, TaskRecord, TaskStore,
    Text, Timestamp, UserId,
};

/// How often a new task is tried to be stored.
const OPENINGS: usize = 3;

impl TaskStore for Store {
    fn insert<'a>(
        &'a self,
        task: TaskRecord,
        message: &'a str,
    ) -> BoxFuture<'a, Result<Opened, StoreError>> {
        Box::pin(async move {
            let id = task.id.clone();
            let given = (task, message.to_owned());
            let opened = self.engine.write_one(given, |tx, (task, message)| {
                Box::pin(open(tx, task, message))
            });
            let opened = opened.await?;
            if opened == Opened::New {
                self.engine.notify(TASKS, &id);
            }
            Ok(opened)
        })
    }

    fn put(&self, task: TaskRecord) -> BoxFuture<'_, Result<Put, StoreError>> {
        Box::pin(async move {
            let id = task.id.clone();
            let put = self
                .engine
                .write_one(task, |tx, task| Box::pin(put(tx, task)))
                .await?;
            if put == Put::Stored {
                self.engine.notify(TASKS, &id);
            }
            Ok(put)
        })
    }

    fn get<'a>(
        &'a self,
        user: &'a UserId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<TaskRecord>, StoreError>> {
        self.engine
            .read((user.clone(), id.to_owned()), |tx, (user, id)| {
                Box::pin(get(tx, user, id))
            })
    }

    fn list<'a>(
        &'a self,
        user: &'a UserId,
        query: TaskQuery,
    ) -> BoxFuture<'a, Result<TaskPage, StoreError>> {
        self.engine
            .read((user.clone(), query), |tx, (user, query)| {
                Box::pin(list(tx, user, query))
            })
    }

    fn running(
        &self,
        after: Option<(Timestamp, Text)>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunningTask>, StoreError>> {
        self.engine.read((after, limit), |tx, (after, limit)| {
            Box::pin(async move {
                let after = after.as_ref();
                let time = after.map_or(Value::Int(-1), |(time, _)| Value::Int(bound(*time)));
                let id = after.map_or("", |(_, id)| id);
                tx.query(RUNNING, values![time, id, limit], running).await
            })
        })
    }

    fn request_cancel<'a>(
        &'a self,
        user: &'a UserId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let given = (user.clone(), id.to_owned());
            let asked = self.engine.write_one(given, |tx, (user, id)| {
                Box::pin(async move { tx.execute(ASK_TO_CANCEL, values![user, id]).await })
            });
            let is_running = asked.await? > 0;
            if is_running {
                self.engine.notify(TASKS, id);
            }
            Ok(is_running)
        })
    }

    fn cancel_requests<'a>(
        &'a self,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Text>, StoreError>> {
        let after = after.unwrap_or_default().to_owned();
        self.engine.read((after, limit), |tx, (after, limit)| {
            let ids = |row: Row<'_>| row.get(0);
            Box::pin(async move { tx.query(TO_CANCEL, values![after, limit], ids).await })
        })
    }
}

fn bound(time: Timestamp) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

async fn open(tx: &mut Tx<'_>, task: &TaskRecord, message: &str) -> Result<Opened, Failure> {
    for _ in 0..OPENINGS {
        let mut values = columns(task);
        values.push(Value::Text(message));
        if tx.execute(OPEN, &values).await? > 0 {
            return Ok(Opened::New);
        }
        let values = values![task.user, message];
        match tx.query_opt(OPENED_BY, values, |row| row.get(0)).await? {
            // An earlier try was carried out if it is this very one that is known.
            Some(known) if known == task.id => return Ok(Opened::New),
            Some(known) => return Ok(Opened::Known(known)),
            // The one that was in the way was deleted in between.
            None => {}
        }
    }
    Err(Failure::other(format!(
        "the task `{}` was not stored: tasks of its message come and go; send it again",
        task.id
    )))
}

async fn put(tx: &mut Tx<'_>, task: &TaskRecord) -> Result<Put, Failure> {
    if tx.execute(PUT, &columns(task)).await? > 0 {
        return Ok(Put::Stored);
    }
    if tx.is_repeated() && get(tx, &task.user, &task.id).await?.as_ref() == Some(task) {
        return Ok(Put::Stored);
    }
    let values = values![task.id];
    match tx
        .query_opt(OWNER, values, |row| row.get::<UserId>(0))
        .await?
    {
        Some(owner) if owner != task.user => Err(Failure::other(format!(
            "the task `{}` is another user's",
            task.id
        ))),
        _ => Ok(Put::Overtaken),
    }
}

async fn get(tx: &mut Tx<'_>, user: &UserId, id: &str) -> Result<Option<TaskRecord>, Failure> {
    tx.query_opt(GET, values![user, id], record).await
}

async fn list(tx: &mut Tx<'_>, user: &UserId, query: &TaskQuery) -> Result<TaskPage, Failure> {
    let since = query.since.map_or(0, bound);
    let (before, before_id) = match &query.after {
        Some((time, id)) => (bound(*time), Some(id)),
        None => (i64::MAX, None),
    };
    let (context, state) = (&query.context, &query.state);
    let statement = match (context, state) {
        (Some(_), _) => BY_CONTEXT,
        (None, Some(_)) => BY_STATE,
        (None, None) => BY_USER,
    };
    let values = values![user, context, state, since, before, before_id, query.limit];
    let tasks = tx.query(statement, values, record).await?;
    let total = if query.is_counted {
        tx.query_opt(COUNT, values![user, context, state, since], |row| {
            row.get(0)
        })
        .await?
    } else {
        None
    };
    Ok(TaskPage { tasks, total })
}

/// A task as the first nine values of [`OPEN`] and [`PUT`].
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

fn record(row: Row<'_>) -> Result<TaskRecord, Failure> {
    Ok(TaskRecord {
        id: row.get(0)?,
        user: row.get(1)?,
        context: row.get(2)?,
        state: row.get(3)?,
        is_running: row.get(4)?,
        updated: row.get(5)?,
        body: row.get(6)?,
        revision: row.get(7)?,
        attempts: row.get(8)?,
    })
}

fn running(row: Row<'_>) -> Result<RunningTask, Failure> {
    Ok(RunningTask {
        id: row.get(0)?,
        user: row.get(1)?,
        context: row.get(2)?,
        updated: row.get(3)?,
        revision: row.get(4)?,
    })
}

/// Stores a new task; nothing if its message opened one before.
const OPEN: Sql = sql!(
    r#"INSERT INTO tasks (id, "user", context, state, running, updated, body, revision, attempts, message)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     ON CONFLICT ("user", message) WHERE message IS NOT NULL DO NOTHING"#
);

/// The task that a message opened.
const OPENED_BY: Sql = sql!(r#"SELECT id FROM tasks WHERE "user" = $1 AND message = $2"#);

/// Stores a task, if its revision follows the one that is stored; one that is not running need not be cancelled any more.
const PUT: Sql = sql!(
    r#"UPDATE tasks SET context = $3, state = $4, running = $5, updated = $6, body = $7,
        revision = $8, attempts = $9, cancelled = CASE WHEN cancelled < $5 THEN cancelled ELSE $5 END
      WHERE id = $1 AND "user" = $2 AND revision = $8::bigint - 1"#
);

/// Whose a task is.
const OWNER: Sql = sql!(r#"SELECT "user" FROM tasks WHERE id = $1"#);

/// A user's task.
const GET: Sql = sql!(
    r#"SELECT id, "user", context, state, running, updated, body, revision, attempts FROM tasks
      WHERE id = $2 AND "user" = $1"#
);

/// A user's tasks after a place in the list.
const BY_USER: Sql = sql!(
    r#"SELECT id, "user", context, state, running, updated, body, revision, attempts
       FROM tasks /*sqlite INDEXED BY tasks_by_user*/
      WHERE "user" = $1 AND $2::text IS NULL AND $3::text IS NULL AND updated >= $4
        AND (updated, id) < ($5, coalesce($6, /*sqlite char(1114111)*/ /*postgres chr(1114111)*/))
      ORDER BY updated DESC, id DESC LIMIT $7"#
);

/// The same within a conversation, and maybe a state.
const BY_CONTEXT: Sql = sql!(
    r#"SELECT id, "user", context, state, running, updated, body, revision, attempts
       FROM tasks /*sqlite INDEXED BY tasks_by_context*/
      WHERE "user" = $1 AND context = $2 AND ($3::text IS NULL OR state = $3) AND updated >= $4
        AND (updated, id) < ($5, coalesce($6, /*sqlite char(1114111)*/ /*postgres chr(1114111)*/))
      ORDER BY updated DESC, id DESC LIMIT $7"#
);

/// The same within a state.
const BY_STATE: Sql = sql!(
    r#"SELECT id, "user", context, state, running, updated, body, revision, attempts
       FROM tasks /*sqlite INDEXED BY tasks_by_state*/
      WHERE "user" = $1 AND $2::text IS NULL AND state = $3 AND updated >= $4
        AND (updated, id) < ($5, coalesce($6, /*sqlite char(1114111)*/ /*postgres chr(1114111)*/))
      ORDER BY updated DESC, id DESC LIMIT $7"#
);

/// How many there are.
const COUNT: Sql = sql!(
    r#"SELECT count(*) FROM tasks WHERE "user" = $1
        AND ($2::text IS NULL OR context = $2) AND ($3::text IS NULL OR state = $3) AND updated >= $4"#
);

/// Tasks that there is work to do on, after a place in their order.
const RUNNING: Sql = sql!(
    r#"SELECT id, "user", context, updated, revision FROM tasks /*sqlite INDEXED BY tasks_running*/
      WHERE running /*postgres <> 0*/ AND (updated, id) > ($1, $2) ORDER BY updated, id LIMIT $3"#
);

/// Notes that a running task is to be cancelled.
const ASK_TO_CANCEL: Sql =
    sql!(r#"UPDATE tasks SET cancelled = 1 WHERE id = $2 AND "user" = $1 AND running <> 0"#);

/// Tasks that are to be cancelled.
const TO_CANCEL: Sql = sql!(
    "SELECT id FROM tasks /*sqlite INDEXED BY tasks_to_cancel*/
      WHERE cancelled /*postgres <> 0*/ AND id > $1 ORDER BY id LIMIT $2"
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::plans::{ManyRows, sqlite_plan};

    const ALL: [Sql; 12] = [
        OPEN,
        OPENED_BY,
        PUT,
        OWNER,
        GET,
        BY_USER,
        BY_CONTEXT,
        BY_STATE,
        COUNT,
        RUNNING,
        ASK_TO_CANCEL,
        TO_CANCEL,
    ];

    #[tokio::test]
    async fn tasks_are_found_by_an_index_and_listed_without_sorting() {
        let postgres = ManyRows::open("").await;
        for statement in ALL {
            let plan = sqlite_plan(statement);
            assert!(
                !plan.contains("SCAN") && !plan.contains("TEMP B-TREE"),
                "{plan}"
            );
            let plan = postgres.plan(statement).await;
            assert!(
                !plan.contains("Seq Scan") && !plan.contains("Sort"),
                "{plan}"
            );
        }
    }
}
