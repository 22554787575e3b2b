//! The tables of the file, read and written as they are.

mod statements;

use super::SqliteEngine;
use super::failure::Failure;
use super::rows::{limit, unsigned};
use super::upkeep;
use crate::archive::PAGE_BYTES;
use crate::tables::{Cell, Cells, Copied, Destination, Mark, Table, Tables};
use lango_core::{BoxFuture, StoreError};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params, params_from_iter};
use statements as sql;
use std::path::Path;

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(Value::Null),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Integer(number) => ToSqlOutput::Owned(Value::Integer(*number)),
            Self::Real(number) => ToSqlOutput::Owned(Value::Real(*number)),
            Self::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

impl Tables for SqliteEngine {
    fn place(&self) -> String {
        place_of(self.writer.path())
    }

    fn count_rows(&self, table: &'static Table) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(self.readers.read(move |reader| {
            let count = reader
                .connection
                .query_row(&sql::count(table), [], |row| unsigned(row, 0))?;
            Ok(count)
        }))
    }

    fn page(
        &self,
        table: &'static Table,
        after: Option<Cells>,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Cells>, StoreError>> {
        Box::pin(
            self.readers
                .read(move |reader| page(reader.connection, table, after, most)),
        )
    }

    fn rows_of(
        &self,
        table: &'static Table,
        keys: Vec<Cells>,
    ) -> BoxFuture<'_, Result<Vec<Option<Cells>>, StoreError>> {
        Box::pin(self.readers.read(move |reader| {
            let mut statement = reader.connection.prepare(&sql::by_key(table))?;
            let mut found = Vec::with_capacity(keys.len());
            for key in &keys {
                let row = statement.query_row(params_from_iter(key), |row| cells(row, table));
                found.push(row.optional()?);
            }
            Ok(found)
        }))
    }

    fn last_number(&self, table: &'static Table) -> BoxFuture<'_, Result<Option<i64>, StoreError>> {
        Box::pin(self.readers.read(move |reader| {
            let mut statement = reader.connection.prepare(sql::LAST_NUMBER)?;
            let number = statement.query_row([table.name], |row| row.get(0));
            Ok(number.optional()?)
        }))
    }

    fn held(&self) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(upkeep::held(self.writer.path().to_owned()))
    }
}

impl Destination for SqliteEngine {
    fn mark(&self) -> BoxFuture<'_, Result<Option<Mark>, StoreError>> {
        Box::pin(self.readers.read(|reader| mark(reader.connection)))
    }

    fn arrive(
        &self,
        table: &'static Table,
        rows: Vec<Cells>,
        mark: Mark,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(
            self.writer
                .change(move |connection| arrive(connection, table, &rows, &mark)),
        )
    }

    fn go_on_from(
        &self,
        numbers: Vec<(&'static Table, i64)>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.writer.change(move |connection| {
            for (table, number) in &numbers {
                // A table whose rows are numbered otherwise here needs none of it.
                connection.execute(sql::KEEP_NUMBER, params![table.name, number])?;
                connection.execute(sql::SET_NUMBER, params![table.name, number])?;
            }
            Ok(())
        }))
    }

    fn arrived(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.writer.change(|connection| {
            connection.execute_batch(sql::FORGET_MARK)?;
            Ok(())
        }))
    }
}

/// What a database in a file is called where it is named.
pub(super) fn place_of(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

fn page(
    connection: &Connection,
    table: &'static Table,
    after: Option<Cells>,
    most: usize,
) -> Result<Vec<Cells>, Failure> {
    let mut statement = connection.prepare(&sql::page(table, after.is_some()))?;
    let mut values = after.unwrap_or_default();
    values.push(Cell::Integer(limit(most)));
    let mut found = statement.query(params_from_iter(&values))?;
    let mut rows = Vec::new();
    let mut bytes = 0;
    while let Some(row) = found.next()? {
        let row = cells(row, table)?;
        bytes += row.iter().map(Cell::size).sum::<usize>();
        rows.push(row);
        if bytes >= PAGE_BYTES {
            break;
        }
    }
    Ok(rows)
}

fn cells(row: &Row<'_>, table: &Table) -> rusqlite::Result<Cells> {
    let cell = |column| {
        Ok(match row.get_ref(column)? {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(number) => Cell::Integer(number),
            ValueRef::Real(number) => Cell::Real(number),
            ValueRef::Text(_) => Cell::Text(row.get(column)?),
            ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
        })
    };
    (0..table.columns.len()).map(cell).collect()
}

/// The move into this database that is not done.
pub(super) fn mark(connection: &Connection) -> Result<Option<Mark>, Failure> {
    if !connection.prepare(sql::HAS_MARK)?.exists([])? {
        return Ok(None);
    }
    let found: Option<(String, i64, Option<String>, String)> = connection
        .query_row(sql::MARK, [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .optional()?;
    let Some((source, table, after, copied)) = found else {
        return Ok(None);
    };
    let after = after.map(|text| Cell::read_key(&text)).transpose()?;
    Ok(Some(Mark {
        source,
        table: usize::try_from(table).unwrap_or(usize::MAX),
        after,
        copied: Copied::read(&copied)?,
    }))
}

fn arrive(
    connection: &Connection,
    table: &Table,
    rows: &[Cells],
    mark: &Mark,
) -> Result<(), Failure> {
    connection.execute_batch(sql::MAKE_MARK)?;
    let mut insert = connection.prepare(&sql::insert(table))?;
    for row in rows {
        insert.execute(params_from_iter(row))?;
    }
    let after = mark.after.as_deref().map(Cell::write_key).transpose()?;
    connection.execute(
        sql::SET_MARK,
        params![
            mark.source,
            limit(mark.table),
            after,
            Copied::write(&mark.copied)?
        ],
    )?;
    Ok(())
}
