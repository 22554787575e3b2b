//! Every table that lango keeps, as data, so that all of it can be moved from one database to another by the same few lines.
//!
//! What is not here is made anew where rows arrive: indices, among them that of the library's words, and the numbers that
//! tables give their next rows.

mod copied;
mod list;

use crate::archive::Archive;
pub use copied::Copied;
use lango_core::{BoxFuture, StoreError};
pub use list::{CACHES, TABLES};
use serde_json::Value;

/// What a column holds, the same in every database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number, or a truth as 0 or 1.
    Integer,
    /// A number.
    Real,
    /// Bytes.
    Bytes,
}

/// A table.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// How many of its columns, the first ones, are the key.
    pub key: usize,
    /// All of them.
    pub columns: &'static [(&'static str, Kind)],
    /// In which order its rows can arrive.
    pub order: Order,
}

/// The order of a table's rows by their keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The least first.
    Ascending,
    /// The greatest first: rows name others that came after them.
    Descending,
}

/// What is in a column of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Nothing.
    Null,
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Real(f64),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Cell {
    /// About how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Null | Self::Integer(_) | Self::Real(_) => 8,
        }
    }

    /// A key as a text that a destination can keep. Keys are texts and whole numbers.
    pub(crate) fn write_key(key: &[Self]) -> Result<String, StoreError> {
        let value = |cell: &Self| match cell {
            Self::Text(text) => Ok(Value::from(text.as_str())),
            Self::Integer(number) => Ok(Value::from(*number)),
            other => Err(no_key(&format!("{other:?}"))),
        };
        let values: Vec<Value> = key.iter().map(value).collect::<Result<_, _>>()?;
        Ok(Value::Array(values).to_string())
    }

    /// The key of such a text.
    pub(crate) fn read_key(text: &str) -> Result<Cells, StoreError> {
        let values: Vec<Value> = serde_json::from_str(text).map_err(|_| no_key(text))?;
        let cell = |value: Value| match value {
            Value::String(text) => Ok(Self::Text(text)),
            Value::Number(number) => number.as_i64().map(Self::Integer).ok_or(no_key(text)),
            _ => Err(no_key(text)),
        };
        values.into_iter().map(cell).collect()
    }
}

fn no_key(found: &str) -> StoreError {
    StoreError::Failed {
        detail: format!("`{found}` is no key of a row"),
    }
}

/// A row, in the order of its table's columns.
pub type Cells = Vec<Cell>;

/// How many rows are read and written at once.
pub const ROWS_AT_ONCE: usize = 500;

/// A database whose tables can be read as they are.
pub trait Tables: Archive {
    /// Where it is, without secrets.
    fn place(&self) -> String;

    /// How many rows a table has.
    fn count_rows(&self, table: &'static Table) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Rows of a table in its order, after a key. There may be fewer than were asked for where they are large, but one at
    /// least as long as there is one.
    fn page(
        &self,
        table: &'static Table,
        after: Option<Cells>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Cells>, StoreError>>;

    /// The rows with these keys; nothing for those that are not there.
    fn rows_of(
        &self,
        table: &'static Table,
        keys: Vec<Cells>,
    ) -> BoxFuture<'_, Result<Vec<Option<Cells>>, StoreError>>;

    /// The last number that a table gave a row by itself, for tables that never give one twice.
    fn last_number(&self, table: &'static Table) -> BoxFuture<'_, Result<Option<i64>, StoreError>>;

    /// How many sessions somebody holds at this moment.
    fn held(&self) -> BoxFuture<'_, Result<usize, StoreError>>;
}

/// How far a move is: which table is next, and the key of the last row of it that arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Where everything comes from.
    pub source: String,
    /// The table, by its place in [`TABLES`].
    pub table: usize,
    /// The key; none before the first row.
    pub after: Option<Cells>,
    /// What was copied of each table up to this one.
    pub copied: Vec<Copied>,
}

/// What a database is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UseAs {
    /// To be used: one with a part of something that was to be moved there is refused.
    #[default]
    Store,
    /// To move something there, which may have begun.
    Destination,
}

impl Mark {
    /// Why a database with such a mark is not to be used yet, `place` being what errors call it and `target` what a move
    /// does.
    pub(crate) fn refusal(&self, place: String, target: &str) -> StoreError {
        let detail = format!(
            "a move from {} into it is not done; go on with: lango store move '{}' '{target}'",
            self.source, self.source
        );
        StoreError::Unreadable { place, detail }
    }
}

/// A database that everything is moved to. It keeps how far the move is itself, in the same transactions.
pub trait Destination: Tables {
    /// The move that is under way, if there is one.
    fn mark(&self) -> BoxFuture<'_, Result<Option<Mark>, StoreError>>;

    /// Adds rows to a table and notes how far it is now, together.
    fn arrive(
        &self,
        table: &'static Table,
        rows: Vec<Cells>,
        mark: Mark,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Sees to it that no table gives a number again that was given: at least these, and none that a row has.
    fn go_on_from(
        &self,
        numbers: Vec<(&'static Table, i64)>,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Nothing is under way any more.
    fn arrived(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}
