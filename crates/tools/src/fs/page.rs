//! Reads one page of a text file: finds it by line, limits its size and checks that it is text.
//!
//! Only the page is in memory; the lines before it are counted through a fixed buffer. A page ends at the end of a
//! line, or inside a line that is longer than a page. So any file can be read to its end by following [`Page::next`].

use super::guess::guess_kind;
use std::io::{self, BufRead, BufReader, Read};
use std::num::NonZeroU64;

/// Maximum size of a page.
pub(super) const PAGE_BYTES: usize = 64 * 1024;

/// Size of the read buffer. It is small because most files are small.
const BUFFER_BYTES: usize = 16 * 1024;

/// How far into a file a page may start. Smaller in this crate's unit tests, to keep them fast.
pub(super) const SCANNED_BYTES: u64 = if cfg!(test) { 1_000_000 } else { 256_000_000 };

/// Where a page starts.
#[derive(Clone, Copy)]
pub(super) struct Position {
    /// Line number, starting at 1.
    pub(super) line: u64,
    /// Number of bytes of the line that come before the page.
    pub(super) skip_bytes: u64,
}

/// A part of a file.
pub(super) struct Page {
    pub(super) text: String,
    /// Start of the next page, if the file continues.
    pub(super) next: Option<Position>,
    /// Byte offset in the file at which the page ends.
    pub(super) end: u64,
}

/// Why a page could not be read.
pub(super) enum PageError {
    NotText { guess: &'static str },
    PastTheEnd { lines: u64 },
    PastTheLine,
    TooFar,
    Failed(io::Error),
}

impl From<io::Error> for PageError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Reads the page of `file` that starts at `start` and has at most `lines` lines.
pub(super) fn read(
    file: impl Read,
    start: Position,
    lines: Option<NonZeroU64>,
) -> Result<Page, PageError> {
    let mut scan = Scan::new(file)?;
    scan.skip_lines(start.line - 1)?;
    let skip_bytes = scan.skip_in_line(start.skip_bytes)?;
    scan.take_page(
        Position {
            skip_bytes,
            ..start
        },
        lines,
    )
}

struct Scan<R> {
    reader: BufReader<R>,
    /// Number of bytes consumed.
    offset: u64,
    /// The first bytes of the file, to guess its type if it is not text.
    head: Vec<u8>,
}

impl<R: Read> Scan<R> {
    fn new(file: R) -> io::Result<Self> {
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
        let start = reader.fill_buf()?;
        let head = start[..start.len().min(512)].to_vec();
        Ok(Self {
            reader,
            offset: 0,
            head,
        })
    }

    fn skip_lines(&mut self, count: u64) -> Result<(), PageError> {
        let mut left = count;
        let mut inside_line = false;
        while left > 0 {
            let buffer = self.peek()?;
            let Some(last) = buffer.last() else {
                return Err(PageError::PastTheEnd {
                    lines: count - left + u64::from(inside_line),
                });
            };
            let (newlines, taken) = match end_of_line(buffer, left) {
                Some(end) => (left, end),
                None => (count_newlines(buffer), buffer.len()),
            };
            inside_line = *last != b'\n';
            left -= newlines;
            self.consume(taken);
        }
        if count > 0 && self.peek()?.is_empty() {
            return Err(PageError::PastTheEnd { lines: count });
        }
        Ok(())
    }

    /// Skips `count` bytes, and up to three more to reach the start of a character. Returns the number skipped.
    fn skip_in_line(&mut self, count: u64) -> Result<u64, PageError> {
        let before = self.offset;
        let mut left = count;
        while left > 0 {
            let buffer = self.peek()?;
            let rest_of_line = end_of_line(buffer, 1).map_or(buffer.len(), |end| end - 1);
            let taken = rest_of_line.min(usize::try_from(left).unwrap_or(usize::MAX));
            if taken == 0 {
                return Err(PageError::PastTheLine);
            }
            left -= taken as u64;
            self.consume(taken);
        }
        // The rest of a split character has at most three bytes.
        for _ in 0..count.min(3) {
            if self
                .peek()?
                .first()
                .is_some_and(|byte| continues_character(*byte))
            {
                self.consume(1);
            }
        }
        if count > 0 && self.peek()?.is_empty() {
            return Err(PageError::PastTheLine);
        }
        Ok(self.offset - before)
    }

    fn take_page(self, start: Position, lines: Option<NonZeroU64>) -> Result<Page, PageError> {
        let mut bytes = Vec::new();
        self.reader
            .take(PAGE_BYTES as u64 + 1)
            .read_to_end(&mut bytes)?;
        let seen = bytes.len();
        bytes.truncate(page_end(&bytes, lines));
        if bytes.contains(&0) {
            return Err(PageError::NotText {
                guess: guess_kind(&self.head, true),
            });
        }
        let text = String::from_utf8(bytes).map_err(|_| PageError::NotText {
            guess: guess_kind(&self.head, false),
        })?;
        let next = (text.len() < seen).then(|| Position {
            line: start.line + count_newlines(text.as_bytes()),
            skip_bytes: if text.ends_with('\n') {
                0
            } else {
                start.skip_bytes + text.len() as u64
            },
        });
        let end = self.offset + text.len() as u64;
        Ok(Page { text, next, end })
    }

    /// Returns the next buffered bytes; empty at the end of the file.
    fn peek(&mut self) -> Result<&[u8], PageError> {
        if self.offset > SCANNED_BYTES {
            return Err(PageError::TooFar);
        }
        let buffer = self.reader.fill_buf()?;
        if buffer.contains(&0) {
            return Err(PageError::NotText {
                guess: guess_kind(&self.head, true),
            });
        }
        Ok(buffer)
    }

    fn consume(&mut self, count: usize) {
        self.reader.consume(count);
        self.offset += count as u64;
    }
}

/// Returns how many of `bytes` belong to the page. `bytes` has one byte more than a page if the file continues.
fn page_end(bytes: &[u8], lines: Option<NonZeroU64>) -> usize {
    let fitting = &bytes[..bytes.len().min(PAGE_BYTES)];
    if let Some(end) = lines.and_then(|lines| end_of_line(fitting, lines.get())) {
        return end;
    }
    if bytes.len() <= PAGE_BYTES {
        return bytes.len();
    }
    match fitting.iter().rposition(|byte| *byte == b'\n') {
        Some(newline) => newline + 1,
        None => {
            // A character has at most four bytes. A longer run is not text, which the UTF-8 check finds.
            let inside = bytes[PAGE_BYTES - 3..]
                .iter()
                .rev()
                .take_while(|byte| continues_character(**byte));
            PAGE_BYTES - inside.count()
        }
    }
}

/// Returns the offset just after the `nth` newline.
fn end_of_line(bytes: &[u8], nth: u64) -> Option<usize> {
    let nth = usize::try_from(nth - 1).ok()?;
    bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .nth(nth)
        .map(|(at, _)| at + 1)
}

fn count_newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

fn continues_character(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scanning_an_endless_line_stops_at_the_limit() {
        let start = Position {
            line: 2,
            skip_bytes: 0,
        };
        assert!(matches!(
            read(io::repeat(b'x'), start, None),
            Err(PageError::TooFar)
        ));
        let start = Position {
            line: 1,
            skip_bytes: u64::MAX,
        };
        assert!(matches!(
            read(io::repeat(b'x'), start, None),
            Err(PageError::TooFar)
        ));
    }
}
