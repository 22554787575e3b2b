//! From rows to values.

use super::failure::Failure;
use super::text::words;
use lango_core::Text;
use tokio_postgres::Row;

/// A text of its own.
pub(super) fn text(row: &Row, column: usize) -> Result<Text, Failure> {
    Ok(Text::from(words(row, column)?))
}

/// A column that is never negative.
pub(super) fn unsigned(row: &Row, column: usize) -> Result<u64, Failure> {
    let number: i64 = row.try_get(column)?;
    u64::try_from(number).map_err(|_| Failure::other(format!("{number} is less than nothing")))
}

/// The same where there may be nothing.
pub(super) fn optional(row: &Row, column: usize) -> Result<Option<u64>, Failure> {
    let number: Option<i64> = row.try_get(column)?;
    number.map(|_| unsigned(row, column)).transpose()
}

/// A bound as PostgreSQL takes it; beyond its largest number there are no rows.
pub(super) fn bound(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number of rows.
pub(super) fn limit(most: usize) -> i64 {
    bound(most as u64)
}
