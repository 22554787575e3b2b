//! Whose word is kept for a fact, and how facts of several entities are shared out.

use std::collections::HashSet;

/// How many names are looked up at once; further ones are left out.
pub(crate) const MOST_NAMES: usize = 256;

/// Somebody's word for a fact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Word {
    /// Who says so.
    pub source: i64,
    /// Whether they may be believed.
    pub is_trusted: bool,
    /// How sure they are.
    pub confidence: f64,
}

impl Word {
    /// Whether it is kept instead of the one that is: a trusted source's before any other, then the surer one, then the
    /// newer one.
    pub(crate) fn replaces(self, kept: Self) -> bool {
        let is_better = (self.is_trusted, self.confidence) >= (kept.is_trusted, kept.confidence);
        is_better && (self.source, self.confidence) != (kept.source, kept.confidence)
    }
}

/// The first of each, the second of each and so on, none twice.
pub(crate) fn in_turn(lists: &[Vec<i64>], most: usize) -> Vec<i64> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let ranks = (0..longest).flat_map(|rank| lists.iter().filter_map(move |list| list.get(rank)));
    let mut taken = HashSet::new();
    let unique = ranks.filter(|id| taken.insert(**id));
    unique.take(most).copied().collect()
}
