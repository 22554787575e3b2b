//! Answers to greetings, thanks and questions about lango itself, which need no agent.

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

/// Returns the answer if the text is small talk.
pub(super) fn answer(text: &str, table: Option<&Table<'_>>) -> Option<String> {
    let request_words = words(text);
    if request_words.len() > 6 {
        return None;
    }
    if QUESTIONS
        .iter()
        .any(|phrase| has_phrase(&request_words, phrase))
    {
        return Some(introduction(table));
    }
    // Only at the start: "search for hello" is not a greeting.
    let says = |phrases: &[&str]| {
        let prefix = |phrase: &str| &request_words[..request_words.len().min(words(phrase).len())];
        phrases
            .iter()
            .any(|phrase| has_phrase(prefix(phrase), phrase))
    };
    if says(GREETINGS) {
        return Some(format!("Hello! {}", introduction(table)));
    }
    says(THANKS).then(|| "You are welcome.".to_owned())
}

/// Says what this model is and, for an orchestrator, which agents it can delegate to.
pub(super) fn introduction(table: Option<&Table<'_>>) -> String {
    let mut text = "I am lango's built-in set of rules, not an AI model. I follow fixed patterns, so you can try lango \
                    without an API key or a network connection."
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
