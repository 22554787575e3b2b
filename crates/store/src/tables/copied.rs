//! What was copied of a table, as a number and a hash over its rows, so that it can be told later which of two databases is not
//! what it was.

use super::Cell;
use lango_core::StoreError;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Rows of a table in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Copied {
    /// How many.
    pub rows: u64,
    /// A hash that covers all of them.
    hash: Vec<u8>,
}

impl Copied {
    /// Takes the next row.
    pub fn take(&mut self, row: &[Cell]) {
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

    /// As a text that a destination can keep.
    pub(crate) fn write(copied: &[Self]) -> Result<String, StoreError> {
        serde_json::to_string(copied).map_err(|error| StoreError::Failed {
            detail: format!("how far a move is cannot be written: {error}"),
        })
    }

    /// From such a text.
    pub(crate) fn read(text: &str) -> Result<Vec<Self>, StoreError> {
        serde_json::from_str(text).map_err(|error| StoreError::Failed {
            detail: format!("how far the move is cannot be read: {error}"),
        })
    }
}
