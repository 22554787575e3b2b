//! What a word is, and which words say nothing about what a text is about.

/// How many words of a question are looked for.
pub(crate) const MOST_QUERY_WORDS: usize = 64;

/// How much of a question is read, in bytes.
pub(crate) const MOST_QUERY_BYTES: usize = 16 * 1024;

/// The words of a text: what stands between marks and spaces.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
}

/// The words that a question is about, in small letters, each once: without those that every text has, unless there are
/// no others.
pub(crate) fn query_words(text: &str) -> Vec<String> {
    let text = start_of(text, MOST_QUERY_BYTES);
    let mut all = Vec::new();
    for word in words(text) {
        // A word that no index has is not looked for either.
        let word = start_of(word, 100).to_lowercase();
        if !all.contains(&word) {
            all.push(word);
        }
        if all.len() == MOST_QUERY_WORDS * 4 {
            break;
        }
    }
    let mut telling: Vec<String> = all
        .iter()
        .filter(|word| !is_common(word))
        .cloned()
        .collect();
    if telling.is_empty() {
        telling = all;
    }
    telling.truncate(MOST_QUERY_WORDS);
    telling
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

    #[test]
    fn a_question_keeps_what_it_is_about() {
        assert_eq!(
            query_words("What is the Flow of a flow? It's \"NOT\" AND NEAR(x)\0"),
            ["flow", "near", "x"]
        );
        assert_eq!(query_words("to be or not to be"), ["to", "be", "or", "not"]);
        assert!(query_words("?!\0 --").is_empty());
        assert_eq!(query_words(&"lift drag ".repeat(20_000)), ["lift", "drag"]);
    }
}
