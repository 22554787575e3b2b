//! [`Tx`]: the handle through which one piece of work runs its statements on either database.

use super::Result;
use super::error::BackendError;
use super::row::{Column, Row};
use super::sql::Sql;
use super::value::{ToValue as _, Value};
use deadpool_postgres::{Object, StatementCache, Transaction};
use futures_util::future::try_join_all;
use rusqlite::{Connection, params_from_iter};
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

/// A handle that runs statements. The methods of [`Backend`](super::Backend) decide whether they form one transaction.
///
/// On SQLite its futures are always ready: the work runs on a dedicated thread and must not await anything but this handle.
pub(crate) struct Tx<'a> {
    link: Link<'a>,
    is_repeated: bool,
}

enum Link<'a> {
    Sqlite(&'a mut Connection),
    Postgres(Postgres<'a>),
}

struct Postgres<'a> {
    client: &'a Client,
    statements: &'a StatementCache,
    /// If `None`, every statement is committed separately.
    transaction: Option<&'a Transaction<'a>>,
}

impl<'a> Tx<'a> {
    pub(crate) fn sqlite(connection: &'a mut Connection) -> Self {
        Self {
            link: Link::Sqlite(connection),
            is_repeated: false,
        }
    }

    /// Creates a handle that commits each statement separately.
    pub(crate) fn client(client: &'a Object, is_repeated: bool) -> Self {
        let postgres = Postgres {
            client,
            statements: &client.statement_cache,
            transaction: None,
        };
        Self {
            link: Link::Postgres(postgres),
            is_repeated,
        }
    }

    pub(crate) fn transaction(transaction: &'a Transaction<'_>) -> Self {
        let postgres = Postgres {
            client: transaction.client(),
            statements: &transaction.statement_cache,
            transaction: Some(transaction),
        };
        Self {
            link: Link::Postgres(postgres),
            is_repeated: false,
        }
    }

    /// Returns whether an earlier attempt of the same work may have been committed, in which case its rows already exist. Always
    /// `false` on SQLite and inside transactions.
    pub(crate) fn is_repeated(&self) -> bool {
        self.is_repeated
    }

    /// Returns SQLite's connection, for features that only SQLite has.
    pub(crate) fn as_sqlite(&mut self) -> Option<&mut Connection> {
        match &mut self.link {
            Link::Sqlite(connection) => Some(connection),
            Link::Postgres(_) => None,
        }
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self.link, Link::Sqlite(_))
    }

    /// Returns PostgreSQL's transaction, for features that only PostgreSQL has.
    pub(crate) fn as_postgres(&self) -> Option<&'a Transaction<'a>> {
        match &self.link {
            Link::Postgres(postgres) => postgres.transaction,
            Link::Sqlite(_) => None,
        }
    }

    /// Runs a long computation: on SQLite's own thread, or for PostgreSQL on the runtime's blocking threads.
    pub(crate) async fn compute<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        if self.is_sqlite() {
            return Ok(work());
        }
        let computed = tokio::task::spawn_blocking(work).await;
        computed.map_err(|error| BackendError::other(error.to_string()))
    }

    /// Returns whether every statement costs a network round trip, which makes prefetching worthwhile.
    pub(crate) fn is_remote(&self) -> bool {
        !self.is_sqlite()
    }

    /// Switches SQLite's overwriting of deleted rows on or off. PostgreSQL has no such setting.
    pub(crate) fn overwrite_deleted(&mut self, is_on: bool) -> Result<()> {
        if let Link::Sqlite(connection) = &mut self.link {
            let switch = if is_on { "ON" } else { "OFF" };
            connection.execute_batch(&format!("PRAGMA secure_delete = {switch}"))?;
        }
        Ok(())
    }

    /// Calls `read` with each row of a statement until it returns `false`.
    async fn each_row(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
        read: &mut (dyn FnMut(Row<'_>) -> Result<bool> + Send),
    ) -> Result<()> {
        match &mut self.link {
            Link::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql.sqlite)?;
                let mut rows = statement.query(params_from_iter(values))?;
                while let Some(row) = rows.next()?
                    && read(Row::Sqlite(row))?
                {}
            }
            Link::Postgres(postgres) => {
                for row in &postgres.query(sql, &parameters(values)).await? {
                    if !read(Row::Postgres(row))? {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads all rows of a statement.
    pub(crate) async fn query<T: Send>(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
        mut read: impl FnMut(Row<'_>) -> Result<T> + Send,
    ) -> Result<Vec<T>> {
        let mut items = Vec::new();
        self.each_row(sql, values, &mut |row| {
            items.push(read(row)?);
            Ok(true)
        })
        .await?;
        Ok(items)
    }

    /// Reads a page of rows that ends once it has at least `max_bytes`; `read` also returns the size of a row. For PostgreSQL,
    /// which would send all rows, the statement itself limits the page: `max_bytes` is its last value.
    pub(crate) async fn query_page<T: Send>(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
        max_bytes: usize,
        mut read: impl FnMut(Row<'_>) -> Result<(T, usize)> + Send,
    ) -> Result<Vec<T>> {
        let is_sqlite = self.is_sqlite();
        let mut values = values.to_vec();
        if !is_sqlite {
            values.push(max_bytes.to_value());
        }
        let (mut page, mut bytes) = (Vec::new(), 0);
        self.each_row(sql, &values, &mut |row| {
            let (item, size) = read(row)?;
            page.push(item);
            bytes += size;
            Ok(!is_sqlite || bytes < max_bytes)
        })
        .await?;
        Ok(page)
    }

    /// Reads the first row of a statement, or `None` if it has no rows.
    pub(crate) async fn query_opt<T: Send>(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
        mut read: impl FnMut(Row<'_>) -> Result<T> + Send,
    ) -> Result<Option<T>> {
        let mut first = None;
        self.each_row(sql, values, &mut |row| {
            first = Some(read(row)?);
            Ok(false)
        })
        .await?;
        Ok(first)
    }

    /// Reads the first column of the first row, or `None` if there are no rows.
    pub(crate) async fn value<T: for<'r> Column<'r> + Send>(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
    ) -> Result<Option<T>> {
        self.query_opt(sql, values, |row| row.get(0)).await
    }

    /// Reads the first column of all rows.
    pub(crate) async fn column<T: for<'r> Column<'r> + Send>(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
    ) -> Result<Vec<T>> {
        self.query(sql, values, |row| row.get(0)).await
    }

    /// Returns whether a statement yields at least one row.
    pub(crate) async fn exists(&mut self, sql: Sql, values: &[Value<'_>]) -> Result<bool> {
        let row = self.query_opt(sql, values, |_| Ok(())).await?;
        Ok(row.is_some())
    }

    /// Runs a statement. Returns the number of rows it changed.
    pub(crate) async fn execute(&mut self, sql: Sql, values: &[Value<'_>]) -> Result<u64> {
        self.execute_many(sql, &[values]).await
    }

    /// Runs a statement once for each row of values and returns the number of rows changed. The executions are pipelined to
    /// PostgreSQL.
    pub(crate) async fn execute_many<'v>(
        &mut self,
        sql: Sql,
        rows: &[impl AsRef<[Value<'v>]> + Sync],
    ) -> Result<u64> {
        match &mut self.link {
            _ if rows.is_empty() => Ok(0),
            Link::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql.sqlite)?;
                let mut changed = 0;
                for values in rows {
                    changed += statement.execute(params_from_iter(values.as_ref()))? as u64;
                }
                Ok(changed)
            }
            Link::Postgres(postgres) => {
                let Postgres {
                    client, statements, ..
                } = postgres;
                let statement = &statements.prepare(client, sql.postgres).await?;
                let all = rows.iter().map(async |values| {
                    client
                        .execute(statement, &parameters(values.as_ref()))
                        .await
                });
                Ok(try_join_all(all).await?.into_iter().sum())
            }
        }
    }

    /// Runs a statement for many rows of values: on SQLite once per row, on PostgreSQL once for all rows, with one array per
    /// column. The `shared` values come first. Returns the resulting rows, on PostgreSQL in no particular order.
    pub(crate) async fn batch<'v, T: Send, R: AsRef<[Value<'v>]> + Sync>(
        &mut self,
        sql: Sql,
        shared: &[Value<'_>],
        rows: &[R],
        mut read: impl FnMut(Row<'_>) -> Result<T> + Send,
    ) -> Result<Vec<T>> {
        let Some(first) = rows.first() else {
            return Ok(Vec::new());
        };
        match &mut self.link {
            Link::Sqlite(connection) => {
                let mut items = Vec::new();
                let mut statement = connection.prepare_cached(sql.sqlite)?;
                for row in rows {
                    let values = params_from_iter(shared.iter().chain(row.as_ref()));
                    let mut rows = statement.query(values)?;
                    while let Some(row) = rows.next()? {
                        items.push(read(Row::Sqlite(row))?);
                    }
                }
                Ok(items)
            }
            Link::Postgres(postgres) => {
                let column = |at: usize| rows.iter().map(move |row| &row.as_ref()[at]).collect();
                let columns: Vec<Vec<&Value<'_>>> = (0..first.as_ref().len()).map(column).collect();
                let mut values = parameters(shared);
                values.extend(columns.iter().map(|column| column as &(dyn ToSql + Sync)));
                let rows = postgres.query(sql, &values).await?;
                rows.iter().map(|row| read(Row::Postgres(row))).collect()
            }
        }
    }
}

impl Postgres<'_> {
    async fn query(
        &self,
        sql: Sql,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>> {
        let statement = self.statements.prepare(self.client, sql.postgres).await?;
        Ok(self.client.query(&statement, values).await?)
    }
}

fn parameters<'a>(values: &'a [Value<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    let values = values.iter().map(|value| value as &(dyn ToSql + Sync));
    values.collect()
}
