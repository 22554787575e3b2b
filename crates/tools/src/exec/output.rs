//! The output of one command: a file that grows while the command runs, and the parts of it that are shown.
//!
//! The file is always text ([`TerminalText`]), with visible characters in place of bytes that are not UTF-8. It has a
//! size limit. Output past the limit is counted and dropped, except for its end, which is appended after a note when the
//! command has ended.

use super::page::{self, Page, Position, start_of_character};
use super::terminal_text::{OutputPipe, TerminalText};
use crate::show;
use lango_core::OutputSink;
use lango_secrets::{MaskTextStream, Masks};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Only the start and the end of a long output are shown; this is the maximum size of each.
const SHOWN_BYTES: usize = 12 * 1024;

/// The output of one command. Written while it runs, read at any time.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    max_bytes: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Open until the command has ended.
    file: Option<File>,
    bytes: u64,
    newlines: u64,
    ends_in_line: bool,
    dropped_bytes: u64,
    /// The end of the dropped text.
    dropped_tail: String,
    failure: Option<String>,
    /// Masks the secrets that the command may have seen.
    mask: Option<OutputMask>,
    terminal: TerminalText,
    /// Where the output is shown while the command runs.
    screen: OutputSink,
}

/// Masks an output twice: as it is printed, because values may contain what [`TerminalText`] leaves out, and as it is
/// recorded, because a value may be printed with colours in it.
#[derive(Debug)]
struct OutputMask {
    printed: MaskTextStream,
    recorded: MaskTextStream,
}

/// The size of a stored output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputSize {
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
    /// Why the stored output is incomplete, if it is.
    pub(crate) remark: Option<String>,
}

/// The start and the end of an output, or all of it.
pub(crate) struct Excerpt {
    pub(crate) head: String,
    pub(crate) omitted: Option<OmittedPart>,
    pub(crate) tail: String,
}

/// The part that an excerpt leaves out.
pub(crate) struct OmittedPart {
    pub(crate) bytes: u64,
    pub(crate) start: Position,
}

impl Output {
    /// Creates an output that is written to `file`, which is new and empty.
    pub(crate) fn new(path: PathBuf, file: File, max_bytes: u64) -> Self {
        let state = State {
            file: Some(file),
            bytes: 0,
            newlines: 0,
            ends_in_line: false,
            dropped_bytes: 0,
            dropped_tail: String::new(),
            failure: None,
            mask: None,
            terminal: TerminalText::default(),
            screen: OutputSink::default(),
        };
        Self {
            path,
            max_bytes,
            state: Mutex::new(state),
        }
    }

    /// Masks secrets in the output from now on. The output is masked as one stream, so a value that is split between
    /// pages is masked too.
    pub(crate) fn mask(&self, masks: &Masks) {
        self.state().mask = Some(OutputMask {
            printed: masks.text_stream(),
            recorded: masks.text_stream(),
        });
    }

    /// Also shows the output from now on.
    pub(crate) fn show_in(&self, screen: &OutputSink) {
        self.state().screen = screen.clone();
    }

    /// Adds output of the command. Writes synchronously, which is fast because the page cache buffers it.
    pub(crate) fn push(&self, pipe: OutputPipe, printed: &[u8]) {
        let mut state = self.state();
        let text = match &mut state.mask {
            Some(mask) => mask.printed.push(printed).into(),
            None => String::from_utf8_lossy(printed),
        };
        self.add(&mut state, pipe, &text);
    }

    fn add(&self, state: &mut State, pipe: OutputPipe, text: &str) {
        let piece = state.terminal.push(pipe, text);
        state.screen.push(&piece.shown);
        state.record(&piece.recorded, self.max_bytes);
    }

    /// Shows and records complete lines that the mask holds back in case a secret continues. Called when the command has
    /// been silent for a moment. The record is still masked as one stream.
    pub(crate) fn end_lines(&self, pipe: OutputPipe) {
        let mut state = self.state();
        let lines = state.mask.as_mut().map(|mask| mask.printed.end_lines());
        if let Some(lines) = lines.filter(|lines| !lines.is_empty()) {
            self.add(&mut state, pipe, &lines);
        }
    }

    /// Marks the output as complete.
    pub(crate) fn finish(&self) {
        let mut state = self.state();
        let rest = state.mask.as_mut().map(|mask| mask.printed.finish());
        let rest = state.terminal.finish(&rest.unwrap_or_default());
        state.screen.push(&rest.shown);
        state.record(&rest.recorded, self.max_bytes);
        if let Some(mut mask) = state.mask.take() {
            state.add(&mask.recorded.finish(), self.max_bytes);
        }
        state.screen = OutputSink::default();
        if state.dropped_bytes > 0 {
            let tail = std::mem::take(&mut state.dropped_tail);
            let left_out = state.dropped_bytes - tail.len() as u64;
            let remark = format!("\n[{} of output omitted here]\n", show::size(left_out));
            state.write(&remark);
            state.write(&tail);
        }
        state.file = None;
    }

    /// Whether the command may still add output.
    pub(crate) fn is_growing(&self) -> bool {
        self.state().file.is_some()
    }

    pub(crate) fn size(&self) -> OutputSize {
        let state = self.settled();
        let cut = || {
            let limit = show::size(self.max_bytes);
            (state.dropped_bytes > 0)
                .then(|| format!("only the first {limit} and the end of the output are stored"))
        };
        OutputSize {
            bytes: state.bytes,
            lines: state.newlines + u64::from(state.ends_in_line),
            remark: state.failure.clone().or_else(cut),
        }
    }

    /// Reads a page.
    pub(crate) fn page(&self, start: Position) -> io::Result<Page> {
        drop(self.settled());
        page::read(BufReader::new(File::open(&self.path)?), start)
    }

    /// Reads the start and the end.
    pub(crate) fn excerpt(&self) -> io::Result<Excerpt> {
        drop(self.settled());
        let mut file = File::open(&self.path)?;
        let size = file.metadata()?.len();
        if size <= 2 * SHOWN_BYTES as u64 {
            let mut all = Vec::new();
            file.take(2 * SHOWN_BYTES as u64).read_to_end(&mut all)?;
            return Ok(Excerpt {
                head: String::from_utf8_lossy(&all).into_owned(),
                omitted: None,
                tail: String::new(),
            });
        }
        let mut head = vec![0; SHOWN_BYTES];
        file.read_exact(&mut head)?;
        let newline = head.iter().rposition(|byte| *byte == b'\n');
        let end = newline.map_or_else(|| start_of_character(&head, SHOWN_BYTES - 1), |at| at + 1);
        head.truncate(end);
        let mut tail = vec![0; SHOWN_BYTES];
        file.seek(SeekFrom::Start(size - SHOWN_BYTES as u64))?;
        file.read_exact(&mut tail)?;
        let start = match tail[..SHOWN_BYTES - 1]
            .iter()
            .position(|byte| *byte == b'\n')
        {
            Some(newline) => newline + 1,
            None => start_of_character(&tail, 3),
        };
        tail.drain(..start);
        Ok(Excerpt {
            omitted: Some(OmittedPart {
                bytes: size - (head.len() + tail.len()) as u64,
                start: Position {
                    line: 1 + head.iter().filter(|byte| **byte == b'\n').count() as u64,
                    skip_bytes: newline.map_or(head.len() as u64, |_| 0),
                },
            }),
            head: String::from_utf8_lossy(&head).into_owned(),
            tail: String::from_utf8_lossy(&tail).into_owned(),
        })
    }

    /// Returns the state after everything that was printed is in the file.
    fn settled(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        let open = state.terminal.record_open();
        state.record(&open, self.max_bytes);
        state
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn record(&mut self, text: &str, max_bytes: u64) {
        match &mut self.mask {
            Some(mask) => {
                let masked = mask.recorded.push(text);
                self.add(&masked, max_bytes);
            }
            None => self.add(text, max_bytes),
        }
    }

    /// Writes the part that fits below the limit and drops the rest.
    fn add(&mut self, text: &str, max_bytes: u64) {
        let left = max_bytes.saturating_sub(self.bytes);
        let fitting = match self.dropped_bytes {
            0 => text.floor_char_boundary(usize::try_from(left).unwrap_or(usize::MAX)),
            _ => 0,
        };
        let (stored, dropped) = text.split_at(fitting);
        self.write(stored);
        self.drop_text(dropped);
    }

    fn write(&mut self, text: &str) {
        let Some(file) = self.file.as_mut().filter(|_| !text.is_empty()) else {
            return;
        };
        if let Err(error) = file.write_all(text.as_bytes()) {
            // The command keeps running, but its output from here on is lost.
            self.failure = Some(format!("the output could not be stored: {error}"));
            self.file = None;
            return;
        }
        self.bytes += text.len() as u64;
        self.newlines += text.bytes().filter(|byte| *byte == b'\n').count() as u64;
        self.ends_in_line = !text.ends_with('\n');
    }

    fn drop_text(&mut self, text: &str) {
        self.dropped_bytes += text.len() as u64;
        self.dropped_tail.push_str(text);
        let excess = self.dropped_tail.len().saturating_sub(SHOWN_BYTES);
        // Not every time: moving the tail for every line of a long output would be slow.
        if excess > SHOWN_BYTES {
            let excess = self.dropped_tail.ceil_char_boundary(excess);
            self.dropped_tail.drain(..excess);
        }
    }
}
