//! The digest of the rows that were copied of a table. It shows later which of the two databases has changed.

use super::Cell;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The digest of rows in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RowDigest {
    pub rows: u64,
    /// A hash that covers all of them.
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
