//! Statements that are written once for both databases.
//!
//! [`sql!`](crate::backend::sql) takes PostgreSQL's dialect and derives SQLite's at compile time: `$1` becomes `?1`, and casts such
//! as `::bigint` and `::text[]` are removed. Text for only one database goes into a comment that the other one ignores:
//! `/*sqlite INDEXED BY tasks_by_user*/`, `/*postgres FOR UPDATE*/`. Statements that differ more are written out for each database:
//! `sql!(sqlite: "…", postgres: "…")`.

/// A statement for both databases.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sql {
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

impl Sql {
    /// Creates a statement that is never sent to SQLite.
    pub(crate) const fn only_postgres(postgres: &'static str) -> Self {
        Self {
            sqlite: "",
            postgres,
        }
    }
}

/// Creates a [`Sql`] from one text for both databases, or from a text for each.
macro_rules! sql {
    (sqlite: $sqlite:expr, postgres: $postgres:expr $(,)?) => {
        $crate::backend::Sql {
            sqlite: $sqlite,
            postgres: $postgres,
        }
    };
    ($text:expr) => {{
        const TEXT: &str = $text;
        const SQLITE: [u8; TEXT.len()] = $crate::backend::dialect::sqlite(TEXT);
        const POSTGRES: [u8; TEXT.len()] = $crate::backend::dialect::postgres(TEXT);
        $crate::backend::Sql {
            sqlite: $crate::backend::dialect::text(&SQLITE),
            postgres: $crate::backend::dialect::text(&POSTGRES),
        }
    }};
}
pub(crate) use sql;

/// Defines a constant for each statement, and `ALL`, the list of them for the query-plan tests.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident: $text:expr;)*) => {
        $($(#[$doc])* pub(super) const $name: $crate::backend::Sql = $crate::backend::sql!($text);)*

        #[cfg(test)]
        pub(crate) const ALL: &[$crate::backend::Sql] = &[$($name),*];
    };
}
pub(crate) use statements;

/// Rewrites a statement for each database at compile time. Removed characters become spaces, because a `const fn` can only return
/// an array of the same length.
pub(crate) mod dialect {
    pub(crate) const fn sqlite<const N: usize>(text: &str) -> [u8; N] {
        let mut out = uncommented(text, b"/*sqlite");
        let mut at = 0;
        while at + 1 < N {
            if out[at] == b'$' && out[at + 1].is_ascii_digit() {
                out[at] = b'?';
            }
            if out[at] == b':' && out[at + 1] == b':' {
                out[at] = b' ';
                out[at + 1] = b' ';
                at += 2;
                while at < N && is_part_of_type(out[at]) {
                    out[at] = b' ';
                    at += 1;
                }
            } else {
                at += 1;
            }
        }
        out
    }

    pub(crate) const fn postgres<const N: usize>(text: &str) -> [u8; N] {
        uncommented(text, b"/*postgres")
    }

    pub(crate) const fn text(bytes: &'static [u8]) -> &'static str {
        match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(_) => panic!("replacing ASCII by ASCII keeps the text UTF-8"),
        }
    }

    const fn is_part_of_type(byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || matches!(byte, b'[' | b']' | b'_')
    }

    /// Removes the delimiters of comments that start with `mark`, so that their contents become part of the statement.
    const fn uncommented<const N: usize>(text: &str, mark: &[u8]) -> [u8; N] {
        let mut out = [0; N];
        out.copy_from_slice(text.as_bytes());
        let mut at = 0;
        while at + mark.len() < N {
            if !is_at(&out, at, mark) {
                at += 1;
                continue;
            }
            let begin = at;
            while at < begin + mark.len() {
                out[at] = b' ';
                at += 1;
            }
            while at + 1 < N && !(out[at] == b'*' && out[at + 1] == b'/') {
                at += 1;
            }
            assert!(at + 1 < N, "a comment is not closed");
            out[at] = b' ';
            out[at + 1] = b' ';
        }
        out
    }

    const fn is_at(text: &[u8], at: usize, mark: &[u8]) -> bool {
        let mut offset = 0;
        while offset < mark.len() {
            if text[at + offset] != mark[offset] {
                return false;
            }
            offset += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(statement: &str) -> String {
        statement.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn one_text_serves_both_databases() {
        const ROW: Sql = sql!(
            "SELECT a -> '$.b' FROM t /*sqlite INDEXED BY i*/ WHERE a = $1 AND $12::text[] IS NULL /*postgres FOR UPDATE*/"
        );
        assert_eq!(
            words(ROW.sqlite),
            "SELECT a -> '$.b' FROM t INDEXED BY i WHERE a = ?1 AND ?12 IS NULL /*postgres FOR UPDATE*/"
        );
        assert_eq!(
            words(ROW.postgres),
            "SELECT a -> '$.b' FROM t /*sqlite INDEXED BY i*/ WHERE a = $1 AND $12::text[] IS NULL FOR UPDATE"
        );
    }
}
