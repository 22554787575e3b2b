//! From rows to values.

use rusqlite::Row;
use std::borrow::Cow;

/// A column that is never negative.
pub(super) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

/// A text with a sign in place of all that is no text.
pub(super) fn lossy<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<Cow<'a, str>> {
    Ok(String::from_utf8_lossy(row.get_ref(column)?.as_bytes()?))
}

/// A bound as SQLite takes it; beyond its largest number there are no rows.
pub(super) fn bound(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A limit as SQLite takes it.
pub(super) fn limit(most: usize) -> i64 {
    bound(most as u64)
}
