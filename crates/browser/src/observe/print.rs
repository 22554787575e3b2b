//! Formats items. Page text is quoted so that it cannot imitate lango's own lines.

use super::items::{Item, ItemKind};
use super::roles::DisplayKind;

pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(c);
            }
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Cuts a text to `limit` bytes, with an ellipsis if it was longer.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit.saturating_sub('…'.len_utf8());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", text[..end].trim_end())
}

/// Converts page text to one line without invisible or direction-changing characters.
pub(crate) fn one_line(text: &str) -> String {
    let is_gap = |c: char| c.is_whitespace() || c.is_control();
    let seen: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    let words: Vec<&str> = seen.split(is_gap).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// Returns whether a character is invisible, changes the text direction, or is in a private-use area (icon fonts).
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}')
}

/// Formats one item, with its handle if it has one. `is_alone` says whether it has a line to itself.
pub(super) fn format_item(item: &Item, handle: Option<&str>, is_alone: bool) -> String {
    match item.kind {
        ItemKind::Text if is_alone => format!("text {}", quote(&item.name)),
        ItemKind::Text => quote(&item.own_text),
        ItemKind::Element(DisplayKind::Label) if item.role == "heading" => {
            format!("{} {}", item.details.trim_start(), quote(&item.name))
        }
        ItemKind::Element(_) => {
            let mut part = String::new();
            if let Some(handle) = handle {
                part.push_str(handle);
                part.push(' ');
            }
            part.push_str(&item.role);
            if !item.name.is_empty() {
                part.push(' ');
                part.push_str(&quote(&item.name));
            }
            part.push_str(&item.details);
            part
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_text_stays_inside_its_quotes_and_on_its_line() {
        assert_eq!(quote("a\" [disabled]\ne1"), r#""a\" [disabled] e1""#);
        assert_eq!(one_line(" a\u{202e}b\n\u{200b}c \u{e001}d "), "ab c d");
    }

    #[test]
    fn cutting_keeps_characters_whole_and_respects_the_limit() {
        for limit in 3..12 {
            let cut = cut("äöüäöüäöü", limit);
            assert!(cut.len() <= limit, "{cut}");
            assert!(cut.ends_with('…'));
        }
        assert_eq!(cut("short", 5), "short");
    }
}
