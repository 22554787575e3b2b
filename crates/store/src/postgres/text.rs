//! Text columns of rows.

use super::failure::Failure;
pub(super) use crate::engine::text::Words;
use crate::engine::text::plain;
use std::borrow::Cow;
use tokio_postgres::Row;

/// The text of a column.
pub(super) fn words<'r>(row: &'r Row, column: usize) -> Result<Cow<'r, str>, Failure> {
    Ok(plain(row.try_get(column)?))
}

/// The text of a column that may be empty of any.
pub(super) fn optional_words<'r>(
    row: &'r Row,
    column: usize,
) -> Result<Option<Cow<'r, str>>, Failure> {
    Ok(row.try_get::<_, Option<&str>>(column)?.map(plain))
}
