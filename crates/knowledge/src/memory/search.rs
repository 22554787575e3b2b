//! Finding by words: any text can be asked for, and nothing in it is syntax.
//!
//! A word fits where a word begins with it, so `plan` finds `plans`; a word in a script that does not part its words by
//! spaces fits wherever it stands.

use super::Memory;
use super::entry::Entry;
use lango_core::StoreError;
use lango_store::{Generation, MemoryOwner, RecollectionOrder};
use std::collections::BTreeSet;

/// How many rows of each kind are looked through, the newest first.
const MOST_SEARCHED: usize = 5000;

/// The words of a query, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query(BTreeSet<String>);

impl Query {
    /// None if there is no word in it.
    pub(super) fn new(text: &str) -> Option<Self> {
        let words: BTreeSet<String> = words(&text.to_lowercase()).map(str::to_owned).collect();
        (!words.is_empty()).then_some(Self(words))
    }

    /// How many of the words are in a text.
    pub(super) fn overlap(&self, text: &str) -> usize {
        let text = text.to_lowercase();
        let is_there = |word: &&String| {
            if word.is_ascii() {
                words(&text).any(|other| other.starts_with(word.as_str()))
            } else {
                text.contains(word.as_str())
            }
        };
        self.0.iter().filter(is_there).count()
    }

    /// Whether all of the words are in a text.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.overlap(text) == self.0.len()
    }
}

impl Memory {
    /// All that may be found on behalf of a session: what is remembered of it, and what its user saved.
    pub(super) async fn entries(&self, owner: &MemoryOwner) -> Result<Vec<Entry>, StoreError> {
        let mut entries = Vec::new();
        for generation in [
            Generation::Second,
            Generation::First,
            Generation::Observation,
        ] {
            let found = self
                .rows()
                .recollections(owner, generation, RecollectionOrder::Newest, MOST_SEARCHED)
                .await?;
            entries.extend(found.into_iter().map(Entry::from));
        }
        let saved = self
            .rows()
            .saved_memories(&owner.user, MOST_SEARCHED)
            .await?;
        entries.extend(saved.into_iter().map(Entry::from));
        Ok(entries)
    }

    /// What fits a query: what has most of its words first, then the newest.
    pub(super) async fn recall(
        &self,
        owner: &MemoryOwner,
        query: &Query,
    ) -> Result<Vec<Entry>, StoreError> {
        let mut found: Vec<(usize, Entry)> = self
            .entries(owner)
            .await?
            .into_iter()
            .map(|entry| (query.overlap(&searched(&entry)), entry))
            .filter(|(overlap, _)| *overlap > 0)
            .collect();
        found.sort_by(|(left, one), (right, other)| {
            (right, other.created, other.id).cmp(&(left, one.created, one.id))
        });
        Ok(found.into_iter().map(|(_, entry)| entry).collect())
    }
}

/// What a query is held against.
pub(super) fn searched(entry: &Entry) -> String {
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
    fn words_fit_from_their_beginning() {
        let query = Query::new("Plan for START?").unwrap();
        assert_eq!(query.overlap("the plans start for us"), 3);
        assert_eq!(query.overlap("restart"), 0);
        assert!(!query.is_in("plan start"));
        assert!(Query::new("이름").unwrap().is_in("제이름은 민수"));
    }

    #[test]
    fn punctuation_is_no_query() {
        assert_eq!(Query::new(" ?*\"'%_-() "), None);
    }

    proptest! {
        #[test]
        fn any_text_can_be_asked_for_and_fits_itself(text in "(?s).{0,200}") {
            if let Some(query) = Query::new(&text) {
                prop_assert!(query.is_in(&text));
            }
        }
    }
}
