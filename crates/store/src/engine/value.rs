//! The values of statements, as both databases take them.
//!
//! Claims are stored as 0 and 1. A number that is larger than the databases know is their largest, which as a bound is as good;
//! where it would be stored, [`stored`] refuses it. Text may have every character: see [`text`](super::text) for PostgreSQL.

use super::failure::Failure;
use super::text::Words;
use lango_core::{AgentName, ApprovalId, FrameId, SessionId, Text, Timestamp, TurnId, UserId};
use rusqlite::types::{ToSqlOutput, Value as Owned, ValueRef};
use std::error::Error;
use std::sync::Arc;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, WrongType, to_sql_checked};

/// A value of a statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
    /// A `bigint[]`; for SQLite a text that `json_each` takes apart.
    Ints(Vec<i64>),
    /// A `text[]`; for SQLite a text that `json_each` takes apart.
    Texts(Vec<&'a str>),
    /// A `bytea[]`; SQLite has none.
    Blobs(Vec<&'a [u8]>),
}

/// What can be a value of a statement.
pub(crate) trait ToValue {
    fn to_value(&self) -> Value<'_>;
}

/// The values of a statement, in the order of their numbers.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        &[$($crate::engine::ToValue::to_value(&$value)),*]
    };
}
pub(crate) use values;

/// One row of values for [`Tx::query_bulk`](super::Tx::query_bulk).
macro_rules! bulk_row {
    ($($value:expr),* $(,)?) => {{
        use $crate::engine::ToValue as _;
        vec![$(($value).to_value()),*]
    }};
}
pub(crate) use bulk_row;

/// A number that is stored as it is, or the error that there is no room for it.
pub(crate) fn stored(number: u64) -> Result<i64, Failure> {
    i64::try_from(number)
        .map_err(|_| Failure::other(format!("{number} is more than the database can hold")))
}

impl ToValue for Value<'_> {
    fn to_value(&self) -> Value<'_> {
        self.clone()
    }
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> Value<'_> {
        (**self).to_value()
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, ToValue::to_value)
    }
}

macro_rules! numbers {
    ($($kind:ty),*) => {
        $(impl ToValue for $kind {
            fn to_value(&self) -> Value<'_> {
                Value::Int(i64::try_from(*self).unwrap_or(i64::MAX))
            }
        })*
    };
}
numbers!(i64, i32, u32, u64, usize, bool);

impl ToValue for Timestamp {
    fn to_value(&self) -> Value<'_> {
        self.0.to_value()
    }
}

impl ToValue for Words<'_> {
    fn to_value(&self) -> Value<'_> {
        Value::Text(self.0)
    }
}

impl ToValue for f64 {
    fn to_value(&self) -> Value<'_> {
        Value::Real(*self)
    }
}

impl ToValue for str {
    fn to_value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl ToValue for std::borrow::Cow<'_, str> {
    fn to_value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

macro_rules! texts {
    ($($kind:ty),*) => {
        $(impl ToValue for $kind {
            fn to_value(&self) -> Value<'_> {
                Value::Text(self)
            }
        })*
    };
}
texts!(String, Text);

macro_rules! ids {
    ($($kind:ty),*) => {
        $(impl ToValue for $kind {
            fn to_value(&self) -> Value<'_> {
                Value::Text(self.as_str())
            }
        })*
    };
}
ids!(AgentName, ApprovalId, FrameId, SessionId, TurnId, UserId);

impl ToValue for [u8] {
    fn to_value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl ToValue for Vec<u8> {
    fn to_value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl ToValue for Arc<[u8]> {
    fn to_value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl ToValue for crate::tables::Cell {
    fn to_value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Text(text) => Value::Text(text),
            Self::Integer(number) => Value::Int(*number),
            Self::Real(number) => Value::Real(*number),
            Self::Bytes(bytes) => Value::Bytes(bytes),
        }
    }
}

impl ToValue for [i64] {
    fn to_value(&self) -> Value<'_> {
        Value::Ints(self.to_vec())
    }
}

impl ToValue for Vec<i64> {
    fn to_value(&self) -> Value<'_> {
        Value::Ints(self.clone())
    }
}

macro_rules! lists_of_texts {
    ($($kind:ty),*) => {
        $(impl ToValue for [$kind] {
            fn to_value(&self) -> Value<'_> {
                Value::Texts(self.iter().map(AsRef::as_ref).collect())
            }
        }

        impl ToValue for Vec<$kind> {
            fn to_value(&self) -> Value<'_> {
                self.as_slice().to_value()
            }
        })*
    };
}
lists_of_texts!(&str, String, Text);

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let json = |text: serde_json::Result<String>| match text {
            Ok(text) => Ok(ToSqlOutput::Owned(Owned::Text(text))),
            Err(error) => Err(rusqlite::Error::ToSqlConversionFailure(Box::new(error))),
        };
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
            Self::Ints(numbers) => return json(serde_json::to_string(numbers)),
            Self::Texts(texts) => return json(serde_json::to_string(texts)),
            Self::Blobs(_) => return Err(rusqlite::Error::InvalidQuery),
        }))
    }
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) => match *kind {
                Type::INT8 => number.to_sql(kind, out),
                Type::INT4 => i32::try_from(*number)?.to_sql(kind, out),
                Type::INT2 => i16::try_from(*number)?.to_sql(kind, out),
                Type::BOOL => (*number != 0).to_sql(kind, out),
                _ => wrong::<i64>(kind),
            },
            Self::Real(number) if *kind == Type::FLOAT8 => number.to_sql(kind, out),
            Self::Real(_) => wrong::<f64>(kind),
            Self::Text(text) if *kind == Type::JSONB => {
                // The version of the format, then the text; JSON has no NUL that would have to be written otherwise.
                out.extend_from_slice(&[1]);
                out.extend_from_slice(text.as_bytes());
                Ok(IsNull::No)
            }
            Self::Text(text) if Words::accepts(kind) => Words(text).to_sql(kind, out),
            Self::Text(_) => wrong::<&str>(kind),
            Self::Bytes(bytes) if *kind == Type::BYTEA => bytes.to_sql(kind, out),
            Self::Bytes(_) => wrong::<&[u8]>(kind),
            Self::Ints(numbers) if *kind == Type::INT8_ARRAY => numbers.to_sql(kind, out),
            Self::Ints(_) => wrong::<&[i64]>(kind),
            Self::Texts(texts) if <&[&str]>::accepts(kind) => {
                let words: Vec<_> = texts.iter().map(|text| Words(text)).collect();
                words.to_sql(kind, out)
            }
            Self::Texts(_) => wrong::<&[&str]>(kind),
            Self::Blobs(blobs) if *kind == Type::BYTEA_ARRAY => blobs.to_sql(kind, out),
            Self::Blobs(_) => wrong::<&[&[u8]]>(kind),
        }
    }

    /// Which value goes with which type is checked when it is written.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn wrong<T>(kind: &Type) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
    Err(Box::new(WrongType::new::<T>(kind.clone())))
}
