//! Renders the markdown that models write for terminals.
//!
//! [`render`] formats a text; [`Blocks`] splits a text that is still arriving into pieces that can be rendered on
//! their own. The text is untrusted: no control character in it reaches the terminal, and everything that a browser
//! would hide (HTML, comments, link definitions) is shown. Lines are not wrapped; the terminal does that.

mod blocks;
mod page;
mod renderer;
mod styled_text;
mod table;

pub use blocks::Blocks;

use lango_core::text::sanitize;
use std::borrow::Cow;

use pulldown_cmark::{Options, Parser};

/// The destination of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A file or a pipe: the text byte for byte.
    Plain,
    /// A terminal without colours: the markdown source, [sanitized](sanitize()).
    Uncoloured,
    /// A terminal with colours: formatted and coloured.
    Coloured,
}

/// Renders the text in the given style.
///
/// In colour, one blank line separates blocks, and the result ends in as many newlines as `text` did, but at most
/// two. So the pieces of [`Blocks`], rendered and printed one by one, look like the whole.
pub fn render(text: &str, style: Style) -> String {
    match style {
        Style::Plain => text.into(),
        Style::Uncoloured => sanitize(text).into_owned(),
        Style::Coloured => coloured(text),
    }
}

/// How many times to search for link definitions. Each pass finds all but those that repeat a label.
const MAX_PASSES: usize = 8;

fn coloured(text: &str) -> String {
    let mut body = match without_definitions(text) {
        Some(source) => renderer::render_events(parser(&source)),
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

/// Returns whether a character can be part of a blank line. Markdown treats other white space as text.
fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n')
}

fn parser(source: &str) -> Parser<'_> {
    Parser::new_ext(source, Options::ENABLE_TABLES)
}

/// Escapes link definitions, so that they are shown as text. Otherwise they would be swallowed, along with whatever a
/// model hides in them, and a link would change its meaning if its definition is in another block. Returns `None` if
/// some are left after [`MAX_PASSES`].
fn without_definitions(text: &str) -> Option<Cow<'_, str>> {
    let mut source = Cow::Borrowed(text);
    for _ in 0..MAX_PASSES {
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
