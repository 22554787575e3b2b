//! HTML, XML and templates of them: tags, attributes and comments.

use super::{LineState, Token, TokenKind};

pub(super) const NAMES: &[&str] = &[
    "html",
    "htm",
    "xhtml",
    "xml",
    "svg",
    "vue",
    "svelte",
    "astro",
    "xaml",
    "plist",
    "rss",
    "jinja",
    "handlebars",
];

/// The start and the end of a comment.
const COMMENT: (&str, &str) = ("<!--", "-->");

pub(super) fn scan(line: &str, mut state: LineState) -> (Vec<Token>, LineState) {
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let rest = &line[at..];
        let (length, kind, next) = match state {
            LineState::Comment { .. } => to_end(rest, COMMENT.1, TokenKind::Comment, state),
            LineState::Tag { quote: Some(quote) } => in_attribute(rest, quote),
            LineState::Tag { quote: None } => in_tag(rest),
            _ => in_text(rest),
        };
        if let Some(kind) = kind {
            tokens.push(Token {
                range: at..at + length,
                kind,
            });
        }
        at += length;
        state = next;
    }
    (tokens, state)
}

type Step = (usize, Option<TokenKind>, LineState);

fn in_text(rest: &str) -> Step {
    if let Some(comment) = rest.strip_prefix(COMMENT.0) {
        let open = LineState::Comment { rule: 0, depth: 1 };
        let (length, kind, next) = to_end(comment, COMMENT.1, TokenKind::Comment, open);
        return (COMMENT.0.len() + length, kind, next);
    }
    let Some(name) = rest.strip_prefix('<') else {
        let length = rest.find('<').unwrap_or(rest.len());
        return (length, None, LineState::Nothing);
    };
    let name = name.trim_start_matches(['/', '?', '!']);
    let lead = rest.len() - name.len();
    let length = lead + name.find(is_no_name).unwrap_or(name.len());
    if length == lead {
        return (lead, None, LineState::Nothing);
    }
    let tag = LineState::Tag { quote: None };
    (length, Some(TokenKind::Keyword), tag)
}

fn in_tag(rest: &str) -> Step {
    let tag = LineState::Tag { quote: None };
    match rest.chars().next() {
        Some('>') => (1, Some(TokenKind::Keyword), LineState::Nothing),
        Some('/') if rest.starts_with("/>") => (2, Some(TokenKind::Keyword), LineState::Nothing),
        Some(quote @ ('"' | '\'')) => {
            let (length, kind, next) = in_attribute(&rest[1..], quote);
            (1 + length, kind, next)
        }
        Some(letter) if is_no_name(letter) => (letter.len_utf8(), None, tag),
        _ => {
            let length = rest.find(is_no_name).unwrap_or(rest.len());
            (length, Some(TokenKind::Name), tag)
        }
    }
}

fn in_attribute(rest: &str, quote: char) -> Step {
    let open = LineState::Tag { quote: Some(quote) };
    match rest.find(quote) {
        Some(end) => (
            end + 1,
            Some(TokenKind::String),
            LineState::Tag { quote: None },
        ),
        None => (rest.len(), Some(TokenKind::String), open),
    }
}

fn to_end(rest: &str, end: &str, kind: TokenKind, open: LineState) -> Step {
    match rest.find(end) {
        Some(start) => (start + end.len(), Some(kind), LineState::Nothing),
        None => (rest.len(), Some(kind), open),
    }
}

fn is_no_name(letter: char) -> bool {
    !(letter.is_alphanumeric() || "-_:.@#".contains(letter))
}
