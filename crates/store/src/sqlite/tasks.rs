//! Tasks from outside: kept whole, found by user, conversation, state and time.

use super::SqliteStore;
use super::failure::Failure;
use super::rows::unsigned;
use super::statements::tasks::{
    ASK_TO_CANCEL, BY_CONTEXT, BY_STATE, BY_USER, COUNT, GET, OPEN, OPENED_BY, OWNER, PUT, RUNNING,
    TO_CANCEL,
};
use lango_core::{
    BoxFuture, Opened, Put, RunningTask, StoreError, TaskPage, TaskQuery, TaskRecord, TaskStore,
    Text, Timestamp, UserId,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

impl TaskStore for SqliteStore {
    fn keep_new<'a>(
        &'a self,
        task: TaskRecord,
        message: &'a str,
    ) -> BoxFuture<'a, Result<Opened, StoreError>> {
        let message = message.to_owned();
        Box::pin(
            self.writer
                .change(move |connection| open(connection, &task, &message)),
        )
    }

    fn put(&self, task: TaskRecord) -> BoxFuture<'_, Result<Put, StoreError>> {
        Box::pin(self.writer.change(move |connection| put(connection, &task)))
    }

    fn get<'a>(
        &'a self,
        user: &'a UserId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<TaskRecord>, StoreError>> {
        let (user, id) = (user.clone(), id.to_owned());
        Box::pin(self.readers.read(move |reader| {
            let mut statement = reader.connection.prepare_cached(GET)?;
            let found = statement.query_row(params![user.as_str(), id], record);
            Ok(found.optional()?)
        }))
    }

    fn list<'a>(
        &'a self,
        user: &'a UserId,
        query: TaskQuery,
    ) -> BoxFuture<'a, Result<TaskPage, StoreError>> {
        let user = user.clone();
        Box::pin(
            self.readers
                .read(move |reader| list(reader.connection, &user, &query)),
        )
    }

    fn running(
        &self,
        after: Option<(Timestamp, Text)>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunningTask>, StoreError>> {
        let (updated, id) = after.map_or((-1, "".into()), |(time, id)| (stored(time), id));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        Box::pin(self.readers.read(move |reader| {
            let mut statement = reader.connection.prepare_cached(RUNNING)?;
            let found = statement.query_map(params![updated, id, limit], running)?;
            Ok(found.collect::<Result<_, _>>()?)
        }))
    }

    fn ask_to_cancel<'a>(
        &'a self,
        user: &'a UserId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let (user, id) = (user.clone(), id.to_owned());
        Box::pin(self.writer.change(move |connection| {
            let mut statement = connection.prepare_cached(ASK_TO_CANCEL)?;
            Ok(statement.execute(params![user.as_str(), id])? > 0)
        }))
    }

    fn to_cancel<'a>(
        &'a self,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Text>, StoreError>> {
        let after = after.unwrap_or_default().to_owned();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        Box::pin(self.readers.read(move |reader| {
            let mut statement = reader.connection.prepare_cached(TO_CANCEL)?;
            let found = statement.query_map(params![after, limit], |row| row.get(0))?;
            Ok(found.collect::<Result<_, _>>()?)
        }))
    }
}

fn stored(time: Timestamp) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

fn open(connection: &Connection, task: &TaskRecord, message: &str) -> Result<Opened, Failure> {
    let written = connection.prepare_cached(OPEN)?.execute(params![
        task.id,
        task.user.as_str(),
        task.context,
        task.state,
        task.is_running,
        stored(task.updated),
        task.body,
        stored(Timestamp(task.revision)),
        task.attempts,
        message
    ])?;
    if written > 0 {
        return Ok(Opened::New);
    }
    let mut statement = connection.prepare_cached(OPENED_BY)?;
    let known = statement.query_row(params![task.user.as_str(), message], |row| row.get(0))?;
    Ok(Opened::Known(known))
}

fn put(connection: &Connection, task: &TaskRecord) -> Result<Put, Failure> {
    let written = connection.prepare_cached(PUT)?.execute(params![
        task.id,
        task.user.as_str(),
        task.context,
        task.state,
        task.is_running,
        stored(task.updated),
        task.body,
        stored(Timestamp(task.revision)),
        task.attempts
    ])?;
    if written > 0 {
        return Ok(Put::Kept);
    }
    let mut statement = connection.prepare_cached(OWNER)?;
    let owner = statement.query_row(params![task.id], |row| row.get::<_, Text>(0));
    match owner.optional()? {
        Some(owner) if *owner != *task.user.as_str() => Err(Failure::other(format!(
            "the task `{}` is another user's",
            task.id
        ))),
        _ => Ok(Put::Overtaken),
    }
}

fn list(connection: &Connection, user: &UserId, query: &TaskQuery) -> Result<TaskPage, Failure> {
    let since = query.since.map_or(0, stored);
    let (before, before_id) = match &query.after {
        Some((time, id)) => (stored(*time), Some(Text::clone(id))),
        None => (i64::MAX, None),
    };
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let statement = match (&query.context, &query.state) {
        (Some(_), _) => BY_CONTEXT,
        (None, Some(_)) => BY_STATE,
        (None, None) => BY_USER,
    };
    let mut statement = connection.prepare_cached(statement)?;
    let found = statement.query_map(
        params![
            user.as_str(),
            query.context,
            query.state,
            since,
            before,
            before_id,
            limit
        ],
        record,
    )?;
    let tasks = found.collect::<Result<_, _>>()?;
    let count = || {
        connection.prepare_cached(COUNT)?.query_row(
            params![user.as_str(), query.context, query.state, since],
            |row| unsigned(row, 0),
        )
    };
    let total = query.is_counted.then(count).transpose()?;
    Ok(TaskPage { tasks, total })
}

fn record(row: &Row<'_>) -> rusqlite::Result<TaskRecord> {
    Ok(TaskRecord {
        id: row.get(0)?,
        user: UserId::new(row.get::<_, Text>(1)?),
        context: row.get(2)?,
        state: row.get(3)?,
        is_running: row.get(4)?,
        updated: Timestamp(row.get::<_, i64>(5)?.unsigned_abs()),
        body: row.get(6)?,
        revision: unsigned(row, 7)?,
        attempts: row.get(8)?,
    })
}

fn running(row: &Row<'_>) -> rusqlite::Result<RunningTask> {
    Ok(RunningTask {
        id: row.get(0)?,
        user: UserId::new(row.get::<_, Text>(1)?),
        context: row.get(2)?,
        updated: Timestamp(row.get::<_, i64>(3)?.unsigned_abs()),
        revision: unsigned(row, 4)?,
    })
}
