//! Reads a page of a text, starting at a given line and limited in size.

use std::io::{self, BufRead, Read};

/// Maximum size of a page.
pub(crate) const PAGE_BYTES: usize = 32 * 1024;

/// Where a page starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// Line number, starting at 1.
    pub(crate) line: u64,
    /// Number of bytes to skip at the start of the line, if the line is longer than a page.
    pub(crate) skip_bytes: u64,
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) bytes: Vec<u8>,
    /// Start of the next page, if the text continues.
    pub(crate) next: Option<Position>,
}

/// Reads the page that starts at `start`; the page is empty if the text ends before that. A page ends at the end of a
/// line unless the line is too long.
pub(crate) fn read(mut text: impl BufRead, start: Position) -> io::Result<Page> {
    let mut line = 1;
    while line < start.line {
        let buffer = text.fill_buf()?;
        if buffer.is_empty() {
            break;
        }
        let newline = buffer.iter().position(|byte| *byte == b'\n');
        let taken = newline.map_or(buffer.len(), |at| at + 1);
        line += u64::from(newline.is_some());
        text.consume(taken);
    }
    io::copy(&mut text.by_ref().take(start.skip_bytes), &mut io::sink())?;
    let mut bytes = Vec::new();
    text.take(PAGE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() <= PAGE_BYTES {
        return Ok(Page { bytes, next: None });
    }
    let next = match bytes[..PAGE_BYTES].iter().rposition(|byte| *byte == b'\n') {
        Some(newline) => {
            bytes.truncate(newline + 1);
            let newlines = bytes.iter().filter(|byte| **byte == b'\n').count();
            Position {
                line: start.line + newlines as u64,
                skip_bytes: 0,
            }
        }
        None => {
            let end = start_of_character(&bytes, PAGE_BYTES);
            bytes.truncate(end);
            Position {
                line: start.line,
                skip_bytes: start.skip_bytes + end as u64,
            }
        }
    };
    Ok(Page {
        bytes,
        next: Some(next),
    })
}

/// Returns the last offset up to `at` where a UTF-8 character starts. A character has at most four bytes.
pub(crate) fn start_of_character(bytes: &[u8], at: usize) -> usize {
    let starts = |offset: &usize| bytes[*offset] & 0b1100_0000 != 0b1000_0000;
    (at.saturating_sub(3)..=at).rev().find(starts).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_pages(text: &str) -> Vec<String> {
        let mut start = Position {
            line: 1,
            skip_bytes: 0,
        };
        let mut pages = Vec::new();
        loop {
            let page = read(text.as_bytes(), start).expect("memory can be read");
            pages.push(String::from_utf8(page.bytes).expect("no character is split"));
            match page.next {
                Some(next) => start = next,
                None => return pages,
            }
        }
    }

    #[test]
    fn all_pages_together_are_the_whole_text() {
        let lines: String = (0..20_000).map(|line| format!("line {line}\n")).collect();
        let long_line = "ä€𝄞x".repeat(20_000);
        for text in [
            String::new(),
            "no end".into(),
            lines.clone(),
            long_line.clone(),
            format!("first\n{long_line}\n{lines}{long_line}"),
        ] {
            let pages = all_pages(&text);
            assert_eq!(pages.concat(), text);
            assert!(pages.iter().all(|page| page.len() <= PAGE_BYTES));
        }
    }

    #[test]
    fn a_start_past_the_end_gives_an_empty_page() {
        let start = Position {
            line: 9,
            skip_bytes: 3,
        };
        let page = read(&b"a\nb\n"[..], start).expect("memory can be read");
        assert_eq!(
            page,
            Page {
                bytes: Vec::new(),
                next: None
            }
        );
    }
}
