//! Every table as data, so that the same code copies all of them from one database to another.
//!
//! Indices, the library's full-text index among them, are not copied but built in the target.

#![allow(missing_docs, reason = "the names say it")]

mod copy;
mod list;

pub(crate) use copy::checkpoint;
use lango_core::StoreError;
pub use list::{CACHES, TABLES};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The type of a column, the same in every database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    Text,
    /// Also booleans, as 0 and 1.
    Integer,
    Real,
    Bytes,
}

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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
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
}

/// A row, in the order of its table's columns.
pub type TableRow = Vec<Cell>;

/// The most rows that are read and written at once.
pub const ROWS_AT_ONCE: usize = 500;

/// The digest of a table's copied rows, in order. Comparing digests at the end of a transfer shows which database changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RowDigest {
    pub rows: u64,
    /// The hash of the last row, which covers the hash of the row before it.
    hash: Vec<u8>,
}

impl RowDigest {
    pub fn add(&mut self, row: &[Cell]) {
        let mut hasher = Sha256::new();
        hasher.update(&self.hash);
        let mut field = |kind: u8, bytes: &[u8]| {
            hasher.update([kind]);
            hasher.update((bytes.len() as u64).to_be_bytes());
            hasher.update(bytes);
        };
        for cell in row {
            match cell {
                Cell::Null => field(0, &[]),
                Cell::Text(text) => field(1, text.as_bytes()),
                Cell::Integer(number) => field(2, &number.to_be_bytes()),
                // The sign of zero is not the same in every database.
                Cell::Real(number) => field(3, &(number + 0.0).to_bits().to_be_bytes()),
                Cell::Bytes(bytes) => field(4, bytes),
            }
        }
        self.hash = hasher.finalize().to_vec();
        self.rows += 1;
    }
}

/// The progress of a transfer.
#[derive(Debug, Clone, PartialEq)]
pub struct TransferCheckpoint {
    /// The place of the source.
    pub source: String,
    /// The index in [`TABLES`] of the table that is copied.
    pub table: usize,
    /// The key of the last row that was copied.
    pub after: Option<TableRow>,
    /// The digests of the tables copied so far, this one included.
    pub copied: Vec<RowDigest>,
}

/// The purpose of opening a database.
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
