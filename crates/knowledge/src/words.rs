//! What a word is, and which words say nothing about what a text is about.

use lango_store::QueryWord;
use std::collections::HashMap;

/// The number of different words of a question that are searched for, at most.
const MAX_QUERY_WORDS: usize = 256;

/// How much of a question is read, in bytes.
pub(crate) const MOST_QUERY_BYTES: usize = 16 * 1024;

/// The words of a text: what stands between marks and spaces.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
}

/// Gives the words that a question is about, in small letters, in the order of their first use, each with the number of
/// times the question has it. Leaves out the words that every text has, unless there are no others.
pub(crate) fn query_words(text: &str) -> Vec<QueryWord> {
    let mut times_of: HashMap<String, u32> = HashMap::new();
    let mut order = Vec::new();
    for word in words(start_of(text, MOST_QUERY_BYTES)) {
        // No index has longer words.
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

/// How many words a text counts for where its length matters.
pub(crate) fn telling_words(text: &str) -> u64 {
    words(text)
        .filter(|word| !is_common_in_any_case(word))
        .count() as u64
}

/// Whether nearly every English text has this word, in small letters.
pub(crate) fn is_common(word: &str) -> bool {
    COMMON.binary_search(&word).is_ok()
}

/// The beginning of a text, cut between two characters.
pub(crate) fn start_of(text: &str, most_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(most_bytes)]
}

fn is_common_in_any_case(word: &str) -> bool {
    // None of them is longer, and lower-casing every word of a library would take longer than the rest.
    word.len() <= LONGEST_COMMON && is_common(&word.to_ascii_lowercase())
}

const LONGEST_COMMON: usize = 7;

/// Sorted. Words of grammar only: none that can be what a question is about.
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
        assert!(COMMON.iter().all(|word| word.len() <= LONGEST_COMMON));
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
    fn a_question_keeps_what_it_is_about_and_how_often_it_says_so() {
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
    fn a_question_of_any_length_gives_a_bounded_number_of_words() {
        let repeated = counted(&"lift drag ".repeat(20_000));
        assert_eq!(repeated, expected(&[("lift", 1639), ("drag", 1638)]));
        let different: String = (0..5000).map(|number| format!("w{number} ")).collect();
        let words = counted(&format!("{different} w0"));
        assert_eq!(words.len(), MAX_QUERY_WORDS);
        assert_eq!(words[0].0, "w0");
    }
}
