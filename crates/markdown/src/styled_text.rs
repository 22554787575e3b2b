//! Text attributes. Each painted piece contains its own escape sequences and resets them at its end, so that no
//! attribute leaks into the next line or column.

use super::render::Style;

/// A text attribute. Attributes can be combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextAttribute {
    Bold,
    Dim,
    Italic,
    Underlined,
    /// Code between words: cyan, or bold where there are no colours.
    Code,
    Red,
    Green,
    Magenta,
    Cyan,
}

impl TextAttribute {
    /// Returns the code of the escape sequence. The colours are readable on light and dark backgrounds.
    fn code(self, style: Style) -> Option<&'static str> {
        match (self, style) {
            (_, Style::Plain | Style::Source) => None,
            (Self::Bold, _) | (Self::Code, Style::Uncoloured) => Some("1"),
            (Self::Dim, _) => Some("2"),
            (Self::Italic, _) => Some("3"),
            (Self::Underlined, _) => Some("4"),
            (_, Style::Uncoloured) => None,
            (Self::Red, _) => Some("31"),
            (Self::Green, _) => Some("32"),
            (Self::Magenta, _) => Some("35"),
            (Self::Code | Self::Cyan, _) => Some("36"),
        }
    }
}

/// All attributes, in the order in which their codes are written.
const ATTRIBUTES: [TextAttribute; 9] = [
    TextAttribute::Bold,
    TextAttribute::Dim,
    TextAttribute::Italic,
    TextAttribute::Underlined,
    TextAttribute::Code,
    TextAttribute::Red,
    TextAttribute::Green,
    TextAttribute::Magenta,
    TextAttribute::Cyan,
];

/// The attributes at a position in the text. Nested emphasis is counted, so that an end tag ends only one level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TextAttributes([u32; ATTRIBUTES.len()]);

impl TextAttributes {
    /// Adds an attribute.
    pub(crate) fn add(&mut self, attribute: TextAttribute) {
        self.0[attribute as usize] += 1;
    }

    /// Removes an attribute. An attribute that was added several times must be removed as many times.
    pub(crate) fn remove(&mut self, attribute: TextAttribute) {
        let count = &mut self.0[attribute as usize];
        *count = count.saturating_sub(1);
    }

    /// Returns these attributes plus one more.
    pub(crate) fn and(mut self, attribute: TextAttribute) -> Self {
        self.add(attribute);
        self
    }

    /// Appends a piece of sanitized text with these attributes.
    pub(crate) fn paint(self, piece: &str, style: Style, out: &mut String) {
        let mut codes: Vec<&str> = ATTRIBUTES
            .into_iter()
            .filter(|attribute| self.0[*attribute as usize] > 0)
            .filter_map(|attribute| attribute.code(style))
            .collect();
        codes.dedup();
        if piece.is_empty() || codes.is_empty() {
            out.push_str(piece);
        } else {
            out.push_str(&format!("\u{1b}[{}m{piece}\u{1b}[0m", codes.join(";")));
        }
    }
}
