//! Text on its way to PostgreSQL and back.
//!
//! PostgreSQL's text has every character but NUL, and names that models and remote agents make up can have that one too.
//! It is written as U+0001 and `0`, and U+0001 itself, as rare, as U+0001 and `1`; all other text is stored as it is. Whatever is
//! put into a text column goes through here, and whatever comes out of one.

use std::borrow::Cow;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

const MARK: char = '\u{1}';

/// Text as a value of a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words<'a>(pub &'a str);

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

fn marked(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', MARK]) {
        return Cow::Borrowed(text);
    }
    let mut marked = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => marked.extend([MARK, '0']),
            MARK => marked.extend([MARK, '1']),
            other => marked.push(other),
        }
    }
    Cow::Owned(marked)
}

/// The text that was written, from how PostgreSQL has it.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(MARK) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let next = characters.peek().copied();
        match (character, next) {
            (MARK, Some('0')) => plain.push('\0'),
            (MARK, Some('1')) => plain.push(MARK),
            (other, _) => {
                plain.push(other);
                continue;
            }
        }
        characters.next();
    }
    Cow::Owned(plain)
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
