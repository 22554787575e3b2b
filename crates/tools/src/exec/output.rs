//! What one command printed: a file that grows, and the parts of it that are shown.
//!
//! What goes into the file is text: bytes that are not UTF-8 and control characters are made visible on the way, so that
//! every reader finds text. The file has a limit; past it the output is counted and dropped but for its end, which is
//! put below a remark when the command is done.

use super::page::{self, Page, Position, start_of_character};
use crate::show;
use lango_secrets::{MaskText, Masks};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How much of the start and of the end is shown of an output that is longer than both.
const SHOWN_BYTES: usize = 12 * 1024;

/// The output of one command. Written while it runs, read at any time.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    most_bytes: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Open until the command is done.
    file: Option<File>,
    bytes: u64,
    newlines: u64,
    ends_in_line: bool,
    dropped_bytes: u64,
    /// The end of what was dropped.
    dropped_tail: String,
    failure: Option<String>,
    /// Masks the secrets that the command may have seen.
    mask: Option<MaskText>,
}

/// What there is of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
    /// Why it is not all, if it is not.
    pub(crate) remark: Option<String>,
}

/// The start and the end of an output, or all of it.
pub(crate) struct Excerpt {
    pub(crate) head: String,
    pub(crate) middle: Option<Middle>,
    pub(crate) tail: String,
}

/// What an excerpt leaves out.
pub(crate) struct Middle {
    pub(crate) bytes: u64,
    /// Where it starts.
    pub(crate) start: Position,
}

impl Output {
    /// An output that is written to this file, which is new and empty.
    pub(crate) fn new(path: PathBuf, file: File, most_bytes: u64) -> Self {
        let state = State {
            file: Some(file),
            bytes: 0,
            newlines: 0,
            ends_in_line: false,
            dropped_bytes: 0,
            dropped_tail: String::new(),
            failure: None,
            mask: None,
        };
        Self {
            path,
            most_bytes,
            state: Mutex::new(state),
        }
    }

    /// Masks secrets in what is printed from now on. Masked as a whole, no page of it shows a part of a value.
    pub(crate) fn mask(&self, masks: &Masks) {
        self.state().mask = Some(masks.text_stream());
    }

    /// Adds what a command printed. Writing goes to the system's memory first, so it is done on the spot.
    pub(crate) fn push(&self, printed: &[u8]) {
        let mut state = self.state();
        let text = match &mut state.mask {
            Some(mask) => mask.push(printed).into(),
            None => String::from_utf8_lossy(printed),
        };
        state.add(&visible(&text), self.most_bytes);
    }

    /// Says that nothing more comes.
    pub(crate) fn finish(&self) {
        let mut state = self.state();
        if let Some(mut mask) = state.mask.take() {
            let rest = mask.finish();
            state.add(&visible(&rest), self.most_bytes);
        }
        if state.dropped_bytes > 0 {
            let tail = std::mem::take(&mut state.dropped_tail);
            let left_out = state.dropped_bytes - tail.len() as u64;
            let remark = format!("\n[{} of the output left out here]\n", show::size(left_out));
            state.write(&remark);
            state.write(&tail);
        }
        state.file = None;
    }

    /// Whether more may come.
    pub(crate) fn is_growing(&self) -> bool {
        self.state().file.is_some()
    }

    /// How much there is.
    pub(crate) fn extent(&self) -> Extent {
        let state = self.state();
        let cut = || {
            let limit = show::size(self.most_bytes);
            (state.dropped_bytes > 0)
                .then(|| format!("only the first {limit} and the end of the output are kept"))
        };
        Extent {
            bytes: state.bytes,
            lines: state.newlines + u64::from(state.ends_in_line),
            remark: state.failure.clone().or_else(cut),
        }
    }

    /// A part of it.
    pub(crate) fn page(&self, start: Position) -> io::Result<Page> {
        page::read(BufReader::new(File::open(&self.path)?), start)
    }

    /// Its start and its end.
    pub(crate) fn excerpt(&self) -> io::Result<Excerpt> {
        let mut file = File::open(&self.path)?;
        let size = file.metadata()?.len();
        if size <= 2 * SHOWN_BYTES as u64 {
            let mut all = Vec::new();
            file.take(2 * SHOWN_BYTES as u64).read_to_end(&mut all)?;
            return Ok(Excerpt {
                head: String::from_utf8_lossy(&all).into_owned(),
                middle: None,
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
            middle: Some(Middle {
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Writes what fits below the limit, and drops the rest.
    fn add(&mut self, text: &str, most_bytes: u64) {
        let left = most_bytes.saturating_sub(self.bytes);
        let fitting = match self.dropped_bytes {
            0 => text.floor_char_boundary(usize::try_from(left).unwrap_or(usize::MAX)),
            _ => 0,
        };
        let (kept, dropped) = text.split_at(fitting);
        self.write(kept);
        self.drop_text(dropped);
    }

    fn write(&mut self, text: &str) {
        let Some(file) = self.file.as_mut().filter(|_| !text.is_empty()) else {
            return;
        };
        if let Err(error) = file.write_all(text.as_bytes()) {
            // The command goes on; what it prints from here on is lost.
            self.failure = Some(format!("the output could not be kept: {error}"));
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
        // Now and then, so that a long output does not move its end along with every line.
        if excess > SHOWN_BYTES {
            let excess = self.dropped_tail.ceil_char_boundary(excess);
            self.dropped_tail.drain(..excess);
        }
    }
}

/// Shows control characters by their signs (`␛`).
fn visible(text: &str) -> String {
    let sign = |c: char| match c {
        '\n' | '\t' => c,
        '\u{7f}' => '␡',
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('�'),
        '\u{80}'..='\u{9f}' => '�',
        _ => c,
    };
    text.replace("\r\n", "\n").chars().map(sign).collect()
}
