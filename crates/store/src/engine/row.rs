//! Rows of both databases, and the types that their columns are read as.

use super::failure::Failure;
use super::text::plain;
use lango_core::{AgentName, ApprovalId, FrameId, SessionId, Text, Timestamp, TurnId, UserId};
use rusqlite::types::ValueRef;
use std::borrow::Cow;
use std::sync::Arc;
use tokio_postgres::types::Type;

/// A row of a result, while it is read.
#[derive(Clone, Copy)]
pub(crate) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r tokio_postgres::Row),
}

impl<'r> Row<'r> {
    /// The value of a column.
    pub(crate) fn get<T: Column<'r>>(self, column: usize) -> Result<T, Failure> {
        T::from_cell(self.cell(column)?).map_err(|problem| Failure::Column { column, problem })
    }

    /// A text with a sign in place of all that is no text: one damaged row must not hide the others.
    pub(crate) fn lossy(self, column: usize) -> Result<Cow<'r, str>, Failure> {
        match self.cell(column)? {
            Cell::Text(bytes) | Cell::Bytes(bytes) => Ok(String::from_utf8_lossy(bytes)),
            Cell::Plain(text) => Ok(text),
            _ => Err(Failure::Column {
                column,
                problem: WRONG_TYPE,
            }),
        }
    }

    fn cell(self, column: usize) -> Result<Cell<'r>, Failure> {
        match self {
            Self::Sqlite(row) => Ok(match row.get_ref(column)? {
                ValueRef::Null => Cell::Null,
                ValueRef::Integer(number) => Cell::Int(number),
                ValueRef::Real(number) => Cell::Real(number),
                ValueRef::Text(bytes) => Cell::Text(bytes),
                ValueRef::Blob(bytes) => Cell::Bytes(bytes),
            }),
            Self::Postgres(row) => postgres_cell(row, column),
        }
    }
}

fn postgres_cell(row: &tokio_postgres::Row, column: usize) -> Result<Cell<'_>, Failure> {
    let kind = row.columns().get(column).map(|column| column.type_());
    let cell = match kind {
        Some(&Type::INT8) => row.try_get::<_, Option<i64>>(column)?.map(Cell::Int),
        Some(&Type::INT4) => row
            .try_get::<_, Option<i32>>(column)?
            .map(|number| Cell::Int(number.into())),
        Some(&Type::BOOL) => row
            .try_get::<_, Option<bool>>(column)?
            .map(|claim| Cell::Int(claim.into())),
        Some(&Type::FLOAT8) => row.try_get::<_, Option<f64>>(column)?.map(Cell::Real),
        Some(&Type::FLOAT4) => row
            .try_get::<_, Option<f32>>(column)?
            .map(|number| Cell::Real(number.into())),
        Some(&Type::INT8_ARRAY) => row.try_get::<_, Option<_>>(column)?.map(Cell::Ints),
        Some(&Type::BYTEA) => row.try_get::<_, Option<&[u8]>>(column)?.map(Cell::Bytes),
        _ => row
            .try_get::<_, Option<&str>>(column)?
            .map(|text| Cell::Plain(plain(text))),
    };
    Ok(cell.unwrap_or(Cell::Null))
}

/// What a row has in one of its columns.
pub(crate) enum Cell<'r> {
    Null,
    Int(i64),
    Real(f64),
    /// An array of PostgreSQL.
    Ints(Vec<i64>),
    /// Text by SQLite's word, which does not check it.
    Text(&'r [u8]),
    /// Text for sure.
    Plain(Cow<'r, str>),
    Bytes(&'r [u8]),
}

const NOT_TEXT: &str = "bytes of it are not text";
const WRONG_TYPE: &str = "it holds what it cannot";

/// What a column can be read as, or what is wrong with it.
pub(crate) trait Column<'r>: Sized {
    fn from_cell(cell: Cell<'r>) -> Result<Self, &'static str>;
}

impl<'r, T: Column<'r>> Column<'r> for Option<T> {
    fn from_cell(cell: Cell<'r>) -> Result<Self, &'static str> {
        match cell {
            Cell::Null => Ok(None),
            cell => T::from_cell(cell).map(Some),
        }
    }
}

impl Column<'_> for i64 {
    fn from_cell(cell: Cell<'_>) -> Result<Self, &'static str> {
        match cell {
            Cell::Int(number) => Ok(number),
            _ => Err(WRONG_TYPE),
        }
    }
}

impl Column<'_> for Vec<i64> {
    fn from_cell(cell: Cell<'_>) -> Result<Self, &'static str> {
        match cell {
            Cell::Ints(numbers) => Ok(numbers),
            _ => Err(WRONG_TYPE),
        }
    }
}

macro_rules! numbers {
    ($($kind:ty),*) => {
        $(impl Column<'_> for $kind {
            fn from_cell(cell: Cell<'_>) -> Result<Self, &'static str> {
                Self::try_from(i64::from_cell(cell)?).map_err(|_| WRONG_TYPE)
            }
        })*
    };
}
numbers!(u64, u32, usize);

impl Column<'_> for bool {
    fn from_cell(cell: Cell<'_>) -> Result<Self, &'static str> {
        Ok(i64::from_cell(cell)? != 0)
    }
}

impl Column<'_> for f64 {
    fn from_cell(cell: Cell<'_>) -> Result<Self, &'static str> {
        match cell {
            Cell::Real(number) => Ok(number),
            Cell::Int(number) => Ok(number as f64),
            _ => Err(WRONG_TYPE),
        }
    }
}

impl Column<'_> for Timestamp {
    fn from_cell(cell: Cell<'_>) -> Result<Self, &'static str> {
        u64::from_cell(cell).map(Self)
    }
}

impl<'r> Column<'r> for Cow<'r, str> {
    fn from_cell(cell: Cell<'r>) -> Result<Self, &'static str> {
        match cell {
            Cell::Text(bytes) => std::str::from_utf8(bytes)
                .map(Cow::Borrowed)
                .map_err(|_| NOT_TEXT),
            Cell::Plain(text) => Ok(text),
            _ => Err(WRONG_TYPE),
        }
    }
}

impl<'r> Column<'r> for String {
    fn from_cell(cell: Cell<'r>) -> Result<Self, &'static str> {
        Cow::from_cell(cell).map(Cow::into_owned)
    }
}

impl<'r> Column<'r> for Text {
    fn from_cell(cell: Cell<'r>) -> Result<Self, &'static str> {
        Cow::from_cell(cell).map(Into::into)
    }
}

macro_rules! ids {
    ($($kind:ty),*) => {
        $(impl<'r> Column<'r> for $kind {
            fn from_cell(cell: Cell<'r>) -> Result<Self, &'static str> {
                Text::from_cell(cell).map(Self::new)
            }
        })*
    };
}
ids!(AgentName, ApprovalId, FrameId, SessionId, TurnId, UserId);

impl<'r> Column<'r> for &'r [u8] {
    fn from_cell(cell: Cell<'r>) -> Result<Self, &'static str> {
        match cell {
            Cell::Bytes(bytes) => Ok(bytes),
            _ => Err(WRONG_TYPE),
        }
    }
}

impl<'r> Column<'r> for Vec<u8> {
    fn from_cell(cell: Cell<'r>) -> Result<Self, &'static str> {
        <&[u8]>::from_cell(cell).map(<[u8]>::to_vec)
    }
}

impl<'r> Column<'r> for Arc<[u8]> {
    fn from_cell(cell: Cell<'r>) -> Result<Self, &'static str> {
        <&[u8]>::from_cell(cell).map(Into::into)
    }
}

impl<'r> Column<'r> for crate::tables::Cell {
    fn from_cell(cell: Cell<'r>) -> Result<Self, &'static str> {
        Ok(match cell {
            Cell::Null => Self::Null,
            Cell::Int(number) => Self::Integer(number),
            Cell::Real(number) => Self::Real(number),
            Cell::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            text => Self::Text(String::from_cell(text)?),
        })
    }
}
