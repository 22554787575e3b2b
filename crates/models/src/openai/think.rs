//! Some servers leave a model's thinking in the text, between `<think>` and `</think>` at its beginning. It is no part of the
//! answer, whole or in pieces. The same words anywhere else are text.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Lets the answer through and keeps the thinking back.
#[derive(Debug)]
pub(super) enum Thinking {
    /// What came so far may still become the mark.
    Undecided(String),
    /// In the middle of it; the end of what came, in which the closing mark may begin.
    Inside(String),
    /// Past it, and nothing but white space came since.
    After,
    /// In the answer.
    Over,
}

impl Thinking {
    pub fn new() -> Self {
        Self::Undecided(String::new())
    }

    /// The next piece of text; gives what of it is answer.
    pub fn pass(&mut self, piece: &str) -> String {
        match self {
            Self::Over => piece.to_owned(),
            Self::After => {
                let answer = piece.trim_start();
                if !answer.is_empty() {
                    *self = Self::Over;
                }
                answer.to_owned()
            }
            Self::Undecided(held) => {
                held.push_str(piece);
                let begun = held.trim_start();
                if let Some(inside) = begun.strip_prefix(OPEN) {
                    let inside = inside.to_owned();
                    *self = Self::Inside(String::new());
                    return self.pass(&inside);
                }
                if OPEN.starts_with(begun) {
                    return String::new();
                }
                let text = std::mem::take(held);
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
                let kept = tail.ceil_char_boundary(tail.len().saturating_sub(CLOSE.len()));
                tail.drain(..kept);
                String::new()
            }
        }
    }

    /// What was held back and turned out to be answer after all.
    pub fn rest(self) -> String {
        match self {
            Self::Undecided(held) => held,
            Self::Inside(_) | Self::After | Self::Over => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Thinking;

    fn answer(text: &str, piece: usize) -> String {
        let mut thinking = Thinking::new();
        let characters: Vec<char> = text.chars().collect();
        let pieces = characters
            .chunks(piece)
            .map(|piece| piece.iter().collect::<String>());
        let passed: String = pieces.map(|piece| thinking.pass(&piece)).collect();
        passed + &thinking.rest()
    }

    #[test]
    fn thinking_at_the_beginning_is_kept_back_however_it_is_cut() {
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
