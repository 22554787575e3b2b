//! Rules for the web, secrets, hashes and skills.

use super::Task;
use super::commands::hashed;
use crate::offline::clause::Clause;
use crate::offline::extract::{
    address, certain_path, leading_path, leading_quote, unquoted, without_label,
};
use serde_json::json;

pub(super) fn search_web(clause: &Clause<'_>) -> Option<Task> {
    let query = clause.after(&[
        "search the web for",
        "search the internet for",
        "search online for",
        "search the web",
        "web search for",
        "web search",
        "look online for",
        "google for",
        "google",
    ])?;
    let query = unquoted(query).unwrap_or(query);
    Task::call("search_web", json!({ "query": query }))
}

/// Opens a page in the browser: a URL, or an HTML file. `read page.html` is only about its text.
pub(super) fn open_page(clause: &Clause<'_>) -> Option<Task> {
    let rest = clause.after(&["open", "go to", "visit", "browse to", "navigate to"])?;
    if let Some(url) = address(rest) {
        return Task::call("browser_navigate", json!({ "url": url }));
    }
    let (path, _) = leading_path(rest)?;
    let is_page = path.path.ends_with(".html") || path.path.ends_with(".htm");
    is_page
        .then(|| Task::call("browser_navigate", json!({ "path": path.path })))
        .flatten()
}

pub(super) fn fetch(clause: &Clause<'_>) -> Option<Task> {
    let verbs = [
        "read",
        "open",
        "fetch",
        "get",
        "show me",
        "show",
        "go to",
        "visit",
        "download",
        "load",
        "what is on",
        "what's on",
        "what does",
        "look at",
    ];
    let rest = clause.after(&verbs).or_else(|| {
        let is_alone = !clause.text.contains(char::is_whitespace) && clause.text.contains("://");
        is_alone.then_some(clause.text)
    })?;
    Task::call("search_fetch", json!({ "url": address(rest)? }))
}

pub(super) fn list_secrets(clause: &Clause<'_>) -> Option<Task> {
    let asks = clause.starts(&["list", "show", "what", "which"]);
    let is_short = clause.words().count() <= 6;
    (asks && is_short && clause.has_word("secrets"))
        .then(|| Task::call("secrets_list", json!({})))
        .flatten()
}

pub(super) fn hash_text(clause: &Clause<'_>) -> Option<Task> {
    let rest = hashed(clause)?;
    let labelled = without_label(rest);
    let is_labelled = labelled.len() < rest.len();
    let text = match leading_quote(labelled) {
        Some(_) => unquoted(labelled)?,
        // A file is hashed by a command.
        None => Some(labelled).filter(|text| is_labelled || certain_path(text).is_none())?,
    };
    let arguments = json!({ "text": text, "algorithm": "sha256" });
    Task::call("crypto_hash", arguments)
}

pub(super) fn list_skills(clause: &Clause<'_>) -> Option<Task> {
    let asks = clause.starts(&["list", "show", "what", "which"]);
    let is_short = clause.words().count() <= 6;
    (asks && is_short && clause.has_word("skills"))
        .then(|| Task::call("list_skills", json!({})))
        .flatten()
}
