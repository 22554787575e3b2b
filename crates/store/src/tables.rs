//! Every table as data, so that the same code copies all of them from one database to another.
//!
//! Indices, the library's full-text index among them, are not copied but built in the target.

#![allow(missing_docs, reason = "the names say it")]

mod copy;
mod digest;
mod list;

use crate::Answer;
use crate::archive::SessionArchive;
pub(crate) use copy::checkpoint;
pub use digest::RowDigest;
use lango_core::StoreError;
pub use list::{CACHES, TABLES};
use serde_json::Value;

/// The type of a column, the same in every database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    Text,
    /// Also booleans, as 0 and 1.
    Integer,
    Real,
    Bytes,
}

/// A table.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    pub name: &'static str,
    /// How many of its columns, the first ones, are the key.
    pub key: usize,
    pub columns: &'static [(&'static str, ColumnType)],
    /// The order in which its rows can be inserted.
    pub order: RowOrder,
}

impl Table {
    /// Returns whether the database numbers the rows.
    fn is_numbered(&self) -> bool {
        self.key == 1 && self.columns.first() == Some(&("id", ColumnType::Integer))
    }
}

/// The order of a table's rows by their keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOrder {
    Ascending,
    /// Rows refer to later ones.
    Descending,
}

/// The value of a column of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    Text(String),
    Integer(i64),
    Real(f64),
    Bytes(Vec<u8>),
}

impl Cell {
    /// Returns about how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Null | Self::Integer(_) | Self::Real(_) => 8,
        }
    }

    /// Encodes a key, which has texts and integers, for a checkpoint.
    pub(crate) fn write_key(key: &[Self]) -> Result<String, StoreError> {
        let value = |cell: &Self| match cell {
            Self::Text(text) => Ok(Value::from(text.as_str())),
            Self::Integer(number) => Ok(Value::from(*number)),
            other => Err(not_a_key(&format!("{other:?}"))),
        };
        let values: Vec<Value> = key.iter().map(value).collect::<Result<_, _>>()?;
        Ok(Value::Array(values).to_string())
    }

    pub(crate) fn read_key(text: &str) -> Result<TableRow, StoreError> {
        let values: Vec<Value> = serde_json::from_str(text).map_err(|_| not_a_key(text))?;
        let cell = |value: Value| match value {
            Value::String(text) => Ok(Self::Text(text)),
            Value::Number(number) => number.as_i64().map(Self::Integer).ok_or(not_a_key(text)),
            _ => Err(not_a_key(text)),
        };
        values.into_iter().map(cell).collect()
    }
}

fn not_a_key(text: &str) -> StoreError {
    StoreError::Failed {
        detail: format!("`{text}` is not the key of a row"),
    }
}

/// A row, in the order of its table's columns.
pub type TableRow = Vec<Cell>;

/// The most rows that are read and written at once.
pub const ROWS_AT_ONCE: usize = 500;

/// A database whose tables can be copied.
pub trait TransferSource: SessionArchive {
    /// Returns where it is, without secrets.
    fn place(&self) -> String;

    fn count_rows(&self, table: &'static Table) -> Answer<'_, u64>;

    /// Reads rows of a table in its order, after a key. A page of large rows has fewer than `limit`, but at least one if
    /// there is one.
    fn table_page(
        &self,
        table: &'static Table,
        after: Option<TableRow>,
        limit: usize,
    ) -> Answer<'_, Vec<TableRow>>;

    /// Returns the last id that a table gave a row, for tables that never reuse one.
    fn last_row_id(&self, table: &'static Table) -> Answer<'_, Option<i64>>;

    /// Counts the sessions that a process has locked or leased.
    fn count_leases(&self) -> Answer<'_, usize>;
}

/// How far a transfer is.
#[derive(Debug, Clone, PartialEq)]
pub struct TransferCheckpoint {
    /// The place of the source.
    pub source: String,
    /// The index in [`TABLES`] of the table that is copied.
    pub table: usize,
    /// The key of the last row that was copied.
    pub after: Option<TableRow>,
    /// What was copied of each table up to this one.
    pub copied: Vec<RowDigest>,
}

/// What a database is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenMode {
    /// Refuses the target of an unfinished transfer.
    #[default]
    Normal,
    TransferTarget,
}

impl TransferCheckpoint {
    /// Returns the error of opening a database with this checkpoint. `place` names it in errors, `target` in the command.
    pub(crate) fn refusal(&self, place: String, target: &str) -> StoreError {
        let detail = format!(
            "a move from {} into it is not finished; resume it with: lango store move '{}' '{target}'",
            self.source, self.source
        );
        StoreError::Unreadable { place, detail }
    }
}

/// A database that everything is moved to. It stores the checkpoint in the transactions that insert rows.
pub trait TransferTarget: TransferSource {
    /// Reads the checkpoint of an unfinished transfer.
    fn checkpoint(&self) -> Answer<'_, Option<TransferCheckpoint>>;

    /// Inserts rows into a table and stores the checkpoint, in one transaction.
    fn insert_rows(
        &self,
        table: &'static Table,
        rows: Vec<TableRow>,
        checkpoint: TransferCheckpoint,
    ) -> Answer<'_, ()>;

    /// Makes the next ids of tables greater than these and than the ids of all rows.
    fn raise_row_ids(&self, last: Vec<(&'static Table, i64)>) -> Answer<'_, ()>;

    /// Removes the checkpoint.
    fn finish_transfer(&self) -> Answer<'_, ()>;
}
