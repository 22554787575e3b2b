//! Search in memory by words. Any text is a valid query, and nothing in it is syntax.
//!
//! A word of the query matches as a prefix, so `plan` finds `plans`. A word that is not ASCII matches anywhere, because
//! some scripts do not separate words by spaces.

use super::Memory;
use super::entry::MemoryEntry;
use lango_core::StoreError;
use lango_store::{Generation, MemoryOrder, MemoryOwner};
use std::collections::BTreeSet;

/// Maximum number of rows of each kind that are searched, the newest first.
const MAX_SEARCHED: usize = 5000;

/// The distinct words of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MemoryQuery(BTreeSet<String>);

impl MemoryQuery {
    /// Parses a query; `None` if it contains no word.
    pub(super) fn new(text: &str) -> Option<Self> {
        let words: BTreeSet<String> = words(&text.to_lowercase()).map(str::to_owned).collect();
        (!words.is_empty()).then_some(Self(words))
    }

    /// Returns how many of the words occur in a text.
    pub(super) fn overlap(&self, text: &str) -> usize {
        let text = text.to_lowercase();
        let occurs = |word: &&String| {
            if word.is_ascii() {
                words(&text).any(|other| other.starts_with(word.as_str()))
            } else {
                text.contains(word.as_str())
            }
        };
        self.0.iter().filter(occurs).count()
    }

    /// Returns whether all of the words occur in a text.
    pub(super) fn matches(&self, text: &str) -> bool {
        self.overlap(text) == self.0.len()
    }
}

impl Memory {
    /// Returns everything that a session may search: its own memories, and what its user saved.
    pub(super) async fn entries(
        &self,
        owner: &MemoryOwner,
    ) -> Result<Vec<MemoryEntry>, StoreError> {
        let mut entries = Vec::new();
        for generation in [
            Generation::Second,
            Generation::First,
            Generation::Observation,
        ] {
            let found = self
                .rows()
                .recollections(owner, generation, MemoryOrder::Newest, MAX_SEARCHED)
                .await?;
            entries.extend(found.into_iter().map(MemoryEntry::from));
        }
        let saved = self
            .rows()
            .saved_memories(&owner.user, MAX_SEARCHED)
            .await?;
        entries.extend(saved.into_iter().map(MemoryEntry::from));
        Ok(entries)
    }

    /// Returns the entries that match a query: those with the most matching words first, then the newest.
    pub(super) async fn recall(
        &self,
        owner: &MemoryOwner,
        query: &MemoryQuery,
    ) -> Result<Vec<MemoryEntry>, StoreError> {
        let mut found: Vec<(usize, MemoryEntry)> = self
            .entries(owner)
            .await?
            .into_iter()
            .map(|entry| (query.overlap(&searchable_text(&entry)), entry))
            .filter(|(overlap, _)| *overlap > 0)
            .collect();
        found.sort_by(|(left, one), (right, other)| {
            (right, other.created, other.id).cmp(&(left, one.created, one.id))
        });
        Ok(found.into_iter().map(|(_, entry)| entry).collect())
    }
}

/// Returns the text of an entry that a query is matched against.
pub(super) fn searchable_text(entry: &MemoryEntry) -> String {
    let mut text = entry.text.clone();
    for tag in &entry.tags {
        text.push(' ');
        text.push_str(tag);
    }
    text
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_match_as_prefixes() {
        let query = MemoryQuery::new("Plan for START?").unwrap();
        assert_eq!(query.overlap("the plans start for us"), 3);
        assert_eq!(query.overlap("restart"), 0);
        assert!(!query.matches("plan start"));
        assert!(MemoryQuery::new("이름").unwrap().matches("제이름은 민수"));
    }

    #[test]
    fn punctuation_alone_is_not_a_query() {
        assert_eq!(MemoryQuery::new(" ?*\"'%_-() "), None);
    }

    proptest! {
        #[test]
        fn any_text_is_a_query_that_matches_itself(text in "(?s).{0,200}") {
            if let Some(query) = MemoryQuery::new(&text) {
                prop_assert!(query.matches(&text));
            }
        }
    }
}
