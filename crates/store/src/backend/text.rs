//! Escaping of text for PostgreSQL.
//!
//! PostgreSQL's text cannot contain NUL, but names from models and remote agents can. So NUL is stored as U+0001 followed by `0`,
//! and U+0001 as U+0001 followed by `1`; all other text is stored unchanged. Every text column is escaped and unescaped here.

use serde::{Serialize, Serializer};
use std::borrow::Cow;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

const MARK: char = '\u{1}';

/// Text as a statement's value, which is escaped when it is written to PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SqlText<'a>(pub &'a str);

impl Serialize for SqlText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&escape(self.0))
    }
}

impl ToSql for SqlText<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        escape(self.0).as_ref().to_sql(kind, out)
    }

    fn accepts(kind: &Type) -> bool {
        <&str as ToSql>::accepts(kind)
    }

    to_sql_checked!();
}

/// Formats bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    base16ct::lower::encode_string(bytes)
}

fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', MARK]) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(MARK, "\u{1}1").replace('\0', "\u{1}0"))
}

/// Returns the original form of text that was escaped for PostgreSQL.
pub(crate) fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains(MARK) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\u{1}0", "\0").replace("\u{1}1", "\u{1}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unescaping_returns_the_original_text() {
        for text in [
            "",
            "plain",
            "\0",
            "\u{1}",
            "a\0b\u{1}0\u{1}1\0",
            "\u{1}\u{1}0",
            "ä\0€",
        ] {
            let escaped = escape(text);
            assert!(!escaped.contains('\0'));
            assert_eq!(unescape(&escaped), text);
        }
        assert!(matches!(escape("plain"), Cow::Borrowed(_)));
    }
}
