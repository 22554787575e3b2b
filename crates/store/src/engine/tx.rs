//! A connection to either database while one piece of work runs.

use super::failure::Failure;
use super::row::{Column, Row};
use super::sql::Sql;
use super::value::{ToValue as _, Value};
use deadpool_postgres::{Object, Transaction};
use futures_util::future::try_join_all;
use rusqlite::{Connection, params_from_iter};
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;

/// A handle that runs statements. The methods of [`Engine`](super::Engine) decide whether they are one transaction.
///
/// The futures of SQLite are always ready: its work runs on a thread of its own, and must await nothing but this handle.
pub(crate) struct Tx<'a> {
    link: Link<'a>,
    is_repeated: bool,
}

enum Link<'a> {
    Sqlite(&'a mut Connection),
    Postgres(Postgres<'a>),
}

#[derive(Clone, Copy)]
enum Postgres<'a> {
    /// Every statement is a transaction of its own.
    Client(&'a Object),
    Transaction(&'a Transaction<'a>),
}

impl<'a> Tx<'a> {
    pub(crate) fn sqlite(connection: &'a mut Connection) -> Self {
        Self {
            link: Link::Sqlite(connection),
            is_repeated: false,
        }
    }

    /// Creates a handle whose statements are committed one by one.
    pub(crate) fn client(client: &'a Object, is_repeated: bool) -> Self {
        Self {
            link: Link::Postgres(Postgres::Client(client)),
            is_repeated,
        }
    }

    pub(crate) fn transaction(transaction: &'a Transaction<'_>) -> Self {
        Self {
            link: Link::Postgres(Postgres::Transaction(transaction)),
            is_repeated: false,
        }
    }

    /// Returns whether an earlier attempt of the same work may have been committed, so that this one finds its rows. Always `false`
    /// on SQLite and inside of transactions.
    pub(crate) fn is_repeated(&self) -> bool {
        self.is_repeated
    }

    /// Returns SQLite's connection, for what only SQLite has.
    pub(crate) fn as_sqlite(&mut self) -> Option<&mut Connection> {
        match &mut self.link {
            Link::Sqlite(connection) => Some(connection),
            Link::Postgres(_) => None,
        }
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self.link, Link::Sqlite(_))
    }

    /// Returns PostgreSQL's transaction, for what only PostgreSQL has.
    pub(crate) fn as_postgres(&self) -> Option<&'a Transaction<'a>> {
        match self.link {
            Link::Postgres(Postgres::Transaction(transaction)) => Some(transaction),
            Link::Postgres(Postgres::Client(_)) | Link::Sqlite(_) => None,
        }
    }

    /// Computes something that takes a while: on SQLite's own thread, or beside the runtime.
    pub(crate) async fn compute<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        if let Link::Sqlite(_) = self.link {
            return Ok(work());
        }
        let computed = tokio::task::spawn_blocking(work).await;
        computed.map_err(|error| Failure::other(error.to_string()))
    }

    /// Whether every statement costs a round trip, so that it pays to fetch ahead.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.link, Link::Postgres(_))
    }

    /// Switches SQLite's overwriting of deleted rows on or off. PostgreSQL has no such setting.
    pub(crate) fn overwrite_deleted(&mut self, is_on: bool) -> Result<(), Failure> {
        if let Link::Sqlite(connection) = &mut self.link {
            let switch = if is_on { "ON" } else { "OFF" };
            connection.execute_batch(&format!("PRAGMA secure_delete = {switch}"))?;
        }
        Ok(())
    }

    /// Reads all rows of a statement.
    pub(crate) async fn query<T>(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
        mut read: impl FnMut(Row<'_>) -> Result<T, Failure> + Send,
    ) -> Result<Vec<T>, Failure> {
        let postgres = match &mut self.link {
            Link::Postgres(postgres) => *postgres,
            Link::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql.sqlite)?;
                let mut rows = statement.query(params_from_iter(values))?;
                let mut found = Vec::new();
                while let Some(row) = rows.next()? {
                    found.push(read(Row::Sqlite(row))?);
                }
                return Ok(found);
            }
        };
        let rows = postgres.query(sql, &parameters(values)).await?;
        rows.iter().map(|row| read(Row::Postgres(row))).collect()
    }

    /// Reads a page of rows that ends where it reaches `most_bytes`; `read` also returns the size of a row. The statement of
    /// PostgreSQL, which would send all rows, ends the page itself: `most_bytes` is its last value.
    pub(crate) async fn query_page<T>(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
        most_bytes: usize,
        mut read: impl FnMut(Row<'_>) -> Result<(T, usize), Failure> + Send,
    ) -> Result<Vec<T>, Failure> {
        if let Link::Sqlite(connection) = &mut self.link {
            let mut statement = connection.prepare_cached(sql.sqlite)?;
            let mut rows = statement.query(params_from_iter(values))?;
            let (mut page, mut bytes) = (Vec::new(), 0);
            while bytes < most_bytes
                && let Some(row) = rows.next()?
            {
                let (item, size) = read(Row::Sqlite(row))?;
                bytes += size;
                page.push(item);
            }
            return Ok(page);
        }
        let mut values = values.to_vec();
        values.push(most_bytes.to_value());
        self.query(sql, &values, |row| Ok(read(row)?.0)).await
    }

    /// Reads the first row of a statement, if there is one.
    pub(crate) async fn query_opt<T>(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
        read: impl FnOnce(Row<'_>) -> Result<T, Failure> + Send,
    ) -> Result<Option<T>, Failure> {
        let postgres = match &mut self.link {
            Link::Postgres(postgres) => *postgres,
            Link::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql.sqlite)?;
                let mut rows = statement.query(params_from_iter(values))?;
                let row = rows.next()?;
                return row.map(|row| read(Row::Sqlite(row))).transpose();
            }
        };
        let rows = postgres.query(sql, &parameters(values)).await?;
        let row = rows.first();
        row.map(|row| read(Row::Postgres(row))).transpose()
    }

    /// Reads the first column of the first row, if there is one.
    pub(crate) async fn value<T: for<'r> Column<'r>>(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
    ) -> Result<Option<T>, Failure> {
        self.query_opt(sql, values, |row| row.get(0)).await
    }

    /// Reads the first column of all rows.
    pub(crate) async fn column<T: for<'r> Column<'r>>(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
    ) -> Result<Vec<T>, Failure> {
        self.query(sql, values, |row| row.get(0)).await
    }

    /// Returns whether a statement has a row.
    pub(crate) async fn exists(&mut self, sql: Sql, values: &[Value<'_>]) -> Result<bool, Failure> {
        let row = self.query_opt(sql, values, |_| Ok(())).await?;
        Ok(row.is_some())
    }

    /// Runs a statement that has no result; gives how many rows it touched.
    pub(crate) async fn execute(&mut self, sql: Sql, values: &[Value<'_>]) -> Result<u64, Failure> {
        let postgres = match &mut self.link {
            Link::Postgres(postgres) => *postgres,
            Link::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql.sqlite)?;
                return Ok(statement.execute(params_from_iter(values))? as u64);
            }
        };
        let statement = postgres.prepare(sql).await?;
        postgres.execute(&statement, values).await
    }

    /// Runs a statement once for each row of values; gives how many rows they touched. PostgreSQL gets all of them at once.
    pub(crate) async fn execute_many(
        &mut self,
        sql: Sql,
        rows: &[Vec<Value<'_>>],
    ) -> Result<u64, Failure> {
        let postgres = match &mut self.link {
            Link::Postgres(postgres) => *postgres,
            Link::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql.sqlite)?;
                let mut touched = 0;
                for values in rows {
                    touched += statement.execute(params_from_iter(values))? as u64;
                }
                return Ok(touched);
            }
        };
        if rows.is_empty() {
            return Ok(0);
        }
        let statement = postgres.prepare(sql).await?;
        let all = rows
            .iter()
            .map(|values| postgres.execute(&statement, values));
        Ok(try_join_all(all).await?.into_iter().sum())
    }

    /// Runs a statement for many rows of values: in SQLite once for each row, in PostgreSQL once for all of them, with an
    /// array for each column. The `shared` values come first. Gives the rows of the result, in PostgreSQL in any order.
    pub(crate) async fn batch<'v, T, R: AsRef<[Value<'v>]> + Sync>(
        &mut self,
        sql: Sql,
        shared: &[Value<'_>],
        rows: &[R],
        mut read: impl FnMut(Row<'_>) -> Result<T, Failure> + Send,
    ) -> Result<Vec<T>, Failure> {
        let mut found = Vec::new();
        let Some(first) = rows.first() else {
            return Ok(found);
        };
        let postgres = match &mut self.link {
            Link::Postgres(postgres) => *postgres,
            Link::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql.sqlite)?;
                for values in rows {
                    let mut rows =
                        statement.query(params_from_iter(shared.iter().chain(values.as_ref())))?;
                    while let Some(row) = rows.next()? {
                        found.push(read(Row::Sqlite(row))?);
                    }
                }
                return Ok(found);
            }
        };
        let column = |column: usize| rows.iter().map(move |row| &row.as_ref()[column]).collect();
        let columns: Vec<Vec<&Value<'_>>> = (0..first.as_ref().len()).map(column).collect();
        let mut values = parameters(shared);
        values.extend(columns.iter().map(|column| column as &(dyn ToSql + Sync)));
        for row in &postgres.query(sql, &values).await? {
            found.push(read(Row::Postgres(row))?);
        }
        Ok(found)
    }
}

impl Postgres<'_> {
    async fn prepare(self, sql: Sql) -> Result<Statement, Failure> {
        Ok(match self {
            Self::Client(client) => client.prepare_cached(sql.postgres).await?,
            Self::Transaction(transaction) => transaction.prepare_cached(sql.postgres).await?,
        })
    }

    async fn query(
        self,
        sql: Sql,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, Failure> {
        let statement = self.prepare(sql).await?;
        Ok(match self {
            Self::Client(client) => client.query(&statement, values).await?,
            Self::Transaction(transaction) => transaction.query(&statement, values).await?,
        })
    }

    async fn execute(self, statement: &Statement, values: &[Value<'_>]) -> Result<u64, Failure> {
        let values = parameters(values);
        Ok(match self {
            Self::Client(client) => client.execute(statement, &values).await?,
            Self::Transaction(transaction) => transaction.execute(statement, &values).await?,
        })
    }
}

fn parameters<'a>(values: &'a [Value<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    let values = values.iter().map(|value| value as &(dyn ToSql + Sync));
    values.collect()
}
