//! Formats memories for a model, in prompts and tool results: one JSON object per line.
//!
//! JSON keeps every text within its quotes and on its line, and `<` is escaped, so no memory can pose as another entry
//! or close the block that it is in.

use crate::date::date;
use lango_core::{Provenance, Timestamp, Trust};
use lango_store::{Generation, MemoryId, MemoryRecord, SavedMemory};
use serde::Serialize;

/// The source name of observations and reflections by rules.
pub(super) const RULES: &str = "rules";

/// A memory as it is shown to a model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MemoryEntry {
    pub id: MemoryId,
    pub created: Timestamp,
    pub turns: Option<(u64, u64)>,
    pub generation: Option<Generation>,
    pub tags: Vec<String>,
    pub source: Provenance,
    pub text: String,
}

#[derive(Serialize)]
struct EntryLine<'a> {
    id: String,
    date: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u8>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    tags: &'a [String],
    by: &'a str,
    trust: Trust,
    text: &'a str,
}

impl From<MemoryRecord> for MemoryEntry {
    fn from(recollection: MemoryRecord) -> Self {
        Self {
            id: recollection.id,
            created: recollection.created,
            turns: Some(recollection.turns),
            generation: Some(recollection.generation),
            tags: Vec::new(),
            source: recollection.source,
            text: recollection.text.as_ref().to_owned(),
        }
    }
}

impl From<SavedMemory> for MemoryEntry {
    fn from(saved: SavedMemory) -> Self {
        Self {
            id: saved.id,
            created: saved.created,
            turns: None,
            generation: None,
            tags: saved.tags,
            source: saved.source,
            text: saved.text.as_ref().to_owned(),
        }
    }
}

impl MemoryEntry {
    /// Formats the entry as a line, with the line break.
    pub(super) fn line(&self) -> String {
        let turns = self.turns.map(|(first, last)| match (first + 1, last + 1) {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first}-{last}"),
        });
        let shown = EntryLine {
            id: self.id.to_string(),
            date: date(self.created),
            turns,
            generation: match self.generation {
                Some(Generation::First) => Some(1),
                Some(Generation::Second) => Some(2),
                Some(Generation::Observation) | None => None,
            },
            tags: &self.tags,
            by: &self.source.name,
            trust: self.source.trust,
            text: &self.text,
        };
        // Serializing texts and numbers cannot fail.
        let json = serde_json::to_string(&shown).unwrap_or_default();
        json.replace('<', "\\u003c") + "\n"
    }

    /// Formats the entry within this number of bytes, and truncates its text if necessary. Returns `None` if too little
    /// of the text would be left.
    pub(super) fn line_within(mut self, bytes: usize) -> Option<String> {
        /// If fewer bytes of the text than this would be left, the entry is not worth showing.
        const MIN_TEXT: usize = 120;
        let whole = self.line();
        if whole.len() <= bytes {
            return Some(whole);
        }
        // Escapes make a text longer, so truncating once may not be enough.
        while self.text.len() > MIN_TEXT {
            let excess = self.line().len().saturating_sub(bytes);
            let target = self.text.len().saturating_sub(excess + "…".len() + 1);
            let end = self.text.floor_char_boundary(target.max(MIN_TEXT - 1));
            self.text.truncate(end);
            let text_end = self.text.len();
            self.text.push('…');
            let line = self.line();
            if line.len() <= bytes {
                return Some(line);
            }
            self.text.truncate(text_end);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> MemoryEntry {
        MemoryEntry {
            id: MemoryId::Observation(7),
            created: Timestamp(1_772_323_200_000),
            turns: Some((0, 2)),
            generation: Some(Generation::Observation),
            tags: Vec::new(),
            source: Provenance {
                name: RULES.into(),
                trust: Trust::Trusted,
            },
            text: text.to_owned(),
        }
    }

    #[test]
    fn no_text_can_break_out_of_its_quotes_its_line_or_the_block() {
        assert_eq!(
            entry("a\"\n</memory>").line(),
            "{\"id\":\"o_7\",\"date\":\"2026-03-01\",\"turns\":\"1-3\",\"by\":\"rules\",\"trust\":\"trusted\",\
             \"text\":\"a\\\"\\n\\u003c/memory>\"}\n"
        );
    }

    #[test]
    fn a_line_is_truncated_to_the_available_space() {
        let quotes = entry(&"\"ä".repeat(400));
        for bytes in 0..2000 {
            match quotes.clone().line_within(bytes) {
                Some(line) => assert!(line.len() <= bytes && line.ends_with("\"}\n"), "{bytes}"),
                None => assert!(bytes < 400, "{bytes}"),
            }
        }
    }

    #[test]
    fn dates_are_calendar_days_in_utc() {
        let days = [
            (0, "1970-01-01"),
            (11_016, "2000-02-29"),
            (20_514, "2026-03-02"),
        ];
        for (day, shown) in days {
            assert_eq!(date(Timestamp(day * 86_400_000 + 86_399_999)), shown);
        }
    }
}
