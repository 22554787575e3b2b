//! The output of a command as a terminal would leave it: without colours, and without the states that a progress bar
//! has overwritten. Other control characters become visible symbols (`␛`).

/// A line is recorded at this length, even if it could still be overwritten.
const MAX_OPEN_BYTES: usize = 16 * 1024;

/// A longer control sequence is text.
const MAX_SEQUENCE_BYTES: usize = 32;

/// Reads an output piece by piece.
#[derive(Debug, Default)]
pub(super) struct TerminalText {
    /// The last line, as far as it is not recorded yet.
    open: String,
    /// Whether the start of the last line is recorded already.
    is_open_recorded: bool,
    /// Whether what follows replaces the last line.
    is_returned: bool,
    /// The start of a control sequence.
    sequence: String,
}

/// What to do with a piece of output.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TerminalPiece {
    /// Text to record.
    pub(super) recorded: String,
    /// Text to show now. A carriage return starts the last line again.
    pub(super) shown: String,
}

impl TerminalText {
    /// Reads the next piece.
    pub(super) fn push(&mut self, text: &str) -> TerminalPiece {
        let mut piece = TerminalPiece::default();
        for letter in text.chars() {
            self.read(letter, &mut piece);
        }
        if self.open.len() > MAX_OPEN_BYTES {
            piece.recorded.push_str(&self.record_open());
        }
        piece
    }

    /// Returns the last line, because the recorded text is read now. If it is overwritten later, a new line starts.
    pub(super) fn record_open(&mut self) -> String {
        let open = std::mem::take(&mut self.open);
        self.is_open_recorded |= !open.is_empty();
        open
    }

    /// Ends the output.
    pub(super) fn finish(&mut self) -> TerminalPiece {
        let mut piece = TerminalPiece::default();
        self.end_sequence(&mut piece);
        piece.recorded.push_str(&self.record_open());
        piece
    }

    fn read(&mut self, letter: char, piece: &mut TerminalPiece) {
        if !self.sequence.is_empty() {
            return self.read_sequence(letter, piece);
        }
        match letter {
            '\u{1b}' => self.sequence.push(letter),
            '\r' => self.is_returned = true,
            '\n' => {
                piece.recorded.push_str(&self.open);
                piece.recorded.push('\n');
                piece.shown.push('\n');
                self.open.clear();
                self.is_open_recorded = false;
                self.is_returned = false;
            }
            letter => self.write(visible(letter), piece),
        }
    }

    fn write(&mut self, letter: char, piece: &mut TerminalPiece) {
        if std::mem::take(&mut self.is_returned) {
            piece.shown.push('\r');
            self.open.clear();
            if std::mem::take(&mut self.is_open_recorded) {
                piece.recorded.push('\n');
            }
        }
        self.open.push(letter);
        piece.shown.push(letter);
    }

    /// Reads a control sequence: `ESC [`, parameters, a final letter. Those that set colours or clear a line are left
    /// out; all others are shown.
    fn read_sequence(&mut self, letter: char, piece: &mut TerminalPiece) {
        let is_parameter = matches!(letter, '0'..='?');
        let is_expected = match self.sequence.len() {
            1 => letter == '[',
            _ => is_parameter && self.sequence.len() < MAX_SEQUENCE_BYTES,
        };
        if is_expected {
            self.sequence.push(letter);
        } else if self.sequence.len() > 1 && matches!(letter, 'm' | 'K') {
            self.sequence.clear();
        } else {
            self.end_sequence(piece);
            self.read(letter, piece);
        }
    }

    fn end_sequence(&mut self, piece: &mut TerminalPiece) {
        for letter in std::mem::take(&mut self.sequence).chars() {
            self.write(visible(letter), piece);
        }
    }
}

fn visible(letter: char) -> char {
    match letter {
        '\t' => letter,
        '\u{7f}' => '␡',
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(letter)).unwrap_or('�'),
        '\u{80}'..='\u{9f}' => '�',
        _ => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is recorded of an output that arrives in pieces of this many characters.
    fn recorded(output: &str, size: usize) -> String {
        let mut text = TerminalText::default();
        let letters: Vec<char> = output.chars().collect();
        let pieces = letters.chunks(size).map(|piece| piece.iter().collect());
        let mut recorded: String = pieces
            .map(|piece: String| text.push(&piece).recorded)
            .collect();
        recorded.push_str(&text.finish().recorded);
        recorded
    }

    #[test]
    fn only_the_last_state_of_a_line_is_recorded_however_it_arrives() {
        for size in [1, 3, 1000] {
            assert_eq!(
                recorded("\r 10%\r 50%\r100%\nready\r\n", size),
                "100%\nready\n"
            );
            assert_eq!(recorded("a 1%\ra 2%\r", size), "a 2%");
            assert_eq!(
                recorded("\u{1b}[1;31mred\u{1b}[0m \u{1b}[mx", size),
                "red x"
            );
            assert_eq!(recorded("1%\r\u{1b}[K2%", size), "2%");
            assert_eq!(recorded("\u{1b}[2Jx\u{1b}]0;t\u{7}", size), "␛[2Jx␛]0;t␇");
            assert_eq!(recorded("\u{1b}\u{1b}[1m\u{1b}[", size), "␛␛[");
        }
        let long = format!("\u{1b}[{}m", "1;".repeat(100));
        assert_eq!(recorded(&long, 7), long.replace('\u{1b}', "␛"));
    }

    #[test]
    fn a_line_that_was_read_is_not_overwritten_but_followed_by_its_next_state() {
        let mut text = TerminalText::default();
        assert_eq!(text.push("10%").recorded, "");
        assert_eq!(text.record_open(), "10%");
        assert_eq!(text.push("\r50%").recorded, "\n");
        assert_eq!(text.push("\n").recorded, "50%\n");
        text.push("Name: ");
        assert_eq!(text.record_open(), "Name: ");
        assert_eq!(text.push("Ada\n").recorded, "Ada\n");
    }

    #[test]
    fn a_screen_gets_everything_at_once() {
        let mut text = TerminalText::default();
        assert_eq!(text.push("10%").shown, "10%");
        assert_eq!(text.push("\r\u{1b}[32m50%\u{1b}[0m").shown, "\r50%");
        assert_eq!(text.push("\r\n").shown, "\n");
    }

    #[test]
    fn an_endless_line_is_recorded_in_parts() {
        let mut text = TerminalText::default();
        let part = "x".repeat(10_000);
        let mut recorded = 0;
        for _ in 0..100 {
            recorded += text.push(&part).recorded.len();
            assert!(text.open.len() <= MAX_OPEN_BYTES);
        }
        assert_eq!(recorded + text.finish().recorded.len(), 1_000_000);
    }
}
