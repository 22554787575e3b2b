//! What the highlighter knows of a programming language.

/// The rules of a language.
#[derive(Debug)]
pub(crate) struct Language {
    /// In lower case, as they are written after a fence.
    pub names: &'static [&'static str],
    pub line_comments: &'static [&'static str],
    /// Their starts and ends.
    pub block_comments: &'static [(&'static str, &'static str)],
    pub nests_comments: bool,
    /// Longer ones before those that they start with.
    pub quotes: &'static [Quote],
    /// Separated by spaces.
    pub keywords: &'static str,
    /// Named constants, separated by spaces.
    pub literals: &'static str,
    pub ignores_case: bool,
    /// The characters that start a variable.
    pub sigils: &'static str,
    /// Characters of names besides letters, digits and `_`.
    pub name_characters: &'static str,
    /// The character after a key.
    pub key_end: Option<char>,
    /// Whether a `'` may start a lifetime instead of a character.
    pub has_lifetimes: bool,
    /// Whether a name before `(` is a function.
    pub has_calls: bool,
}

/// A kind of string.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quote {
    pub start: &'static str,
    pub end: &'static str,
    /// Whether a backslash escapes the next character.
    pub has_escapes: bool,
    pub spans_lines: bool,
}

impl Quote {
    /// Returns a string that ends with its line.
    pub(super) const fn line(quote: &'static str) -> Self {
        Self {
            start: quote,
            end: quote,
            has_escapes: true,
            spans_lines: false,
        }
    }

    /// Returns a string that may span lines.
    pub(super) const fn block(quote: &'static str) -> Self {
        Self {
            spans_lines: true,
            ..Self::line(quote)
        }
    }

    /// Returns a string without escapes that may span lines.
    pub(super) const fn raw(start: &'static str, end: &'static str) -> Self {
        Self {
            start,
            end,
            has_escapes: false,
            spans_lines: true,
        }
    }
}

/// Strings in most languages.
pub(super) const QUOTES: &[Quote] = &[Quote::line("\""), Quote::line("'")];

/// A language without any rules, on which the others are based.
pub(super) const NONE: Language = Language {
    names: &[],
    line_comments: &[],
    block_comments: &[],
    nests_comments: false,
    quotes: QUOTES,
    keywords: "",
    literals: "true false null",
    ignores_case: false,
    sigils: "",
    name_characters: "",
    key_end: None,
    has_lifetimes: false,
    has_calls: true,
};

/// A language with the comments of C.
pub(super) const C_FAMILY: Language = Language {
    line_comments: &["//"],
    block_comments: &[("/*", "*/")],
    ..NONE
};
