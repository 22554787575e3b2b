//! Removes `<think>…</think>` from the start of a reply, where some servers leave a model's reasoning. It works on
//! streamed chunks too. The same tags anywhere else are ordinary text.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// A filter that passes the answer and drops the reasoning.
#[derive(Debug)]
pub(super) enum ThinkFilter {
    /// The buffered text may still become the opening tag.
    Undecided(String),
    /// Inside the reasoning; buffers the end of the text, in which the closing tag may have started.
    Inside(String),
    /// After the reasoning; only white space has followed.
    After,
    /// In the answer.
    Over,
}

impl ThinkFilter {
    pub(super) fn new() -> Self {
        Self::Undecided(String::new())
    }

    /// Takes the next piece of text and returns the part of it that belongs to the answer.
    pub(super) fn pass(&mut self, piece: &str) -> String {
        match self {
            Self::Over => piece.to_owned(),
            Self::After => {
                let answer = piece.trim_start();
                if !answer.is_empty() {
                    *self = Self::Over;
                }
                answer.to_owned()
            }
            Self::Undecided(buffer) => {
                buffer.push_str(piece);
                let start = buffer.trim_start();
                if let Some(inside) = start.strip_prefix(OPEN) {
                    let inside = inside.to_owned();
                    *self = Self::Inside(String::new());
                    return self.pass(&inside);
                }
                if OPEN.starts_with(start) {
                    return String::new();
                }
                let text = std::mem::take(buffer);
                *self = Self::Over;
                text
            }
            Self::Inside(tail) => {
                tail.push_str(piece);
                if let Some((_, answer)) = tail.split_once(CLOSE) {
                    let answer = answer.to_owned();
                    *self = Self::After;
                    return self.pass(&answer);
                }
                let dropped = tail.ceil_char_boundary(tail.len().saturating_sub(CLOSE.len()));
                tail.drain(..dropped);
                String::new()
            }
        }
    }

    /// Returns the buffered text that turned out to be part of the answer.
    pub(super) fn finish(self) -> String {
        match self {
            Self::Undecided(buffer) => buffer,
            Self::Inside(_) | Self::After | Self::Over => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ThinkFilter;

    fn answer(text: &str, piece: usize) -> String {
        let mut filter = ThinkFilter::new();
        let characters: Vec<char> = text.chars().collect();
        let pieces = characters
            .chunks(piece)
            .map(|piece| piece.iter().collect::<String>());
        let passed: String = pieces.map(|piece| filter.pass(&piece)).collect();
        passed + &filter.finish()
    }

    #[test]
    fn reasoning_at_the_start_is_dropped_however_the_text_is_chunked() {
        for (text, expected) in [
            ("<think>hm, ä < b</think>\n\nYes.", "Yes."),
            ("\n <think></think>Yes.", "Yes."),
            ("Yes. <think>no</think>", "Yes. <think>no</think>"),
            ("<thin air", "<thin air"),
            ("<", "<"),
            ("<think>never done", ""),
            ("", ""),
        ] {
            for piece in [1, 2, 3, 100] {
                assert_eq!(answer(text, piece), expected, "{text:?} by {piece}");
            }
        }
    }
}
