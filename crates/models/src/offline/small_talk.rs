//! Greetings, thanks, and questions about lango itself: what is answered without any agent.

use super::routing::Table;
use super::words::{has_phrase, words};

const GREETINGS: &[&str] = &[
    "hello",
    "hi",
    "hey",
    "good morning",
    "good evening",
    "good day",
    "greetings",
];
const THANKS: &[&str] = &[
    "thanks",
    "thank you",
    "great",
    "ok",
    "okay",
    "nice",
    "bye",
    "goodbye",
];
const QUESTIONS: &[&str] = &[
    "who are you",
    "what are you",
    "what can you do",
    "help",
    "how are you",
    "are you an ai",
];

/// The answer, if the text is small talk.
pub(super) fn answer(text: &str, table: Option<&Table<'_>>) -> Option<String> {
    let heard = words(text);
    if heard.len() > 6 {
        return None;
    }
    if QUESTIONS.iter().any(|phrase| has_phrase(&heard, phrase)) {
        return Some(introduction(table));
    }
    // Further inside, as in "search for hello", such a word is no greeting.
    let says = |phrases: &[&str]| {
        let beginning = |phrase: &str| &heard[..heard.len().min(words(phrase).len())];
        phrases
            .iter()
            .any(|phrase| has_phrase(beginning(phrase), phrase))
    };
    if says(GREETINGS) {
        return Some(format!("Hello! {}", introduction(table)));
    }
    says(THANKS).then(|| "You are welcome.".to_owned())
}

/// What this is, and what it can be asked for.
pub(super) fn introduction(table: Option<&Table<'_>>) -> String {
    let mut text = "I am lango's built-in set of rules, not an AI model: I follow fixed patterns, so that you can try \
                    everything without a key or a network."
        .to_owned();
    if let Some(table) = table {
        text.push_str(" My team:\n");
        for entry in &table.entries {
            text.push_str(&format!("\n- {}: {}", entry.name, entry.role));
        }
        text.push_str("\n\nTry: what files are here?");
    }
    text
}
