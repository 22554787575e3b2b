//! Selects the terms of a query whose postings a search reads.

use crate::library::QueryWord;
use std::collections::HashMap;

/// Maximum number of index entries that one search reads, unless a single term has more.
const MAX_PLACES: u64 = 60_000;

/// A term of the index that a word of the query maps to, with its frequency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Term {
    pub text: String,
    /// Number of chunks in all collections that contain the term.
    pub chunks: u64,
    /// Number of occurrences in these chunks.
    pub places: u64,
    /// The index of the word in the query.
    pub word: usize,
}

/// The terms of a query whose postings are worth reading, and facts about the others.
#[derive(Debug)]
pub(crate) struct TermSelection {
    /// In the order of the postings that [`Scorer::new`](super::Scorer::new) takes.
    pub terms: Vec<SelectedTerm>,
    pub(super) left_out: usize,
    pub(super) is_known: Vec<bool>,
}

#[derive(Debug)]
pub(crate) struct SelectedTerm {
    pub text: String,
    places: u64,
    /// Query term frequency: how often the query contains a word of this term.
    pub(super) times: f64,
    pub(super) words: Vec<usize>,
}

impl TermSelection {
    /// Joins words with the same term, such as `flow` and `flows`, and selects terms up to a total of [`MAX_PLACES`].
    /// Prefers terms with a low number of index entries divided by the term's frequency in the query.
    pub(crate) fn new(terms: Vec<Term>, words: &[QueryWord]) -> Self {
        let mut terms = join(terms, words);
        terms.sort_by(|a, b| {
            let cost = |term: &SelectedTerm| term.places as f64 / term.times;
            cost(a)
                .total_cmp(&cost(b))
                .then_with(|| a.text.cmp(&b.text))
        });
        let mut is_known = vec![false; words.len()];
        let (mut places, mut left_out) = (0, 0);
        terms.retain(|term| {
            let is_too_common = places > 0 && places + term.places > MAX_PLACES;
            if is_too_common {
                left_out += term.words.len();
                term.words.iter().for_each(|word| is_known[*word] = true);
            } else {
                places += term.places;
            }
            !is_too_common
        });
        Self {
            terms,
            left_out,
            is_known,
        }
    }
}

/// Joins terms with the same text, and drops those that the index does not contain.
fn join(terms: Vec<Term>, words: &[QueryWord]) -> Vec<SelectedTerm> {
    let mut by_text: HashMap<String, SelectedTerm> = HashMap::new();
    for term in terms.into_iter().filter(|term| term.places > 0) {
        let joined = by_text
            .entry(term.text.clone())
            .or_insert_with(|| SelectedTerm {
                text: term.text,
                places: term.places,
                times: 0.0,
                words: Vec::new(),
            });
        joined.times += f64::from(words[term.word].times.max(1));
        joined.words.push(term.word);
    }
    by_text.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(text: &str, places: u64, word: usize) -> Term {
        Term {
            text: text.to_owned(),
            chunks: places,
            places,
            word,
        }
    }

    fn texts(selection: &TermSelection) -> Vec<&str> {
        let terms = selection.terms.iter();
        terms.map(|term| term.text.as_str()).collect()
    }

    #[test]
    fn words_with_the_same_term_are_joined_and_missing_ones_are_unknown() {
        let words = ["flow", "flows", "absent"].map(|word| QueryWord::new(word, 2));
        let terms = vec![term("flow", 9, 0), term("flow", 9, 1), term("absent", 0, 2)];
        let selection = TermSelection::new(terms, &words);
        assert_eq!(texts(&selection), ["flow"]);
        assert_eq!(selection.terms[0].times, 4.0);
        assert_eq!(selection.terms[0].words, [0, 1]);
        assert_eq!(selection.is_known, [false, false, false]);
    }

    #[test]
    fn a_common_term_that_the_query_repeats_is_read_before_a_less_common_one() {
        let words = [("rare", 1), ("asked", 1), ("repeated", 4)];
        let words = words.map(|(word, times)| QueryWord::new(word, times));
        let terms = vec![
            term("rare", 10, 0),
            term("asked", 20_000, 1),
            term("repeated", MAX_PLACES - 10, 2),
        ];
        let selection = TermSelection::new(terms, &words);
        assert_eq!(texts(&selection), ["rare", "repeated"]);
        assert_eq!(selection.left_out, 1);
        // The index contains `asked`, but its postings are not read.
        assert_eq!(selection.is_known, [false, true, false]);
    }

    #[test]
    fn a_single_term_is_read_even_if_it_is_very_common() {
        let words = [QueryWord::new("common", 1)];
        let terms = vec![term("common", MAX_PLACES * 2, 0)];
        assert_eq!(texts(&TermSelection::new(terms, &words)), ["common"]);
    }
}
