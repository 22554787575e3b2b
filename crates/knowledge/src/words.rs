//! Splits texts into words, and knows the common words that say nothing about the topic.

use lango_store::QueryWord;
use std::collections::HashMap;

/// Maximum number of distinct words of a query.
const MAX_QUERY_WORDS: usize = 256;

/// How many bytes of a query are read.
pub(crate) const MAX_QUERY_BYTES: usize = 16 * 1024;

/// Splits a text into words at punctuation and spaces.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
}

/// Returns the words of a query in lower case, in the order of their first use, each with the number of its
/// occurrences. Leaves out common words, unless there are no others.
pub(crate) fn query_words(text: &str) -> Vec<QueryWord> {
    let mut times_of: HashMap<String, u32> = HashMap::new();
    let mut order = Vec::new();
    for word in words(start_of(text, MAX_QUERY_BYTES)) {
        // No index contains longer words.
        let word = start_of(word, 100).to_lowercase();
        match times_of.get_mut(&word) {
            Some(times) => *times += 1,
            None => {
                times_of.insert(word.clone(), 1);
                order.push(word);
            }
        }
    }
    if !order.iter().all(|word| is_common(word)) {
        order.retain(|word| !is_common(word));
    }
    order.truncate(MAX_QUERY_WORDS);
    let counted = |word: String| {
        let times = times_of[&word];
        QueryWord::new(word, times)
    };
    order.into_iter().map(counted).collect()
}

/// Counts the words of a text that are not common. Ranking uses this number as the length of a document.
pub(crate) fn content_word_count(text: &str) -> u64 {
    words(text)
        .filter(|word| !is_common_in_any_case(word))
        .count() as u64
}

/// Returns whether this lower-case word occurs in nearly every English text.
pub(crate) fn is_common(word: &str) -> bool {
    COMMON.binary_search(&word).is_ok()
}

/// Returns the start of a text without splitting a character.
pub(crate) fn start_of(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

fn is_common_in_any_case(word: &str) -> bool {
    // Common words are short, and lower-casing every word of a library would dominate the run time.
    word.len() <= MAX_COMMON && is_common(&word.to_ascii_lowercase())
}

const MAX_COMMON: usize = 7;

/// The common words, sorted. All are function words, which are never the topic of a query.
const COMMON: [&str; 124] = [
    "a", "about", "above", "after", "again", "against", "all", "also", "am", "an", "and", "any",
    "are", "as", "at", "be", "because", "been", "before", "being", "below", "between", "both",
    "but", "by", "can", "could", "did", "do", "does", "doing", "done", "down", "during", "each",
    "few", "for", "from", "further", "had", "has", "have", "having", "he", "her", "here", "him",
    "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "may", "me", "might", "more",
    "most", "must", "my", "no", "nor", "not", "of", "off", "on", "once", "only", "or", "other",
    "our", "out", "over", "own", "s", "same", "shall", "she", "should", "so", "some", "such", "t",
    "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those",
    "through", "to", "too", "under", "until", "up", "us", "very", "was", "we", "were", "what",
    "when", "where", "which", "while", "who", "whom", "whose", "why", "will", "with", "would",
    "you", "your", "yours",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_words_are_sorted_and_short() {
        assert!(COMMON.is_sorted_by(|a, b| a < b));
        assert!(COMMON.iter().all(|word| word.len() <= MAX_COMMON));
    }

    fn counted(text: &str) -> Vec<(String, u32)> {
        let words = query_words(text).into_iter();
        words.map(|word| (word.text, word.times)).collect()
    }

    fn expected(words: &[(&str, u32)]) -> Vec<(String, u32)> {
        words
            .iter()
            .map(|(word, times)| ((*word).to_owned(), *times))
            .collect()
    }

    #[test]
    fn a_query_keeps_its_content_words_and_counts_them() {
        assert_eq!(
            counted("What is the Flow of a flow? It's \"NOT\" AND NEAR(x)\0"),
            expected(&[("flow", 2), ("near", 1), ("x", 1)])
        );
        assert_eq!(
            counted("to be or not to be"),
            expected(&[("to", 2), ("be", 2), ("or", 1), ("not", 1)])
        );
        assert!(query_words("?!\0 --").is_empty());
    }

    #[test]
    fn a_query_of_any_length_gives_a_bounded_number_of_words() {
        let repeated = counted(&"lift drag ".repeat(20_000));
        assert_eq!(repeated, expected(&[("lift", 1639), ("drag", 1638)]));
        let different: String = (0..5000).map(|number| format!("w{number} ")).collect();
        let words = counted(&format!("{different} w0"));
        assert_eq!(words.len(), MAX_QUERY_WORDS);
        assert_eq!(words[0].0, "w0");
    }
}
