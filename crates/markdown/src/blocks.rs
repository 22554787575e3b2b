//! Splits a text that is still arriving into blocks that can be rendered on their own.
//!
//! The markdown parser decides where a block ends, not a second set of rules: at each blank line it is asked whether
//! the next text would start a new block. A cut is made only where the answer can no longer change.

use pulldown_cmark::{CodeBlockKind, Event, Tag};

use super::{is_blank, parser};

/// The splitter. All text that is pushed is returned in order and unchanged by [`push`](Self::push) and
/// [`finish`](Self::finish).
#[derive(Debug, Default)]
pub struct Blocks {
    /// The text that has not been returned yet.
    pending: String,
    /// The start of the first line of `pending` that has not been checked.
    line_start: usize,
    /// Whether the line before `line_start` is blank.
    after_blank: bool,
    /// Whether the start of the line at `line_start` has already been checked.
    has_peeked: bool,
    /// The fence of an open code block. Only another fence ends it, so the parser need not be asked until then.
    fence: Option<char>,
}

impl Blocks {
    /// Adds the next piece of the text and returns the blocks that it completes.
    pub fn push(&mut self, piece: &str) -> Vec<String> {
        self.pending.push_str(piece);
        let mut complete = Vec::new();
        while let Some(length) = self.pending[self.line_start..].find('\n') {
            let line_end = self.line_start + length + 1;
            complete.extend(self.check_line(line_end));
        }
        complete.extend(self.check_line_start());
        complete
    }

    /// Returns the rest at the end of the text.
    pub fn finish(self) -> Option<String> {
        Some(self.pending).filter(|rest| !rest.is_empty())
    }

    /// Checks the complete line that ends at `line_end`, and moves on to the next.
    fn check_line(&mut self, line_end: usize) -> Option<String> {
        let line = &self.pending[self.line_start..line_end];
        let is_blank = line.trim_matches(is_blank).is_empty();
        if self
            .fence
            .is_some_and(|fence| line.trim_start().starts_with(fence))
        {
            self.fence = None;
        }
        let cut = match (self.fence, is_blank) {
            (Some(_), _) => None,
            // The first of several blank lines decides.
            (None, true) if self.after_blank => None,
            (None, true) => self.ends_with_blank_line(line_end).then_some(line_end),
            (None, false) => self.starts_block(line_end).then_some(self.line_start),
        };
        self.line_start = line_end;
        self.after_blank = is_blank;
        self.has_peeked = false;
        cut.and_then(|cut| self.take(cut))
    }

    /// Checks the start of an incomplete line. After a blank line, a line that starts with a letter is a paragraph,
    /// whatever follows, so there is no need to wait for the rest.
    fn check_line_start(&mut self) -> Option<String> {
        let line = &self.pending[self.line_start..];
        if self.has_peeked || self.fence.is_some() || !line.starts_with(char::is_alphabetic) {
            return None;
        }
        self.has_peeked = true;
        self.starts_block(self.pending.len())
            .then_some(self.line_start)
            .and_then(|cut| self.take(cut))
    }

    /// Returns whether the blank line that ends at `line_end` definitely ends the block before it.
    fn ends_with_blank_line(&mut self, line_end: usize) -> bool {
        let mut probe = self.pending[..line_end].to_owned();
        probe.push('x');
        let mut blocks = top_level(&probe);
        match (blocks.pop(), blocks.pop()) {
            (Some(last), Some(before)) if last.start == line_end => {
                before.kind != Kind::MayContinue
            }
            (Some(last), _) => {
                self.fence = last.fence(&probe);
                false
            }
            _ => false,
        }
    }

    /// Returns whether the current line starts a new block after a blank line.
    fn starts_block(&self, line_end: usize) -> bool {
        let line = &self.pending[self.line_start..line_end];
        let text_start = self.line_start + (line.len() - line.trim_start_matches(is_blank).len());
        let is_here = |block: &Block| (self.line_start..=text_start).contains(&block.start);
        self.after_blank
            && self.line_start > 0
            && top_level(&self.pending[..line_end]).iter().any(is_here)
    }

    fn take(&mut self, cut: usize) -> Option<String> {
        let rest = self.pending.split_off(cut);
        self.line_start -= cut;
        Some(std::mem::replace(&mut self.pending, rest)).filter(|block| !block.is_empty())
    }
}

/// A top-level block.
struct Block {
    start: usize,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A paragraph, a table, a quote and so on; also HTML, unless the parser considers it open.
    EndsAtBlankLine,
    /// A fenced code block; a blank line ends it only if its fence is closed.
    Fenced,
    /// A list or indented code; text after the blank line may still belong to it.
    MayContinue,
}

impl Block {
    fn fence(&self, text: &str) -> Option<char> {
        text[self.start..]
            .trim_start()
            .chars()
            .next()
            .filter(|_| self.kind == Kind::Fenced)
    }
}

fn top_level(text: &str) -> Vec<Block> {
    let mut depth = 0;
    let mut blocks = Vec::new();
    for (event, range) in parser(text).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    blocks.push(Block {
                        start: range.start,
                        kind: kind(&tag),
                    });
                }
                depth += 1;
            }
            Event::End(_) => depth -= 1,
            Event::Rule if depth == 0 => blocks.push(Block {
                start: range.start,
                kind: Kind::EndsAtBlankLine,
            }),
            _ => {}
        }
    }
    blocks
}

fn kind(tag: &Tag<'_>) -> Kind {
    match tag {
        Tag::CodeBlock(CodeBlockKind::Fenced(_)) => Kind::Fenced,
        Tag::CodeBlock(CodeBlockKind::Indented) | Tag::List(_) => Kind::MayContinue,
        _ => Kind::EndsAtBlankLine,
    }
}
