//! Text on its way to PostgreSQL and back.
//!
//! PostgreSQL's text cannot have NUL, but names from models and remote agents can. So NUL is written as U+0001 and `0`, and U+0001
//! itself as U+0001 and `1`; all other text is stored as it is. Every value of a text column is converted here, both ways.

use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::Write as _;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

const MARK: char = '\u{1}';

/// Text as a value of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Words<'a>(pub &'a str);

impl Serialize for Words<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&marked(self.0))
    }
}

impl ToSql for Words<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        marked(self.0).as_ref().to_sql(kind, out)
    }

    fn accepts(kind: &Type) -> bool {
        <&str as ToSql>::accepts(kind)
    }

    to_sql_checked!();
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let text = String::with_capacity(2 * bytes.len());
    bytes.iter().fold(text, |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn marked(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', MARK]) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(MARK, "\u{1}1").replace('\0', "\u{1}0"))
}

/// Converts text of PostgreSQL to the original.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(MARK) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\u{1}0", "\0").replace("\u{1}1", "\u{1}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_as_it_went() {
        for text in [
            "",
            "plain",
            "\0",
            "\u{1}",
            "a\0b\u{1}0\u{1}1\0",
            "\u{1}\u{1}0",
            "ä\0€",
        ] {
            let there = marked(text);
            assert!(!there.contains('\0'));
            assert_eq!(plain(&there), text);
        }
        assert!(matches!(marked("plain"), Cow::Borrowed(_)));
    }
}
