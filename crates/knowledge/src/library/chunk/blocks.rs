//! The blocks of a text: its headings, and what stands between blank lines.

use super::Structure;

/// A block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Block<'a> {
    /// A heading.
    Heading {
        /// 1 is the highest.
        level: usize,
        /// Its words.
        title: &'a str,
    },
    /// A paragraph, a list, a piece of code.
    Text {
        /// As it stands there.
        text: &'a str,
        /// The line where it begins, from 1.
        line: u64,
    },
}

/// The blocks in their order.
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
        let begins = heading.is_some()
            || match structure {
                Structure::Code => was_blank && !is_blank && is_at_margin(line),
                Structure::Plain | Structure::Markdown => is_blank && fence.is_none(),
            };
        if begins && let Some((begin, line)) = open.take() {
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

/// `## Title`, with its level.
fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = &line[level..];
    let is_heading = (1..=6).contains(&level) && rest.starts_with([' ', '\t']);
    let title = rest.trim().trim_end_matches('#').trim_end();
    (is_heading && !title.is_empty()).then_some((level, title))
}

/// The mark that ends fenced code, if a line leaves us inside of some.
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

/// Whether a line of code begins something: at the margin, and not with the end of what came before.
fn is_at_margin(line: &str) -> bool {
    !line.starts_with([' ', '\t', '}', ')', ']'])
}
