//! A stored session as a Markdown document: every message under its author, with delegations and tool calls in between.
//!
//! Messages are quoted and everything else is in fenced blocks, so no content can pose as the heading of another author
//! or leave its place: a quote ends where its lines end, whatever is open inside it, and a fence is longer than any inside.

use super::Transcript;
use chrono::{DateTime, Utc};
use lango::app::attach::attachment_line;
use lango_core::text::{one_line, sanitize};
use lango_core::{Event, EventBody, Timestamp};

/// The longest title in a heading, in characters.
const MAX_TITLE_CHARS: usize = 200;

/// The most lines of one fenced block; more lines start another one.
const MAX_BLOCK_LINES: usize = 200;

#[derive(Default)]
pub struct MarkdownTranscript {
    transcript: Transcript,
    /// Lines for the next fenced block.
    block: Vec<String>,
}

impl MarkdownTranscript {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the heading of the document.
    pub fn heading(&self, title: &str, id: &str, created: Timestamp) -> String {
        let title = match one_line(title, MAX_TITLE_CHARS) {
            title if title.is_empty() => id.to_owned(),
            title => title,
        };
        let created = i64::try_from(created.0).unwrap_or(i64::MAX);
        let created = DateTime::from_timestamp_millis(created).unwrap_or(DateTime::<Utc>::MAX_UTC);
        let day = created.format("%Y-%m-%d");
        format!("# {}\n\nsession `{id}`, started {day}", escaped(&title))
    }

    /// Returns the lines for one event.
    pub fn lines(&mut self, event: &Event) -> Vec<String> {
        self.transcript.note(event);
        let text = match &event.body {
            EventBody::UserMessage { text, .. } => text,
            EventBody::AgentMessage { text, .. } if !text.trim().is_empty() => text,
            EventBody::RemoteReturned { output, .. } => output,
            _ => {
                let lines = self.transcript.lines(event).into_iter();
                self.block.extend(lines.filter(|line| !line.is_empty()));
                return if self.block.len() < MAX_BLOCK_LINES {
                    Vec::new()
                } else {
                    self.finish()
                };
            }
        };
        let mut lines = self.finish();
        lines.push(format!("\n## {}\n", escaped(event.author.as_str())));
        lines.extend(quoted(text));
        let attachments = event.body.attachments().iter();
        self.block.extend(attachments.map(attachment_line));
        lines
    }

    /// Returns the lines that are still due.
    pub fn finish(&mut self) -> Vec<String> {
        if self.block.is_empty() {
            return Vec::new();
        }
        let block = std::mem::take(&mut self.block);
        let block: Vec<String> = block
            .iter()
            .map(|line| sanitize(line).into_owned())
            .collect();
        let fence = fence(block.iter().map(String::as_str));
        let mut lines = vec![format!("\n{fence}text")];
        lines.extend(block);
        lines.push(fence);
        lines
    }
}

/// Returns a fence that is longer than every run of backticks in these lines.
pub fn fence<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
    let lines = lines.into_iter();
    let runs = lines.flat_map(|line| line.split(|letter| letter != '`'));
    let longest = runs.map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

fn quoted(text: &str) -> Vec<String> {
    let safe = sanitize(text.trim_end());
    let lines = safe
        .lines()
        .map(|line| format!("> {line}").trim_end().to_owned());
    lines.collect()
}

/// Escapes what would be Markdown in a heading.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(
            letter,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '!' | '|' | '~' | '&'
        ) {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}
