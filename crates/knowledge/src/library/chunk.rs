//! From a text to chunks: along its headings and paragraphs, of about the same length.
//!
//! A chunk has 300 words or so and never more than 400, so that a vector can say what it is about and a model can be
//! shown several. It begins where a section or a paragraph begins if it can. Within a section the end of a chunk is said
//! again at the beginning of the next, so that a sentence about both is found.

mod blocks;
mod cut;

use blocks::{Block, blocks};
use cut::{cut, tail};

/// At how many words a chunk is full, and how many it has at most.
const FULL_WORDS: usize = 300;
const MOST_WORDS: usize = 400;

/// How many bytes it has at most, in a text without words.
const MOST_BYTES: usize = 6000;

/// A section with fewer words goes on in the same chunk.
const FEW_WORDS: usize = 60;

/// How many words are said again.
const OVERLAP_WORDS: usize = 30;

/// How much of a heading is kept, in characters, and how much of all those above a chunk.
const LONGEST_HEADING: usize = 120;
const LONGEST_PATH: usize = 300;

/// How a text is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Structure {
    /// Paragraphs.
    Plain,
    /// Headings, paragraphs and fenced code.
    Markdown,
    /// Blocks of lines that begin at the margin.
    Code,
}

/// A part of a text that can be found by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    /// The headings above it, the highest first.
    pub heading: String,
    /// Its text.
    pub text: String,
    /// The line where it begins, from 1.
    pub line: u64,
}

/// Cuts a text.
pub(super) fn chunks(text: &str, structure: Structure) -> Vec<Chunk> {
    let mut cutter = Cutter::new(structure);
    for block in blocks(text, structure) {
        match block {
            Block::Heading { level, title, .. } => cutter.heading(level, title),
            Block::Text { text, line } => cutter.text(text, line),
        }
    }
    cutter.finish()
}

/// How long a text is: its words, or more if they are no words.
fn length(text: &str) -> usize {
    let spaced = text.split_whitespace().count();
    spaced.max(text.len() / (MOST_BYTES / MOST_WORDS))
}

struct Cutter {
    structure: Structure,
    chunks: Vec<Chunk>,
    /// The headings that hold here, with their levels.
    path: Vec<(usize, String)>,
    /// Whether the last of them has had no text yet.
    is_bare: bool,
    text: String,
    /// What of it was said before.
    repeated: usize,
    heading: String,
    line: u64,
}

impl Cutter {
    fn new(structure: Structure) -> Self {
        Self {
            structure,
            chunks: Vec::new(),
            path: Vec::new(),
            is_bare: false,
            text: String::new(),
            repeated: 0,
            heading: String::new(),
            line: 1,
        }
    }

    fn heading(&mut self, level: usize, title: &str) {
        if length(self.new_text()) >= FEW_WORDS {
            self.flush();
        } else if self.new_text().is_empty() {
            self.begin_anew();
        }
        let title: String = title.chars().take(LONGEST_HEADING).collect();
        // A heading without a text of its own, and without one below it, would be lost.
        let bare = self
            .path
            .last()
            .filter(|(last, _)| self.is_bare && *last >= level);
        if let Some((_, bare)) = bare.cloned() {
            self.push(&bare);
        }
        self.path.retain(|(above, _)| *above < level);
        if !self.text.is_empty() {
            self.push(&title);
        }
        self.path.push((level, title));
        self.is_bare = true;
    }

    fn text(&mut self, text: &str, line: u64) {
        self.is_bare = false;
        for (part, offset) in cut(text, self.structure) {
            if !self.new_text().is_empty() && length(&self.text) + length(part) > MOST_WORDS {
                self.flush();
                self.overlap();
            }
            if self.new_text().is_empty() {
                self.heading = self.path_text();
                self.line = line + offset;
            }
            self.push(part);
            if length(&self.text) >= FULL_WORDS {
                self.flush();
                self.overlap();
            }
        }
    }

    fn finish(mut self) -> Vec<Chunk> {
        if let Some((_, bare)) = self.path.last().cloned().filter(|_| self.is_bare) {
            if self.new_text().is_empty() {
                self.begin_anew();
                self.heading = self.path_text();
            }
            if !self.text.ends_with(&bare) {
                self.push(&bare);
            }
        }
        self.flush();
        self.chunks
    }

    fn new_text(&self) -> &str {
        self.text[self.repeated..].trim()
    }

    fn push(&mut self, part: &str) {
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(part);
    }

    fn flush(&mut self) {
        if !self.new_text().is_empty() {
            self.chunks.push(Chunk {
                heading: std::mem::take(&mut self.heading),
                text: std::mem::take(&mut self.text),
                line: self.line,
            });
        }
        self.begin_anew();
    }

    fn begin_anew(&mut self) {
        self.text.clear();
        self.repeated = 0;
    }

    /// Begins a chunk with the end of the last one.
    fn overlap(&mut self) {
        if self.structure != Structure::Code
            && let Some(last) = self.chunks.last()
        {
            self.text = tail(&last.text, OVERLAP_WORDS).to_owned();
            self.repeated = self.text.len();
        }
    }

    fn path_text(&self) -> String {
        let titles: Vec<&str> = self.path.iter().map(|(_, title)| title.as_str()).collect();
        titles.join(" > ").chars().take(LONGEST_PATH).collect()
    }
}

#[cfg(test)]
mod tests;
