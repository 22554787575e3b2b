//! The tables of the database, read and written as they are: a page is one statement, with an array for each column.

pub(super) mod statements;

use super::PostgresEngine;
use super::asking::{Ask, execute, row, rows};
use super::database::Values;
use super::failure::Failure;
use super::rows::{limit, unsigned};
use super::text::{Words, words};
use crate::archive::PAGE_BYTES;
use crate::engine::Tx;
use crate::library::index_words;
use crate::tables::{Cell, Cells, Copied, Destination, Kind, Mark, TABLES, Table, Tables};
use deadpool_postgres::Transaction;
use lango_core::{BoxFuture, StoreError};
use statements as sql;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

impl Tables for PostgresEngine {
    fn place(&self) -> String {
        self.database.shown().to_owned()
    }

    fn count_rows(&self, table: &'static Table) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            let rows = self.database.query(&sql::count(table), &[]).await?;
            let counts = self.values(&rows, |row| unsigned(row, 0))?;
            Ok(counts.first().copied().unwrap_or_default())
        })
    }

    fn page(
        &self,
        table: &'static Table,
        after: Option<Cells>,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Cells>, StoreError>> {
        Box::pin(async move {
            let key: Vec<Value<'_>> = after.iter().flatten().map(Value::of).collect();
            let (most, bytes) = (limit(most), limit(PAGE_BYTES));
            let mut values: Vec<&(dyn ToSql + Sync)> = vec![&most, &bytes];
            values.extend(key.iter().map(Value::as_value));
            let statement = sql::page(table, after.is_some());
            let rows = self.database.query(&statement, &values).await?;
            self.values(&rows, |row| cells(row, table))
        })
    }

    fn rows_of(
        &self,
        table: &'static Table,
        keys: Vec<Cells>,
    ) -> BoxFuture<'_, Result<Vec<Option<Cells>>, StoreError>> {
        Box::pin(async move {
            let arrays = columns(table, table.key, &keys).map_err(|f| self.database.said(f))?;
            let values: Vec<&(dyn ToSql + Sync)> = arrays.iter().map(Array::as_value).collect();
            let rows = self.database.query(&sql::by_keys(table), &values).await?;
            self.values(&rows, |row| {
                let is_there: bool = row.try_get(table.columns.len())?;
                is_there.then(|| cells(row, table)).transpose()
            })
        })
    }

    fn last_number(&self, table: &'static Table) -> BoxFuture<'_, Result<Option<i64>, StoreError>> {
        Box::pin(async move {
            if !sql::is_numbered(table) {
                return Ok(None);
            }
            let rows = self
                .database
                .query(sql::LAST_NUMBER, &[&table.name])
                .await?;
            let numbers = self.values(&rows, |row| Ok(row.try_get(0)?))?;
            Ok(numbers.first().copied().flatten())
        })
    }

    fn held(&self) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(async move {
            let rows = self.database.query(sql::HELD, &[]).await?;
            let held = self.values(&rows, |row| unsigned(row, 0))?;
            Ok(held.first().map_or(0, |held| *held as usize))
        })
    }
}

impl Destination for PostgresEngine {
    fn mark(&self) -> BoxFuture<'_, Result<Option<Mark>, StoreError>> {
        self.look((), |transaction, ()| Box::pin(mark(transaction)))
    }

    fn arrive(
        &self,
        table: &'static Table,
        rows: Vec<Cells>,
        mark: Mark,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.change((table, rows, mark), |transaction, (table, rows, mark)| {
            Box::pin(arrive(transaction, table, rows, mark))
        })
    }

    fn go_on_from(
        &self,
        numbers: Vec<(&'static Table, i64)>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.repeatable_change(numbers, |transaction, numbers| {
            Box::pin(async move {
                for table in TABLES.iter().filter(|table| sql::is_numbered(table)) {
                    let known = numbers.iter().find(|(named, _)| named.name == table.name);
                    let known = known.map_or(0, |(_, number)| *number);
                    let statement = sql::go_on_from(table);
                    rows(transaction, &statement, &[&table.name, &known]).await?;
                }
                Ok(())
            })
        })
    }

    fn arrived(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.repeatable_change((), |transaction, ()| {
            Box::pin(async move {
                execute(transaction, sql::FORGET_MARK, &[]).await?;
                Ok(())
            })
        })
    }
}

/// The move into this database that is not done.
pub(super) async fn mark(asked: &impl Ask) -> Result<Option<Mark>, Failure> {
    let has_one = row(asked, sql::HAS_MARK, &[]).await?;
    match has_one {
        Some(row) if row.try_get(0)? => {}
        _ => return Ok(None),
    }
    let Some(found) = row(asked, sql::MARK, &[]).await? else {
        return Ok(None);
    };
    let after = found.try_get::<_, Option<&str>>(2)?;
    Ok(Some(Mark {
        source: words(&found, 0)?.into_owned(),
        table: unsigned(&found, 1)? as usize,
        after: after.map(Cell::read_key).transpose()?,
        copied: Copied::read(found.try_get(3)?)?,
    }))
}

async fn arrive(
    transaction: &Transaction<'_>,
    table: &'static Table,
    given: &[Cells],
    mark: &Mark,
) -> Result<(), Failure> {
    execute(transaction, sql::MAKE_MARK, &[]).await?;
    let arrays = columns(table, table.columns.len(), given)?;
    let values: Vec<&(dyn ToSql + Sync)> = arrays.iter().map(Array::as_value).collect();
    execute(transaction, &sql::insert(table), &values).await?;
    if table.name == "library_chunks" {
        index_chunks(transaction, table, given).await?;
    }
    let after = mark.after.as_deref().map(Cell::write_key).transpose()?;
    let copied = Copied::write(&mark.copied)?;
    let values: Values<'_> = &[&Words(&mark.source), &limit(mark.table), &after, &copied];
    execute(transaction, sql::SET_MARK, values).await?;
    Ok(())
}

/// The words of chunks are found through a table of their own.
async fn index_chunks(
    transaction: &Transaction<'_>,
    table: &Table,
    given: &[Cells],
) -> Result<(), Failure> {
    let column = |name| table.columns.iter().position(|(column, _)| *column == name);
    let (Some(heading), Some(text)) = (column("heading"), column("text")) else {
        return Ok(());
    };
    let (mut keys, mut texts) = (Vec::new(), Vec::new());
    for row in given {
        if let (Cell::Integer(key), Cell::Text(heading), Cell::Text(text)) =
            (&row[0], &row[heading], &row[text])
        {
            keys.push(*key);
            texts.push(format!("{heading}\n{text}"));
        }
    }
    index_words(&mut Tx::transaction(transaction), &keys, texts.into_iter()).await
}

/// A value of a key.
enum Value<'a> {
    Text(Words<'a>),
    Integer(i64),
    Real(f64),
    Bytes(&'a [u8]),
    Null(Option<i64>),
}

impl<'a> Value<'a> {
    fn of(cell: &'a Cell) -> Self {
        match cell {
            Cell::Null => Self::Null(None),
            Cell::Text(text) => Self::Text(Words(text)),
            Cell::Integer(number) => Self::Integer(*number),
            Cell::Real(number) => Self::Real(*number),
            Cell::Bytes(bytes) => Self::Bytes(bytes),
        }
    }

    fn as_value(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Text(text) => text,
            Self::Integer(number) => number,
            Self::Real(number) => number,
            Self::Bytes(bytes) => bytes,
            Self::Null(null) => null,
        }
    }
}

/// A column of many rows.
enum Array<'a> {
    Text(Vec<Option<Words<'a>>>),
    Integer(Vec<Option<i64>>),
    Real(Vec<Option<f64>>),
    Bytes(Vec<Option<&'a [u8]>>),
}

impl Array<'_> {
    fn as_value(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Text(texts) => texts,
            Self::Integer(numbers) => numbers,
            Self::Real(numbers) => numbers,
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// The first columns of rows, each as an array.
fn columns<'a>(table: &Table, count: usize, rows: &'a [Cells]) -> Result<Vec<Array<'a>>, Failure> {
    let column = |at: usize| {
        let (name, kind) = table.columns[at];
        let cells = rows.iter().map(move |row| &row[at]);
        let wrong = || Failure::other(format!("`{}.{name}` holds what it cannot", table.name));
        Ok(match kind {
            Kind::Text => Array::Text(
                cells
                    .map(|cell| match cell {
                        Cell::Text(text) => Ok(Some(Words(text))),
                        Cell::Null => Ok(None),
                        _ => Err(wrong()),
                    })
                    .collect::<Result<_, _>>()?,
            ),
            Kind::Integer => Array::Integer(
                cells
                    .map(|cell| match cell {
                        Cell::Integer(number) => Ok(Some(*number)),
                        Cell::Null => Ok(None),
                        _ => Err(wrong()),
                    })
                    .collect::<Result<_, _>>()?,
            ),
            Kind::Real => Array::Real(
                cells
                    .map(|cell| match cell {
                        Cell::Real(number) => Ok(Some(*number)),
                        Cell::Null => Ok(None),
                        _ => Err(wrong()),
                    })
                    .collect::<Result<_, _>>()?,
            ),
            Kind::Bytes => Array::Bytes(
                cells
                    .map(|cell| match cell {
                        Cell::Bytes(bytes) => Ok(Some(bytes.as_slice())),
                        Cell::Null => Ok(None),
                        _ => Err(wrong()),
                    })
                    .collect::<Result<_, _>>()?,
            ),
        })
    };
    (0..count).map(column).collect()
}

fn cells(row: &Row, table: &Table) -> Result<Cells, Failure> {
    let cell = |(at, (_, kind)): (usize, &(&str, Kind))| {
        Ok(match kind {
            Kind::Text => {
                let text = super::text::optional_words(row, at)?;
                text.map_or(Cell::Null, |text| Cell::Text(text.into_owned()))
            }
            Kind::Integer => row
                .try_get::<_, Option<i64>>(at)?
                .map_or(Cell::Null, Cell::Integer),
            Kind::Real => row
                .try_get::<_, Option<f64>>(at)?
                .map_or(Cell::Null, Cell::Real),
            Kind::Bytes => row
                .try_get::<_, Option<Vec<u8>>>(at)?
                .map_or(Cell::Null, Cell::Bytes),
        })
    };
    table.columns.iter().enumerate().map(cell).collect()
}
