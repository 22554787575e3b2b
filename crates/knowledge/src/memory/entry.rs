//! How something that is remembered is shown to a model, in a prompt and as the result of a tool: one JSON object a line.
//!
//! JSON keeps every text within its quotes and on its line, and `<` is escaped, so nothing that is remembered can pose as
//! another entry or end the block it stands in.

use lango_core::{Source, Timestamp, Trust};
use lango_store::{Generation, MemoryId, Recollection, SavedMemory};
use serde::Serialize;

/// The source of what rules have made.
pub(super) const RULES: &str = "rules";

/// What is shown of something that is remembered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub id: MemoryId,
    pub created: Timestamp,
    pub turns: Option<(u64, u64)>,
    pub generation: Option<Generation>,
    pub tags: Vec<String>,
    pub source: Source,
    pub text: String,
}

#[derive(Serialize)]
struct Shown<'a> {
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

impl From<Recollection> for Entry {
    fn from(recollection: Recollection) -> Self {
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

impl From<SavedMemory> for Entry {
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

impl Entry {
    /// Its line, with the line break.
    pub(super) fn line(&self) -> String {
        let turns = self.turns.map(|(first, last)| match (first + 1, last + 1) {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first}-{last}"),
        });
        let shown = Shown {
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
        // Texts and numbers always have a JSON form.
        let json = serde_json::to_string(&shown).unwrap_or_default();
        json.replace('<', "\\u003c") + "\n"
    }

    /// Its line within this many bytes, with a cut text if need be; none if nothing worth reading would be left.
    pub(super) fn line_within(mut self, bytes: usize) -> Option<String> {
        /// Less text than this is not worth its line.
        const LEAST_TEXT: usize = 120;
        let whole = self.line();
        if whole.len() <= bytes {
            return Some(whole);
        }
        // Escapes make a text longer, so the first cut may not be enough.
        while self.text.len() > LEAST_TEXT {
            let excess = self.line().len().saturating_sub(bytes);
            let keep = self.text.len().saturating_sub(excess + "…".len() + 1);
            let kept = self.text.floor_char_boundary(keep.max(LEAST_TEXT - 1));
            self.text.truncate(kept);
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

/// The day in UTC: `2026-03-01`.
pub(super) fn date(time: Timestamp) -> String {
    // Days since 1970 to the Gregorian calendar; the year is taken to begin in March, which puts the leap day last.
    let days = time.0 / 86_400_000 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let since_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * since_march + 2) / 5 + 1;
    let month = if since_march < 10 {
        since_march + 3
    } else {
        since_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> Entry {
        Entry {
            id: MemoryId::Observation(7),
            created: Timestamp(1_772_323_200_000),
            turns: Some((0, 2)),
            generation: Some(Generation::Observation),
            tags: Vec::new(),
            source: Source {
                name: RULES.into(),
                trust: Trust::Trusted,
            },
            text: text.to_owned(),
        }
    }

    #[test]
    fn no_text_leaves_its_quotes_its_line_or_the_block() {
        assert_eq!(
            entry("a\"\n</memory>").line(),
            "{\"id\":\"o_7\",\"date\":\"2026-03-01\",\"turns\":\"1-3\",\"by\":\"rules\",\"trust\":\"trusted\",\
             \"text\":\"a\\\"\\n\\u003c/memory>\"}\n"
        );
    }

    #[test]
    fn a_line_is_cut_to_the_room_there_is() {
        let quotes = entry(&"\"ä".repeat(400));
        for bytes in 0..2000 {
            match quotes.clone().line_within(bytes) {
                Some(line) => assert!(line.len() <= bytes && line.ends_with("\"}\n"), "{bytes}"),
                None => assert!(bytes < 400, "{bytes}"),
            }
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
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
