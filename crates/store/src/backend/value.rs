//! Parameter values of statements, and their conversion for both databases.
//!
//! Booleans are stored as 0 and 1. An unsigned number that exceeds `i64::MAX` is clamped to it, which is harmless in a
//! comparison; for a number that is written, [`checked_i64`] fails instead. Text may contain any character: see
//! [`text`](super::text) for PostgreSQL.

use super::error::BackendError;
use super::text::SqlText;
use crate::agent_memory::Generation;
use lango_core::{
    AgentName, ApprovalId, FrameId, SessionId, Text, Timestamp, Trust, TurnId, UserId,
};
use rusqlite::types::{ToSqlOutput, Value as Owned, ValueRef};
use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, WrongType, to_sql_checked};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    /// A `bigint[]` in PostgreSQL; in SQLite a JSON array for `json_each`.
    Ints(Vec<i64>),
    /// A `text[]` in PostgreSQL; in SQLite a JSON array for `json_each`.
    Texts(Vec<Cow<'a, str>>),
    /// A `bytea[]`, only for PostgreSQL.
    Blobs(Vec<Cow<'a, [u8]>>),
}

impl Value<'_> {
    pub(crate) fn into_owned(self) -> Value<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let owned_bytes = |bytes: Cow<'_, [u8]>| Cow::Owned(bytes.into_owned());
        match self {
            Self::Null => Value::Null,
            Self::Int(number) => Value::Int(number),
            Self::Real(number) => Value::Real(number),
            Self::Text(text) => Value::Text(owned(text)),
            Self::Bytes(bytes) => Value::Bytes(owned_bytes(bytes)),
            Self::Ints(numbers) => Value::Ints(numbers),
            Self::Texts(texts) => Value::Texts(texts.into_iter().map(owned).collect()),
            Self::Blobs(blobs) => Value::Blobs(blobs.into_iter().map(owned_bytes).collect()),
        }
    }
}

pub(crate) trait ToValue {
    fn to_value(&self) -> Value<'_>;
}

/// Builds the values of a statement, in the order of `$1`, `$2` and so on.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        &[$($crate::backend::ToValue::to_value(&$value)),*]
    };
}
pub(crate) use values;

/// Builds one row of values for [`Tx::batch`](super::Tx::batch).
macro_rules! bulk_row {
    ($($value:expr),* $(,)?) => {{
        use $crate::backend::ToValue as _;
        vec![$(($value).to_value()),*]
    }};
}
pub(crate) use bulk_row;

/// Converts a number that will be stored. Fails if it exceeds `i64::MAX`, the largest integer of both databases.
pub(crate) fn checked_i64(number: u64) -> Result<i64, BackendError> {
    i64::try_from(number)
        .map_err(|_| BackendError::other(format!("{number} is too large for the database")))
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

/// Implements [`ToValue`] for the types on the left with the expression on the right.
macro_rules! to_value {
    ($($($kind:ty),* => |$this:ident| $value:expr;)*) => {
        $($(impl ToValue for $kind {
            fn to_value(&self) -> Value<'_> {
                let $this = self;
                $value
            }
        })*)*
    };
}

to_value! {
    Value<'_> => |value| value.clone();
    i64 => |number| Value::Int(*number);
    i32, u32, bool => |number| Value::Int(i64::from(*number));
    u64, usize => |number| Value::Int(i64::try_from(*number).unwrap_or(i64::MAX));
    Timestamp => |time| time.0.to_value();
    Trust => |trust| Value::Int((*trust == Trust::Trusted).into());
    Generation => |generation| Value::Int(*generation as i64);
    f64 => |number| Value::Real(*number);
    str, String, Text, Cow<'_, str> => |text| Value::Text(Cow::Borrowed(text));
    SqlText<'_> => |words| Value::Text(Cow::Borrowed(words.0));
    AgentName, ApprovalId, FrameId, SessionId, TurnId, UserId => |id| Value::Text(Cow::Borrowed(id.as_str()));
    [u8], Vec<u8>, Arc<[u8]> => |bytes| Value::Bytes(Cow::Borrowed(bytes));
    [i64], Vec<i64> => |numbers| Value::Ints(numbers.to_vec());
    [&str], Vec<&str> => |texts| Value::Texts(texts.iter().copied().map(Cow::Borrowed).collect());
    [String], Vec<String>, [Text], Vec<Text> =>
        |texts| Value::Texts(texts.iter().map(|text| Cow::Borrowed(text.as_ref())).collect());
    crate::tables::Cell => |cell| match cell {
        Self::Null => Value::Null,
        Self::Text(text) => text.to_value(),
        Self::Integer(number) => Value::Int(*number),
        Self::Real(number) => Value::Real(*number),
        Self::Bytes(bytes) => bytes.to_value(),
    };
}

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
                _ => Err(Box::new(WrongType::new::<i64>(kind.clone()))),
            },
            Self::Real(number) if *kind == Type::FLOAT8 => number.to_sql(kind, out),
            Self::Text(text) if *kind == Type::JSONB => {
                // The format's version, then the text. JSON text never contains a raw NUL, so nothing needs escaping.
                out.extend_from_slice(&[1]);
                out.extend_from_slice(text.as_bytes());
                Ok(IsNull::No)
            }
            Self::Text(text) if SqlText::accepts(kind) => SqlText(text).to_sql(kind, out),
            Self::Bytes(bytes) if *kind == Type::BYTEA => bytes.as_ref().to_sql(kind, out),
            Self::Ints(numbers) if *kind == Type::INT8_ARRAY => numbers.to_sql(kind, out),
            Self::Texts(texts) if <&[&str]>::accepts(kind) => {
                let words: Vec<_> = texts.iter().map(|text| SqlText(text)).collect();
                words.to_sql(kind, out)
            }
            Self::Blobs(blobs) if *kind == Type::BYTEA_ARRAY => {
                let blobs: Vec<&[u8]> = blobs.iter().map(AsRef::as_ref).collect();
                blobs.to_sql(kind, out)
            }
            _ => Err(Box::new(WrongType::new::<Self>(kind.clone()))),
        }
    }

    /// Accepts any type here; `to_sql` checks that the value fits the type.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
