//! Text with terminal attributes. Each piece contains its own escape sequences and resets them at its end, so that no
//! attribute leaks into the next line or column.

use unicode_width::UnicodeWidthStr;

use super::sanitize;

/// A text attribute. Attributes can be combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextAttribute {
    Bold,
    Dim,
    Italic,
    Underlined,
    Code,
}

impl TextAttribute {
    fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Italic => "3",
            Self::Underlined => "4",
            Self::Code => "36",
        }
    }
}

/// All attributes, in the order in which their codes are written.
const ATTRIBUTES: [TextAttribute; 5] = [
    TextAttribute::Bold,
    TextAttribute::Dim,
    TextAttribute::Italic,
    TextAttribute::Underlined,
    TextAttribute::Code,
];

/// The attributes at a position in the text. Nested emphasis is counted, so that an end tag ends only one level.
#[derive(Debug, Clone, Copy, Default)]
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
}

/// Text with its escape sequences, and its width in columns without them.
#[derive(Debug, Clone, Default)]
pub(super) struct StyledText {
    pub text: String,
    pub width: usize,
}

impl StyledText {
    /// Adds a piece of text that contains no newline.
    pub(crate) fn push(&mut self, piece: &str, attributes: TextAttributes) {
        if piece.is_empty() {
            return;
        }
        let piece = sanitize(piece);
        self.width += piece.width();
        let codes: Vec<&str> = ATTRIBUTES
            .into_iter()
            .filter(|attribute| attributes.0[*attribute as usize] > 0)
            .map(TextAttribute::code)
            .collect();
        if codes.is_empty() {
            self.text.push_str(&piece);
        } else {
            self.text
                .push_str(&format!("\u{1b}[{}m{piece}\u{1b}[0m", codes.join(";")));
        }
    }
}
