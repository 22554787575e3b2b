//! What models write, shown to people: markdown for terminals.
//!
//! [`render`] lays a text out, [`Blocks`] cuts a text that is still arriving into pieces that can be rendered on their
//! own. The text is not trusted: nothing in it reaches a terminal as a control character, and nothing that a browser
//! would hide (HTML, comments, link definitions) is hidden here. Lines are not wrapped; the terminal does that.

mod blocks;
mod ink;
mod page;
mod sanitize;
mod table;
mod walk;

pub use blocks::Blocks;
pub use sanitize::sanitize;

pub(crate) use sanitize::is_disruptive;

use std::borrow::Cow;

use pulldown_cmark::{Options, Parser};

/// Where the text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Into a file or a pipe: the text as it is, byte for byte.
    Plain,
    /// To a terminal that shall not be coloured: the markdown itself, [sanitized](sanitize()).
    Uncoloured,
    /// To a terminal: laid out and coloured.
    Coloured,
}

/// The text in the given style.
///
/// Coloured, blocks are one blank line apart, and the text ends in as many newlines as `text` did, but at most two. So
/// the pieces of [`Blocks`], rendered one by one and printed one after the other, look like the whole.
pub fn render(text: &str, style: Style) -> String {
    match style {
        Style::Plain => text.into(),
        Style::Uncoloured => sanitize(text).into_owned(),
        Style::Coloured => coloured(text),
    }
}

/// How often link definitions are looked for. Each time finds all but those that repeat a label.
const MOST_PASSES: usize = 8;

fn coloured(text: &str) -> String {
    let mut body = match without_definitions(text) {
        Some(source) => walk::page(parser(&source)),
        None => sanitize(text).trim_end_matches(is_blank).into(),
    };
    if !body.is_empty() {
        let ending = &text[text.trim_end_matches(is_blank).len()..];
        body.extend(std::iter::repeat_n(
            '\n',
            ending.matches('\n').count().min(2),
        ));
    }
    body
}

/// What a blank line consists of. Other white space is text to markdown.
fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n')
}

fn parser(source: &str) -> Parser<'_> {
    Parser::new_ext(source, Options::ENABLE_TABLES)
}

/// The text with its link definitions turned into ordinary text. They would be swallowed otherwise, and with them
/// whatever a model likes to hide there; and a link would mean something else when its definition is in another block.
fn without_definitions(text: &str) -> Option<Cow<'_, str>> {
    let mut source = Cow::Borrowed(text);
    for _ in 0..MOST_PASSES {
        let mut starts: Vec<usize> = parser(&source)
            .reference_definitions()
            .iter()
            .map(|(_, definition)| definition.span.start)
            .collect();
        if starts.is_empty() {
            return Some(source);
        }
        starts.sort_unstable();
        let mut escaped = String::with_capacity(source.len() + starts.len());
        let mut done = 0;
        for start in starts {
            escaped.push_str(&source[done..start]);
            escaped.push('\\');
            done = start;
        }
        escaped.push_str(&source[done..]);
        source = Cow::Owned(escaped);
    }
    None
}
