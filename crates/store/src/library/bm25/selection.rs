//! Which terms of a question a search reads the postings of.

use crate::library::QueryWord;
use std::collections::HashMap;

/// The number of places in the index that one search reads, at most, unless a single term has more.
const MAX_PLACES: u64 = 60_000;

/// A term of the index that a word of a question stands for, as a store counts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Term {
    pub text: String,
    /// The number of chunks of all collections that have it, and of its places in them.
    pub chunks: u64,
    pub places: u64,
    /// The position of the word among those of the question.
    pub word: usize,
}

/// The terms of a question whose postings are worth reading, and what became of the others.
#[derive(Debug)]
pub(crate) struct TermSelection {
    /// The order is that of the postings which [`Scorer::new`] takes.
    pub terms: Vec<SelectedTerm>,
    pub(super) left_out: usize,
    pub(super) is_known: Vec<bool>,
}

#[derive(Debug)]
pub(crate) struct SelectedTerm {
    pub text: String,
    places: u64,
    /// Query term frequency: how often the question has a word of this term.
    pub(super) times: f64,
    pub(super) words: Vec<usize>,
}

impl TermSelection {
    /// Joins the words that have the same term, as `flow` and `flows` do, and selects the terms with the fewest places
    /// for each time that the question has them, as far as [`MAX_PLACES`] goes.
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

/// Joins terms of the same text, without those that the index does not have.
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
    fn words_of_one_term_are_joined_and_absent_ones_are_unknown() {
        let words = ["flow", "flows", "absent"].map(|word| QueryWord::new(word, 2));
        let terms = vec![term("flow", 9, 0), term("flow", 9, 1), term("absent", 0, 2)];
        let selection = TermSelection::new(terms, &words);
        assert_eq!(texts(&selection), ["flow"]);
        assert_eq!(selection.terms[0].times, 4.0);
        assert_eq!(selection.terms[0].words, [0, 1]);
        assert_eq!(selection.is_known, [false, false, false]);
    }

    #[test]
    fn a_common_term_that_the_question_repeats_is_read_before_a_less_common_one() {
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
        // The index has it, but its postings are not read.
        assert_eq!(selection.is_known, [false, true, false]);
    }

    #[test]
    fn a_single_term_is_read_however_common_it_is() {
        let words = [QueryWord::new("common", 1)];
        let terms = vec![term("common", MAX_PLACES * 2, 0)];
        assert_eq!(texts(&TermSelection::new(terms, &words)), ["common"]);
    }
}
