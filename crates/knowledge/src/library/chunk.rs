//! Splits a text into chunks of similar length, along its headings and paragraphs.
//!
//! A chunk has about 300 words and never more than 400, so that a vector can represent its topic and a model can read
//! several. If possible it starts at a section or a paragraph. Within a section, the end of a chunk is repeated at the
//! start of the next, so that a sentence that spans both can be found.

mod blocks;
mod cut;

use blocks::{Block, blocks};
use cut::{cut, tail};

/// The number of words from which a chunk is full.
const FULL_WORDS: usize = 300;
/// Maximum number of words per chunk.
const MAX_WORDS: usize = 400;

/// Maximum number of bytes per chunk, for texts without spaces.
const MAX_BYTES: usize = 6000;

/// After a section with fewer words, the next one continues in the same chunk.
const FEW_WORDS: usize = 60;

/// The number of repeated words.
const OVERLAP_WORDS: usize = 30;

/// Maximum number of characters per heading.
const MAX_HEADING: usize = 120;
/// Maximum number of characters of all headings above a chunk together.
const MAX_PATH: usize = 300;

/// The structure of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Structure {
    /// Paragraphs.
    Plain,
    /// Headings, paragraphs and fenced code.
    Markdown,
    /// Blocks that start with an unindented line.
    Code,
}

/// A part of a text that a search can return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    /// The headings above it, the highest first.
    pub heading: String,
    pub text: String,
    /// The line where it starts, from 1.
    pub line: u64,
}

/// Splits a text into chunks.
pub(super) fn chunks(text: &str, structure: Structure) -> Vec<Chunk> {
    let mut chunker = Chunker::new(structure);
    for block in blocks(text, structure) {
        match block {
            Block::Heading { level, title, .. } => chunker.heading(level, title),
            Block::Text { text, line } => chunker.text(text, line),
        }
    }
    chunker.finish()
}

/// Returns the length of a text in words, or an estimate by bytes if that is more, as in texts without spaces.
fn length(text: &str) -> usize {
    let spaced = text.split_whitespace().count();
    spaced.max(text.len() / (MAX_BYTES / MAX_WORDS))
}

struct Chunker {
    structure: Structure,
    chunks: Vec<Chunk>,
    /// The headings above the current position, with their levels.
    path: Vec<(usize, String)>,
    /// Whether no text has followed the last heading yet.
    is_bare: bool,
    text: String,
    /// How many bytes of the text repeat the previous chunk.
    repeated: usize,
    heading: String,
    line: u64,
}

impl Chunker {
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
            self.start_new();
        }
        let title: String = title.chars().take(MAX_HEADING).collect();
        // A heading without text, and without another heading below it, would be lost.
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
            if !self.new_text().is_empty() && length(&self.text) + length(part) > MAX_WORDS {
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
                self.start_new();
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
        self.start_new();
    }

    fn start_new(&mut self) {
        self.text.clear();
        self.repeated = 0;
    }

    /// Starts a chunk with the end of the last one.
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
        titles.join(" > ").chars().take(MAX_PATH).collect()
    }
}

#[cfg(test)]
mod tests;
