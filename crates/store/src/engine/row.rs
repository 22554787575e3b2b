//! Rows of both databases, and the types that their columns are read as.

use super::failure::Failure;
use super::text::plain;
use lango_core::{AgentName, ApprovalId, FrameId, SessionId, Text, Timestamp, TurnId, UserId};
use rusqlite::types::ValueRef;
use std::borrow::Cow;
use std::sync::Arc;
use tokio_postgres::types::{FromSql, Type};

/// A row of a result, while it is read.
#[derive(Clone, Copy)]
pub(crate) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r tokio_postgres::Row),
}

impl<'r> Row<'r> {
    pub(crate) fn get<T: Column<'r>>(self, column: usize) -> Result<T, Failure> {
        T::from_cell(self.cell(column)?).map_err(|problem| Failure::Column { column, problem })
    }

    /// Reads text, with U+FFFD in place of bytes that are not UTF-8: one damaged row must not hide the others.
    pub(crate) fn lossy(self, column: usize) -> Result<Cow<'r, str>, Failure> {
        match self.cell(column)? {
            Cell::Text(bytes) | Cell::Bytes(bytes) => Ok(String::from_utf8_lossy(bytes)),
            cell => Cow::from_cell(cell).map_err(|problem| Failure::Column { column, problem }),
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
    fn read<'r, T: FromSql<'r>>(
        row: &'r tokio_postgres::Row,
        column: usize,
        cell: impl FnOnce(T) -> Cell<'r>,
    ) -> Result<Cell<'r>, Failure> {
        Ok(row
            .try_get::<_, Option<T>>(column)?
            .map_or(Cell::Null, cell))
    }
    match row.columns().get(column).map(|column| column.type_()) {
        Some(&Type::INT8) => read(row, column, Cell::Int),
        Some(&Type::INT4) => read(row, column, |number: i32| Cell::Int(number.into())),
        Some(&Type::BOOL) => read(row, column, |is_true: bool| Cell::Int(is_true.into())),
        Some(&Type::FLOAT8) => read(row, column, Cell::Real),
        Some(&Type::FLOAT4) => read(row, column, |number: f32| Cell::Real(number.into())),
        Some(&Type::INT8_ARRAY) => read(row, column, Cell::Ints),
        Some(&Type::BYTEA) => read(row, column, Cell::Bytes),
        _ => read(row, column, |text| Cell::Plain(plain(text))),
    }
}

/// The value of a column.
pub(crate) enum Cell<'r> {
    Null,
    Int(i64),
    Real(f64),
    /// An array of PostgreSQL.
    Ints(Vec<i64>),
    /// Text of SQLite, which may not be UTF-8.
    Text(&'r [u8]),
    Plain(Cow<'r, str>),
    Bytes(&'r [u8]),
}

const NOT_TEXT: &str = "its value is not UTF-8 text";
const WRONG_TYPE: &str = "its value has the wrong type";

/// A type that a column can be read as. The error says what is wrong with the value.
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

impl<'r> Column<'r> for &'r [u8] {
    fn from_cell(cell: Cell<'r>) -> Result<Self, &'static str> {
        match cell {
            Cell::Bytes(bytes) => Ok(bytes),
            _ => Err(WRONG_TYPE),
        }
    }
}

/// Implements [`Column`] for each type with the expression behind it.
macro_rules! columns {
    ($($($kind:ty),* => |$cell:ident| $read:expr;)*) => {
        $($(impl Column<'_> for $kind {
            fn from_cell($cell: Cell<'_>) -> Result<Self, &'static str> {
                $read
            }
        })*)*
    };
}

columns! {
    i64 => |cell| match cell {
        Cell::Int(number) => Ok(number),
        _ => Err(WRONG_TYPE),
    };
    u64, u32, usize => |cell| Self::try_from(i64::from_cell(cell)?).map_err(|_| WRONG_TYPE);
    bool => |cell| Ok(i64::from_cell(cell)? != 0);
    Timestamp => |cell| u64::from_cell(cell).map(Self);
    f64 => |cell| match cell {
        Cell::Real(number) => Ok(number),
        Cell::Int(number) => Ok(number as f64),
        _ => Err(WRONG_TYPE),
    };
    Vec<i64> => |cell| match cell {
        Cell::Ints(numbers) => Ok(numbers),
        _ => Err(WRONG_TYPE),
    };
    String => |cell| Cow::from_cell(cell).map(Cow::into_owned);
    Text => |cell| Cow::from_cell(cell).map(Into::into);
    AgentName, ApprovalId, FrameId, SessionId, TurnId, UserId =>
        |cell| Text::from_cell(cell).map(Self::new);
    Vec<u8>, Arc<[u8]> => |cell| <&[u8]>::from_cell(cell).map(Into::into);
    crate::tables::Cell => |cell| Ok(match cell {
        Cell::Null => Self::Null,
        Cell::Int(number) => Self::Integer(number),
        Cell::Real(number) => Self::Real(number),
        Cell::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
        text => Self::Text(String::from_cell(text)?),
    });
}
