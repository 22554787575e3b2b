//! Splits a text into blocks: headings, and the text between blank lines.

use super::Structure;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Block<'a> {
    Heading {
        /// 1 is the highest.
        level: usize,
        title: &'a str,
    },
    /// A paragraph, a list or a piece of code.
    Text {
        /// The unchanged text.
        text: &'a str,
        /// The line where it starts, from 1.
        line: u64,
    },
}

/// Returns the blocks in order.
pub(super) fn blocks(text: &str, structure: Structure) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut open: Option<(usize, u64)> = None;
    let mut fence: Option<&str> = None;
    let mut was_blank = false;
    let mut start = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let (from, to) = (start, start + line.len());
        start = to;
        let is_blank = line.trim().is_empty();
        let heading = match structure {
            Structure::Markdown if fence.is_none() => heading(line),
            _ => None,
        };
        let starts_block = heading.is_some()
            || match structure {
                Structure::Code => was_blank && !is_blank && is_at_margin(line),
                Structure::Plain | Structure::Markdown => is_blank && fence.is_none(),
            };
        if starts_block && let Some((begin, line)) = open.take() {
            push(&mut found, &text[begin..from], line);
        }
        if let Some((level, title)) = heading {
            found.push(Block::Heading { level, title });
        } else if !is_blank && open.is_none() {
            open = Some((from, number));
        }
        if structure == Structure::Markdown {
            fence = fence_after(fence, line);
        }
        was_blank = is_blank;
    }
    if let Some((begin, line)) = open {
        push(&mut found, &text[begin..], line);
    }
    found
}

fn push<'a>(found: &mut Vec<Block<'a>>, text: &'a str, line: u64) {
    let text = text.trim_end();
    if !text.is_empty() {
        found.push(Block::Text { text, line });
    }
}

/// Parses a heading like `## Title` into its level and title.
fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = &line[level..];
    let is_heading = (1..=6).contains(&level) && rest.starts_with([' ', '\t']);
    let title = rest.trim().trim_end_matches('#').trim_end();
    (is_heading && !title.is_empty()).then_some((level, title))
}

/// Returns the mark that closes the current code fence, if the text after this line is inside one.
fn fence_after<'a>(fence: Option<&'a str>, line: &str) -> Option<&'a str> {
    let line = line.trim_start();
    match fence {
        Some(mark) if line.starts_with(mark) => None,
        Some(mark) => Some(mark),
        None => ["```", "~~~"]
            .into_iter()
            .find(|mark| line.starts_with(mark)),
    }
}

/// Returns whether a line of code starts a block: it is not indented, and does not close the block before.
fn is_at_margin(line: &str) -> bool {
    !line.starts_with([' ', '\t', '}', ')', ']'])
}
