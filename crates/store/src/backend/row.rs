//! Rows of both databases, and the Rust types that their columns can be read as.

use super::Result;
use super::error::BackendError;
use super::text::unescape;
use super::value::Value;
use crate::agent_memory::Generation;
use crate::graph::{Confidence, Name};
use crate::library::CollectionId;
use lango_core::{
    AgentName, ApprovalId, FrameId, Provenance, SessionId, Text, Timestamp, Trust, TurnId, UserId,
};
use rusqlite::types::ValueRef;
use std::borrow::Cow;
use std::sync::Arc;
use tokio_postgres::types::{FromSql, Type};

/// A row of a query's result.
#[derive(Clone, Copy)]
pub(crate) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r tokio_postgres::Row),
}

impl<'r> Row<'r> {
    pub(crate) fn get<T: Column<'r>>(self, column: usize) -> Result<T> {
        T::from_value(self.value(column)?)
            .map_err(|problem| BackendError::Column { column, problem })
    }

    /// Reads a value from the row's first columns.
    pub(crate) fn read<T: FromRow<'r>>(self) -> Result<T> {
        T::read(self, &mut 0)
    }

    /// Reads text and replaces bytes that are not UTF-8 with U+FFFD, so that one damaged row does not make the others
    /// unreadable.
    pub(crate) fn lossy(self, column: usize) -> Result<Cow<'r, str>> {
        match self.value(column)? {
            Value::Bytes(Cow::Borrowed(bytes)) => Ok(String::from_utf8_lossy(bytes)),
            value => {
                Cow::from_value(value).map_err(|problem| BackendError::Column { column, problem })
            }
        }
    }

    fn value(self, column: usize) -> Result<Value<'r>> {
        match self {
            Self::Sqlite(row) => Ok(match row.get_ref(column)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => Value::Int(number),
                ValueRef::Real(number) => Value::Real(number),
                ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                    Ok(text) => Value::Text(text.into()),
                    Err(_) => Value::Bytes(bytes.into()),
                },
                ValueRef::Blob(bytes) => Value::Bytes(bytes.into()),
            }),
            Self::Postgres(row) => postgres_value(row, column),
        }
    }
}

fn postgres_value(row: &tokio_postgres::Row, column: usize) -> Result<Value<'_>> {
    fn read<'r, T: FromSql<'r>>(
        row: &'r tokio_postgres::Row,
        column: usize,
        value: impl FnOnce(T) -> Value<'r>,
    ) -> Result<Value<'r>> {
        Ok(row
            .try_get::<_, Option<T>>(column)?
            .map_or(Value::Null, value))
    }
    match row.columns().get(column).map(|column| column.type_()) {
        Some(&Type::INT8) => read(row, column, Value::Int),
        Some(&Type::INT4) => read(row, column, |number: i32| Value::Int(number.into())),
        Some(&Type::BOOL) => read(row, column, |is_true: bool| Value::Int(is_true.into())),
        Some(&Type::FLOAT8) => read(row, column, Value::Real),
        Some(&Type::FLOAT4) => read(row, column, |number: f32| Value::Real(number.into())),
        Some(&Type::INT8_ARRAY) => read(row, column, Value::Ints),
        Some(&Type::BYTEA) => read(row, column, |bytes: &[u8]| Value::Bytes(bytes.into())),
        _ => read(row, column, |text| Value::Text(unescape(text))),
    }
}

const NOT_TEXT: &str = "its value is not UTF-8 text";
const WRONG_TYPE: &str = "its value has the wrong type";

/// A type that a column can be read as. SQLite text that is not UTF-8 is passed as bytes. The error describes the problem.
pub(crate) trait Column<'r>: Sized {
    fn from_value(value: Value<'r>) -> Result<Self, &'static str>;
}

impl<'r, T: Column<'r>> Column<'r> for Option<T> {
    fn from_value(value: Value<'r>) -> Result<Self, &'static str> {
        match value {
            Value::Null => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }
}

impl<'r> Column<'r> for Cow<'r, str> {
    fn from_value(value: Value<'r>) -> Result<Self, &'static str> {
        match value {
            Value::Text(text) => Ok(text),
            Value::Bytes(_) => Err(NOT_TEXT),
            _ => Err(WRONG_TYPE),
        }
    }
}

impl<'r> Column<'r> for &'r [u8] {
    fn from_value(value: Value<'r>) -> Result<Self, &'static str> {
        match value {
            Value::Bytes(Cow::Borrowed(bytes)) => Ok(bytes),
            _ => Err(WRONG_TYPE),
        }
    }
}

/// A type that is read from one or more columns.
pub(crate) trait FromRow<'r>: Sized {
    /// Reads the value from `column` and the columns after it, then sets `column` to the first column that was not
    /// read.
    fn read(row: Row<'r>, column: &mut usize) -> Result<Self>;
}

impl<'r, T: Column<'r>> FromRow<'r> for T {
    fn read(row: Row<'r>, column: &mut usize) -> Result<Self> {
        *column += 1;
        row.get(*column - 1)
    }
}

/// Implements [`FromRow`] for structs by reading the fields in the given order.
macro_rules! records {
    ($($record:ident { $($field:ident),* })*) => {
        $(impl<'r> $crate::backend::FromRow<'r> for $record {
            fn read(row: $crate::backend::Row<'r>, column: &mut usize) -> $crate::backend::Result<Self> {
                $(let $field = $crate::backend::FromRow::read(row, column)?;)*
                Ok(Self { $($field),* })
            }
        })*
    };
}
pub(crate) use records;

records! {
    Provenance { name, trust }
}

/// Implements [`Column`] for the types on the left with the expression on the right.
macro_rules! columns {
    ($($($kind:ty),* => |$value:ident| $read:expr;)*) => {
        $($(impl Column<'_> for $kind {
            fn from_value($value: Value<'_>) -> Result<Self, &'static str> {
                $read
            }
        })*)*
    };
}

columns! {
    i64 => |value| match value {
        Value::Int(number) => Ok(number),
        _ => Err(WRONG_TYPE),
    };
    u64, u32, usize => |value| Self::try_from(i64::from_value(value)?).map_err(|_| WRONG_TYPE);
    bool => |value| Ok(i64::from_value(value)? != 0);
    Timestamp => |value| u64::from_value(value).map(Self);
    // A number, or in the library's tables a word. Any unknown value means untrusted.
    Trust => |value| {
        let is_trusted = match value {
            Value::Int(number) => number != 0,
            value => Cow::from_value(value)? == "trusted",
        };
        Ok(if is_trusted { Self::Trusted } else { Self::Untrusted })
    };
    f64 => |value| match value {
        Value::Real(number) => Ok(number),
        Value::Int(number) => Ok(number as f64),
        _ => Err(WRONG_TYPE),
    };
    Vec<i64> => |value| match value {
        Value::Ints(numbers) => Ok(numbers),
        _ => Err(WRONG_TYPE),
    };
    String => |value| Cow::from_value(value).map(Cow::into_owned);
    // A JSON array.
    Vec<String>, Vec<Text> => |value| {
        Ok(serde_json::from_str(&Cow::from_value(value)?).unwrap_or_default())
    };
    Generation => |value| match i64::from_value(value)? {
        0 => Ok(Self::Observation),
        1 => Ok(Self::First),
        2 => Ok(Self::Second),
        _ => Err(WRONG_TYPE),
    };
    CollectionId => |value| i64::from_value(value).map(Self);
    Name => |value| Text::from_value(value).map(Self::from_stored);
    // Only numbers from 0 to 1 are ever written.
    Confidence => |value| Ok(Self::new(f64::from_value(value)?).unwrap_or(Self::NONE));
    Text => |value| Cow::from_value(value).map(Into::into);
    AgentName, ApprovalId, FrameId, SessionId, TurnId, UserId =>
        |value| Text::from_value(value).map(Self::new);
    Vec<u8>, Arc<[u8]> => |value| <&[u8]>::from_value(value).map(Into::into);
    crate::tables::Cell => |value| Ok(match value {
        Value::Null => Self::Null,
        Value::Int(number) => Self::Integer(number),
        Value::Real(number) => Self::Real(number),
        Value::Bytes(bytes) => Self::Bytes(bytes.into_owned()),
        text => Self::Text(String::from_value(text)?),
    });
}
