//! Cuts a text that is still arriving into blocks that can be rendered on their own.
//!
//! Where a block ends is for the markdown parser to say, not for a second set of rules: at each blank line it is asked
//! whether text that came now would be a new block. Cuts are only made where the answer cannot change any more.

use pulldown_cmark::{CodeBlockKind, Event, Tag};

use super::{is_blank, parser};

/// The splitter. Whatever was pushed comes out again, in order and unchanged, from [`push`](Self::push) and
/// [`finish`](Self::finish).
#[derive(Debug, Default)]
pub struct Blocks {
    /// What has not come out yet.
    pending: String,
    /// Where the first line of `pending` that was not looked at begins.
    line_start: usize,
    /// Whether the line before that is blank.
    after_blank: bool,
    /// Whether the beginning of that line was looked at already.
    has_peeked: bool,
    /// The fence of a code block that is open: nothing ends it but another one, so until then nobody needs to ask.
    fence: Option<char>,
}

impl Blocks {
    /// Takes the next piece of the text and gives the blocks that it completes.
    pub fn push(&mut self, piece: &str) -> Vec<String> {
        self.pending.push_str(piece);
        let mut complete = Vec::new();
        while let Some(length) = self.pending[self.line_start..].find('\n') {
            let line_end = self.line_start + length + 1;
            complete.extend(self.look_at_line(line_end));
        }
        complete.extend(self.look_at_beginning_of_line());
        complete
    }

    /// What is left when the text has ended.
    pub fn finish(self) -> Option<String> {
        Some(self.pending).filter(|rest| !rest.is_empty())
    }

    /// Looks at the whole line that ends at `line_end`, and moves on to the next.
    fn look_at_line(&mut self, line_end: usize) -> Option<String> {
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
            // Of several blank lines the first decides.
            (None, true) if self.after_blank => None,
            (None, true) => self.ends_with_blank_line(line_end).then_some(line_end),
            (None, false) => self.begins_block(line_end).then_some(self.line_start),
        };
        self.line_start = line_end;
        self.after_blank = is_blank;
        self.has_peeked = false;
        cut.and_then(|cut| self.take(cut))
    }

    /// A line that begins with a letter is a paragraph after a blank line, however it goes on: no need to wait for all
    /// of it.
    fn look_at_beginning_of_line(&mut self) -> Option<String> {
        let line = &self.pending[self.line_start..];
        if self.has_peeked || self.fence.is_some() || !line.starts_with(char::is_alphabetic) {
            return None;
        }
        self.has_peeked = true;
        self.begins_block(self.pending.len())
            .then_some(self.line_start)
            .and_then(|cut| self.take(cut))
    }

    /// Whether the blank line that ends at `line_end` ends the block before it for good.
    fn ends_with_blank_line(&mut self, line_end: usize) -> bool {
        let mut probe = self.pending[..line_end].to_owned();
        probe.push('x');
        let mut blocks = top_level(&probe);
        match (blocks.pop(), blocks.pop()) {
            (Some(last), Some(before)) if last.start == line_end => before.kind != Kind::MayGoOn,
            (Some(last), _) => {
                self.fence = last.fence(&probe);
                false
            }
            _ => false,
        }
    }

    /// Whether the current line begins a new block after a blank line.
    fn begins_block(&self, line_end: usize) -> bool {
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

/// A block that is in no other.
struct Block {
    start: usize,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A paragraph, a table, a quote and the like; HTML too, unless the parser says that it is open.
    EndsAtBlankLine,
    /// A code block between fences; a blank line ends it only if its fence is closed.
    Fenced,
    /// A list, indented code: what comes after the blank line may still belong to it.
    MayGoOn,
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
        Tag::CodeBlock(CodeBlockKind::Indented) | Tag::List(_) => Kind::MayGoOn,
        _ => Kind::EndsAtBlankLine,
    }
}
