//! Tasks from outside: kept whole, found by user, conversation, state and time.

use super::SqliteStore;
use super::failure::Failure;
use super::rows::unsigned;
use super::statements::tasks::{BY_CONTEXT, BY_STATE, BY_USER, COUNT, GET, PUT, RUNNING};
use lango_core::{
    BoxFuture, StoreError, TaskPage, TaskQuery, TaskRecord, TaskStore, Text, Timestamp, UserId,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

impl TaskStore for SqliteStore {
    fn put(&self, task: TaskRecord) -> BoxFuture<'_, Result<(), StoreError>> {
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

    fn running(&self, limit: usize) -> BoxFuture<'_, Result<Vec<TaskRecord>, StoreError>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        Box::pin(self.readers.read(move |reader| {
            let mut statement = reader.connection.prepare_cached(RUNNING)?;
            let found = statement.query_map(params![limit], record)?;
            Ok(found.collect::<Result<_, _>>()?)
        }))
    }
}

fn put(connection: &Connection, task: &TaskRecord) -> Result<(), Failure> {
    let updated = i64::try_from(task.updated.0).unwrap_or(i64::MAX);
    let written = connection.prepare_cached(PUT)?.execute(params![
        task.id,
        task.user.as_str(),
        task.context,
        task.state,
        task.is_running,
        updated,
        task.body
    ])?;
    match written {
        0 => Err(Failure::other(format!(
            "the task `{}` is another user's",
            task.id
        ))),
        _ => Ok(()),
    }
}

fn list(connection: &Connection, user: &UserId, query: &TaskQuery) -> Result<TaskPage, Failure> {
    let stored = |time: Timestamp| i64::try_from(time.0).unwrap_or(i64::MAX);
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
    })
}
