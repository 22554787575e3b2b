//! One page of a text file: found by line, bounded in bytes, checked to be text.
//!
//! Nothing is kept but the page: lines before it are counted in a fixed buffer. A page ends at the end of a line, except
//! inside a line that is longer than a page; so any file can be read to its end by following [`Page::next`].

use super::guess::guess_kind;
use std::io::{self, BufRead, BufReader, Read};
use std::num::NonZeroU64;

/// The most text that one page has.
pub(super) const PAGE_BYTES: usize = 64 * 1024;

/// How much of a file is read at a time. Most files are small.
const BUFFER_BYTES: usize = 16 * 1024;

/// How far into a file a page may start; less in this crate's own tests, which would only be slower.
pub(super) const SCANNED_BYTES: u64 = if cfg!(test) { 1_000_000 } else { 256_000_000 };

/// Where a page starts.
#[derive(Clone, Copy)]
pub(super) struct Position {
    /// The line, counted from 1.
    pub(super) line: u64,
    /// How many bytes of it come before.
    pub(super) skip_bytes: u64,
}

/// A part of a file.
pub(super) struct Page {
    pub(super) text: String,
    /// Where the next one starts, if there is more.
    pub(super) next: Option<Position>,
    /// How many bytes of the file come up to its end.
    pub(super) end: u64,
}

/// Why there is no page.
pub(super) enum Stop {
    NotText { guess: &'static str },
    PastTheEnd { lines: u64 },
    PastTheLine,
    TooFar,
    Failed(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// The page of `file` that starts at `start` and has at most `lines` lines.
pub(super) fn read(
    file: impl Read,
    start: Position,
    lines: Option<NonZeroU64>,
) -> Result<Page, Stop> {
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
    /// How many bytes are behind.
    offset: u64,
    /// The first bytes of the file, to tell what it is if it is not text.
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

    fn skip_lines(&mut self, count: u64) -> Result<(), Stop> {
        let mut left = count;
        let mut inside_line = false;
        while left > 0 {
            let buffer = self.upcoming()?;
            let Some(last) = buffer.last() else {
                return Err(Stop::PastTheEnd {
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
        if count > 0 && self.upcoming()?.is_empty() {
            return Err(Stop::PastTheEnd { lines: count });
        }
        Ok(())
    }

    /// Moves on by `count` bytes or a little more, up to the start of a character; says by how many.
    fn skip_in_line(&mut self, count: u64) -> Result<u64, Stop> {
        let before = self.offset;
        let mut left = count;
        while left > 0 {
            let buffer = self.upcoming()?;
            let rest_of_line = end_of_line(buffer, 1).map_or(buffer.len(), |end| end - 1);
            let taken = rest_of_line.min(usize::try_from(left).unwrap_or(usize::MAX));
            if taken == 0 {
                return Err(Stop::PastTheLine);
            }
            left -= taken as u64;
            self.consume(taken);
        }
        // The rest of a character that was cut has at most three bytes.
        for _ in 0..count.min(3) {
            if self
                .upcoming()?
                .first()
                .is_some_and(|byte| continues_character(*byte))
            {
                self.consume(1);
            }
        }
        if count > 0 && self.upcoming()?.is_empty() {
            return Err(Stop::PastTheLine);
        }
        Ok(self.offset - before)
    }

    fn take_page(self, start: Position, lines: Option<NonZeroU64>) -> Result<Page, Stop> {
        let mut bytes = Vec::new();
        self.reader
            .take(PAGE_BYTES as u64 + 1)
            .read_to_end(&mut bytes)?;
        let seen = bytes.len();
        bytes.truncate(page_end(&bytes, lines));
        if bytes.contains(&0) {
            return Err(Stop::NotText {
                guess: guess_kind(&self.head, true),
            });
        }
        let text = String::from_utf8(bytes).map_err(|_| Stop::NotText {
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

    /// The bytes that come next; none at the end of the file.
    fn upcoming(&mut self) -> Result<&[u8], Stop> {
        if self.offset > SCANNED_BYTES {
            return Err(Stop::TooFar);
        }
        let buffer = self.reader.fill_buf()?;
        if buffer.contains(&0) {
            return Err(Stop::NotText {
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

/// How much of `bytes`, which has one byte more than a page if the file goes on, belongs to the page.
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
            // A character has at most four bytes; more of this kind in a row are no text, which is found out later.
            let inside = bytes[PAGE_BYTES - 3..]
                .iter()
                .rev()
                .take_while(|byte| continues_character(**byte));
            PAGE_BYTES - inside.count()
        }
    }
}

/// Where the line after the `nth` newline starts.
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
    fn a_line_that_never_ends_is_given_up_at_the_limit() {
        let start = Position {
            line: 2,
            skip_bytes: 0,
        };
        assert!(matches!(
            read(io::repeat(b'x'), start, None),
            Err(Stop::TooFar)
        ));
        let start = Position {
            line: 1,
            skip_bytes: u64::MAX,
        };
        assert!(matches!(
            read(io::repeat(b'x'), start, None),
            Err(Stop::TooFar)
        ));
    }
}
