//! Rules for notes, documents and facts.

use super::Task;
use crate::offline::clause::{Clause, non_empty, strip_any};
use crate::offline::extract::{split_last, unquoted};
use serde_json::json;

pub(super) fn save_note(clause: &Clause<'_>) -> Option<Task> {
    let content = clause.after(&[
        "save the note that",
        "save a note that",
        "save the note",
        "save a note",
        "save note",
        "save that",
        "take a note that",
        "take a note",
        "take note that",
        "take note",
        "make a note that",
        "make a note",
        "add a note that",
        "add a note",
        "write a note that",
        "write a note",
        "write down that",
        "note down that",
        "note down",
        "note that",
        "note",
    ])?;
    // "add a note to notes.md" is about a file.
    if strip_any(content, &["to", "in", "into"]).is_some() {
        return None;
    }
    let quoted = unquoted(content);
    let content = quoted.unwrap_or(content);
    let arguments = json!({ "key": key_of(content), "content": content });
    let mut task = Task::call("save_knowledge", arguments)?;
    task.is_open = quoted.is_none();
    Some(task)
}

/// Returns a short name for a note: the text before its colon, or its first five words.
fn key_of(content: &str) -> String {
    let first = content.split_once(':').map(|(key, _)| key.trim());
    let named = first.filter(|key| !key.is_empty() && key.len() <= 60);
    let words = || {
        content
            .split_whitespace()
            .take(5)
            .collect::<Vec<_>>()
            .join(" ")
    };
    named.map_or_else(words, str::to_owned)
}

/// Searches what the user means by notes: saved ones, and documents such as `notes.md`, because nobody should have to
/// know which of them it was.
pub(super) fn search_notes_and_documents(clause: &Clause<'_>) -> Option<Task> {
    Task::call("rag_retrieve", json!({ "query": notes_query(clause)? }))
}

/// Searches only the saved notes.
pub(super) fn search_notes(clause: &Clause<'_>) -> Option<Task> {
    Task::call("search_knowledge", json!({ "query": notes_query(clause)? }))
}

/// Returns what a request wants to find in the user's notes.
fn notes_query<'a>(clause: &Clause<'a>) -> Option<&'a str> {
    let direct = clause.after(&[
        "search my notes for",
        "search the notes for",
        "search notes for",
        "search in my notes for",
        "search my notes about",
        "search the notes about",
        "search notes about",
        "what do my notes say about",
        "what do the notes say about",
        "what is in my notes about",
        "show me my notes about",
        "show me my notes on",
        "show me the notes about",
        "show my notes about",
        "show my notes on",
        "list my notes about",
        "find my notes about",
        "find notes about",
        "my notes about",
        "notes about",
        "look in my notes for",
        "check my notes for",
        "find notes that mention",
        "which notes mention",
        "do my notes mention",
        "do my notes say anything about",
        "which of my notes mention",
    ]);
    let query = match direct {
        Some(query) => query,
        None => {
            let rest = clause.after(&["search for", "search", "find", "look for", "look up"])?;
            let is_notes = |place: &str| {
                let place = place.to_ascii_lowercase();
                ["my notes", "the notes", "notes"]
                    .contains(&place.as_str())
                    .then_some(())
            };
            split_last(rest, &[" in ", " from "], is_notes)?.0
        }
    };
    Some(unquoted(query).unwrap_or(query))
}

pub(super) fn retrieve(clause: &Clause<'_>) -> Option<Task> {
    let query = clause.after(&[
        "what do you know about",
        "do you know anything about",
        "tell me what you know about",
        "look up",
        "search the documents for",
        "search my documents for",
        "search documents for",
        "search the library for",
        "search my library for",
        "search the knowledge base for",
        "what do the documents say about",
        "what do my documents say about",
        "find everything about",
        "find documents that mention",
        "which documents mention",
        "find documents about",
        "find documents for",
        "documents about",
    ])?;
    let query = unquoted(query).unwrap_or(query);
    let is_me = ["me", "yourself", "you"].contains(&query.to_ascii_lowercase().as_str());
    (!is_me)
        .then(|| Task::call("rag_retrieve", json!({ "query": query })))
        .flatten()
}

pub(super) fn relate(clause: &Clause<'_>) -> Option<Task> {
    let text = clause.after(&[
        "relate that",
        "relate",
        "add the fact that",
        "add the fact",
        "save the fact",
    ])?;
    let mut parts = Vec::new();
    for (at, piece) in text.split('"').enumerate() {
        match at % 2 {
            0 => parts.extend(piece.split_whitespace()),
            _ => parts.push(piece),
        }
    }
    let [subject, predicate, object] = parts.try_into().ok()?;
    let arguments = json!({ "subject": subject, "predicate": predicate, "object": object });
    Task::call("graph_relate", arguments)
}

pub(super) fn related(clause: &Clause<'_>) -> Option<Task> {
    let start = clause.after(&[
        "what is related to",
        "what's related to",
        "who is related to",
        "what is connected to",
        "who is connected to",
        "show what is related to",
        "show the graph of",
        "show me the graph of",
        "graph of",
    ])?;
    let start = unquoted(start).unwrap_or(start);
    Task::call("graph_traverse", json!({ "start": start }))
}

pub(super) fn facts(clause: &Clause<'_>) -> Option<Task> {
    let subject = clause.after(&[
        "what facts do you know about",
        "what are the facts about",
        "show me the facts about",
        "show the facts about",
        "list the facts about",
        "list facts about",
        "the facts about",
        "facts about",
        "fact about",
    ])?;
    let subject = non_empty(unquoted(subject).unwrap_or(subject))?;
    Task::call("graph_query", json!({ "subject": subject }))
}
