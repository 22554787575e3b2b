//! Looks of a piece of text. Each piece carries its own escape sequences and takes them back at its end, so that no
//! look ever runs on into the next line or the next column.

use unicode_width::UnicodeWidthStr;

use super::sanitize;

/// A look. They add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Bold,
    Dim,
    Italic,
    Underlined,
    Code,
}

impl Look {
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

/// All looks, in the order in which their codes are written.
const LOOKS: [Look; 5] = [
    Look::Bold,
    Look::Dim,
    Look::Italic,
    Look::Underlined,
    Look::Code,
];

/// The looks that hold at a place in the text. Emphasis in emphasis is counted, so that its end ends only itself.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ink([u32; LOOKS.len()]);

impl Ink {
    /// From here on also `look`.
    pub fn add(&mut self, look: Look) {
        self.0[look as usize] += 1;
    }

    /// No longer `look`, unless it was added more often than removed.
    pub fn remove(&mut self, look: Look) {
        let count = &mut self.0[look as usize];
        *count = count.saturating_sub(1);
    }

    /// This ink with one more look.
    pub fn and(mut self, look: Look) -> Self {
        self.add(look);
        self
    }
}

/// Text with its escape sequences, and how many columns it takes without them.
#[derive(Debug, Clone, Default)]
pub(super) struct Painted {
    pub text: String,
    pub width: usize,
}

impl Painted {
    /// Adds a piece of text that holds no newline.
    pub fn push(&mut self, piece: &str, ink: Ink) {
        if piece.is_empty() {
            return;
        }
        let piece = sanitize(piece);
        self.width += piece.width();
        let codes: Vec<&str> = LOOKS
            .into_iter()
            .filter(|look| ink.0[*look as usize] > 0)
            .map(Look::code)
            .collect();
        if codes.is_empty() {
            self.text.push_str(&piece);
        } else {
            self.text
                .push_str(&format!("\u{1b}[{}m{piece}\u{1b}[0m", codes.join(";")));
        }
    }
}
