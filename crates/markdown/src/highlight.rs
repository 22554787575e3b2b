//! Colours code and diffs, line by line, so that code can be coloured while it arrives.
//!
//! The highlighter knows of each language its comments, strings, keywords and a few habits (`languages`), and nothing
//! of its grammar. It uses the 16 colours of the terminal, which people choose for their background.

mod diff;
mod language;
mod languages;
mod markup;
mod scanner;
#[cfg(test)]
mod tests;

use std::ops::Range;

use super::render::Style;
use super::styled_text::{TextAttribute, TextAttributes};
use super::wrap::{self, Span};
use language::Language;

/// Colours code. Returns one line for each line of `code`, not wrapped. If the language is not known, the lines have
/// no colours.
fn highlight(code: &str, language: &str, style: Style) -> Vec<String> {
    let highlighter = Highlighter::find(language);
    let mut state = LineState::default();
    let line = |line: &str| {
        if style == Style::Plain {
            return line.into();
        }
        let line = line.strip_suffix('\r').unwrap_or(line);
        let (tokens, next) = match highlighter {
            Some(highlighter) => highlighter.line(line, state),
            None => (Vec::new(), state),
        };
        state = next;
        let spans: Vec<Span> = pieces(line, &tokens, TextAttributes::default())
            .map(|(range, attributes)| Span::new(&line[range], attributes))
            .collect();
        let rows = wrap::columns(&spans, usize::MAX);
        rows.iter().map(|row| row.paint(style)).collect()
    };
    let code = code.strip_suffix('\n').unwrap_or(code);
    code.split('\n').map(line).collect()
}

/// Colours a unified diff: added lines green, removed ones red. Returns one line for each line of `text`, not wrapped.
pub fn diff(text: &str, style: Style) -> Vec<String> {
    highlight(text, "diff", style)
}

/// Names of texts that have no colours and that a reader recognizes without their name.
const PLAIN_NAMES: [&str; 8] = [
    "text",
    "txt",
    "plain",
    "plaintext",
    "md",
    "markdown",
    "csv",
    "tsv",
];

/// Returns whether what follows a fence is only the name of a known language or of a plain text, or empty.
pub(super) fn is_language(info: &str) -> bool {
    let is_word =
        !info.contains(|letter: char| !letter.is_alphanumeric() && !"+-#_".contains(letter));
    let is_plain = || info.is_empty() || PLAIN_NAMES.contains(&info.to_ascii_lowercase().as_str());
    is_word && (is_plain() || Highlighter::find(info).is_some())
}

/// What the rules of a language say about a part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    range: Range<usize>,
    kind: TokenKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Comment,
    String,
    /// A number or a named constant.
    Literal,
    Keyword,
    /// A function that is called, a key, a variable or a tag.
    Name,
    Added,
    Removed,
    Hunk,
    FileHeader,
}

/// What is open where a line starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum LineState {
    #[default]
    Nothing,
    /// A comment up to the end of the line, if the line was cut.
    LineComment,
    /// A block comment, with its index in the language's list, and how deeply it is nested.
    Comment { rule: usize, depth: usize },
    /// A string, with its index in the language's list.
    String { rule: usize },
    /// A tag of a markup language, and the quote of the attribute in it.
    Tag { quote: Option<char> },
    /// A hunk of a diff, and how many lines of the old and the new text are still to come.
    Hunk {
        old: usize,
        new: usize,
        /// What the rest of the line is, if the line was cut.
        line: Option<TokenKind>,
    },
}

/// The rules for one language.
#[derive(Debug, Clone, Copy)]
pub(super) enum Highlighter {
    Code(&'static Language),
    Markup,
    Diff,
}

impl Highlighter {
    /// Finds the rules for the language with this name, which may be followed by options, as in `rust,ignore`.
    pub(crate) fn find(info: &str) -> Option<Self> {
        let is_end = |letter: char| letter.is_whitespace() || ",{}:".contains(letter);
        let name = info.split(is_end).find(|name| !name.is_empty())?;
        let name = name.trim_start_matches('.').to_ascii_lowercase();
        if diff::NAMES.contains(&name.as_str()) {
            Some(Self::Diff)
        } else if markup::NAMES.contains(&name.as_str()) {
            Some(Self::Markup)
        } else {
            languages::find(&name).map(Self::Code)
        }
    }

    /// Returns the tokens of a line, and the state where the next one starts.
    fn line(self, line: &str, state: LineState) -> (Vec<Token>, LineState) {
        let (tokens, state) = self.scan(line, state);
        let next = match (self, state) {
            (Self::Code(language), LineState::String { rule })
                if !language.quotes[rule].spans_lines =>
            {
                LineState::Nothing
            }
            (_, LineState::LineComment) => LineState::Nothing,
            (_, LineState::Hunk { old, new, .. }) => LineState::Hunk {
                old,
                new,
                line: None,
            },
            _ => state,
        };
        (tokens, next)
    }

    /// Returns the attributes of the parts of a line, and the state where the next one starts.
    pub(crate) fn colour(
        self,
        line: &str,
        state: LineState,
    ) -> (Vec<(Range<usize>, TextAttributes)>, LineState) {
        let (tokens, next) = self.line(line, state);
        let parts = pieces(line, &tokens, TextAttributes::default()).collect();
        (parts, next)
    }

    /// Returns the state in the middle of a line, after this part of it.
    pub(crate) fn state_after(self, part: &str, state: LineState) -> LineState {
        match part {
            "" => state,
            _ => self.scan(part, state).1,
        }
    }

    fn scan(self, line: &str, state: LineState) -> (Vec<Token>, LineState) {
        match self {
            Self::Code(language) => scanner::scan(language, line, state),
            Self::Markup => markup::scan(line, state),
            Self::Diff => diff::scan(line, state),
        }
    }
}

impl TokenKind {
    fn attributes(self) -> TextAttributes {
        let plain = TextAttributes::default();
        match self {
            Self::Comment => plain.and(TextAttribute::Dim),
            Self::String | Self::Added => plain.and(TextAttribute::Green),
            Self::Literal => plain.and(TextAttribute::Magenta),
            Self::Keyword => plain.and(TextAttribute::Bold).and(TextAttribute::Magenta),
            Self::Name | Self::Hunk => plain.and(TextAttribute::Cyan),
            Self::Removed => plain.and(TextAttribute::Red),
            Self::FileHeader => plain.and(TextAttribute::Bold),
        }
    }
}

/// Returns all parts of a line with their attributes: the tokens, and what is between them.
fn pieces(
    line: &str,
    tokens: &[Token],
    between: TextAttributes,
) -> impl Iterator<Item = (Range<usize>, TextAttributes)> {
    let starts = std::iter::once(0).chain(tokens.iter().map(|token| token.range.end));
    let gaps = starts.zip(tokens.iter().map(|token| token.range.start));
    let last = tokens.last().map_or(0, |token| token.range.end);
    gaps.zip(tokens)
        .flat_map(move |((start, end), token)| {
            [
                (start..end, between),
                (token.range.clone(), token.kind.attributes()),
            ]
        })
        .chain([(last..line.len(), between)])
        .filter(|(range, _)| !range.is_empty())
}
