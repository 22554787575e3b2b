//! Rules for what the user wants remembered, recalled and forgotten.

use super::Task;
use crate::offline::clause::{Clause, non_empty, strip_any, words};
use crate::offline::extract::unquoted;
use serde_json::json;

/// Words that say nothing about what to recall.
const STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "again",
    "am",
    "an",
    "and",
    "are",
    "can",
    "did",
    "do",
    "does",
    "for",
    "have",
    "i",
    "in",
    "is",
    "it",
    "me",
    "my",
    "of",
    "on",
    "our",
    "please",
    "remember",
    "said",
    "say",
    "so",
    "tell",
    "that",
    "the",
    "to",
    "told",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "who",
    "you",
    "your",
    "favourite",
    "favorite",
];

/// A query for a question without a topic. Words of a query match the beginnings of words, so it finds everything that
/// contains a word in these letters.
pub(in crate::offline) const ANYTHING: &str =
    "a b c d e f g h i j k l m n o p q r s t u v w x y z 0 1 2 3 4 5 6 7 8 9";

pub(super) fn save(clause: &Clause<'_>) -> Option<Task> {
    let text = clause.after(&[
        "remember that",
        "remember this",
        "remember",
        "don't forget that",
        "do not forget that",
        "don't forget",
        "do not forget",
        "never forget that",
        "keep in mind that",
        "keep in mind",
        "memorize that",
        "memorise that",
        "memorize",
        "memorise",
        "save to memory that",
        "save to memory",
        "for the record",
    ])?;
    let is_reference = [
        "it",
        "this",
        "that",
        "me",
        "him",
        "her",
        "them",
        "everything",
    ];
    if is_reference.contains(&text.to_ascii_lowercase().as_str()) {
        return None;
    }
    let quoted = unquoted(text);
    let text = quoted.unwrap_or(text.trim_start_matches(',').trim_start());
    let mut task = Task::call("memory_save", json!({ "text": text }))?;
    task.is_open = quoted.is_none();
    Some(task)
}

pub(super) fn forget(clause: &Clause<'_>) -> Option<Task> {
    let rest = clause.after(&[
        "forget that",
        "forget about",
        "forget what you know about",
        "forget",
    ])?;
    let rest = unquoted(rest).unwrap_or(rest);
    let query = topic(rest);
    let is_topic =
        !query.is_empty() && !["everything", "all", "this", "them", "us"].contains(&query.as_str());
    // Everything that contains all of the words is deleted, so a long sentence is no topic.
    let is_short = words(rest).count() <= 8;
    (is_topic && is_short)
        .then(|| Task::call("memory_forget", json!({ "query": query })))
        .flatten()
}

pub(super) fn recall(clause: &Clause<'_>) -> Option<Task> {
    const ANY: &[&str] = &[
        "recall",
        "recall all",
        "recall all memories",
        "recall everything",
        "recall everything you know",
        "recall everything you remember",
        "list everything you remember",
        "list what you remember",
        "show everything you remember",
        "show me everything you remember",
        "tell me everything you remember",
        "what have you saved",
        "what have i told you",
        "what do you remember",
        "what do you know",
        "what do you know about me",
        "what do you remember about me",
        "tell me what you remember",
        "tell me what you know about me",
        "show me what you remember",
        "show what you remember",
        "list my memories",
        "list your memories",
        "list memories",
        "list all memories",
        "show my memories",
        "show me my memories",
        "show memories",
        "what have you remembered",
        "what did you remember",
        "what did i tell you",
        "what did i ask you to remember",
        "what did i tell you to remember",
    ];
    if clause.is(ANY) {
        return Task::call("memory_recall", json!({ "query": ANYTHING, "limit": 50 }));
    }
    if clause.is(&[
        "who am i",
        "do you know who i am",
        "do you know my name",
        "what am i called",
    ]) {
        return Task::call("memory_recall", json!({ "query": "name" }));
    }
    let rest = clause.after(&[
        "what do you remember about",
        "what do you remember of",
        "what did i tell you about",
        "what did i say about",
        "what do you know about my",
        "tell me what you remember about",
        "do you remember",
        "can you remember",
        "you remember",
        "recall what i said about",
        "recall that",
        "recall",
        "do you know my",
        "what is the name of my",
        "what's the name of my",
        "what is my",
        "what's my",
        "what are my",
        "what was my",
        "who is my",
        "where is my",
        "when is my",
        "which is my",
    ])?;
    let rest = non_empty(rest)?;
    let rest = unquoted(rest).unwrap_or(rest);
    let query = topic(rest);
    let query = if query.is_empty() {
        rest.to_owned()
    } else {
        query
    };
    Task::call("memory_recall", json!({ "query": query }))
}

/// A short question about anything, such as `when is the release?`. It takes only what no other rule does.
pub(super) fn question(clause: &Clause<'_>) -> Option<Task> {
    const MAX_WORDS: usize = 8;
    let rest = clause.after(&[
        "when is",
        "when's",
        "when was",
        "when are",
        "when do",
        "when does",
        "when will",
        "where is",
        "where's",
        "where was",
        "where are",
        "where do",
        "where does",
        "who is",
        "who's",
        "who was",
        "who are",
    ])?;
    let query = topic(rest);
    let is_short = clause.words().count() <= MAX_WORDS && !clause.text.contains('\n');
    (is_short && !query.is_empty())
        .then(|| Task::call("memory_recall", json!({ "query": query })))
        .flatten()
}

/// Returns the words of a text that say what it is about.
fn topic(text: &str) -> String {
    let is_topic = |word: &&str| !STOP_WORDS.contains(&word.to_ascii_lowercase().as_str());
    words(text).filter(is_topic).collect::<Vec<_>>().join(" ")
}

pub(super) fn list_observations(clause: &Clause<'_>) -> Option<Task> {
    is_list_of(clause, "observations")
        .then(|| Task::call("memory_list_observations", json!({})))
        .flatten()
}

pub(super) fn list_reflections(clause: &Clause<'_>) -> Option<Task> {
    is_list_of(clause, "reflections")
        .then(|| Task::call("memory_list_reflections", json!({})))
        .flatten()
}

fn is_list_of(clause: &Clause<'_>, what: &str) -> bool {
    let rest = strip_any(
        clause.text,
        &["list", "show me", "show", "what are", "which"],
    );
    let rest = rest.unwrap_or(clause.text);
    let rest = strip_any(rest, &["all", "your", "my", "the"]).unwrap_or(rest);
    let rest = strip_any(rest, &["your", "my"]).unwrap_or(rest);
    strip_any(rest, &[what]).is_some_and(|rest| words(rest).count() <= 3)
}
