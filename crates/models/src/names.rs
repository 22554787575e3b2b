//! Function names that every provider accepts. Some tools have names that providers forbid, and a model may have called
//! a function that never existed. Such names are replaced in requests and translated back in replies.

use lango_core::{Message, ModelRequest};
use std::collections::BTreeMap;

/// Maps function names to the names in requests. Both maps are empty if no name has to change.
#[derive(Default)]
pub(crate) struct Names {
    /// From the sent name to the original.
    original: BTreeMap<String, String>,
    /// From the original name to the sent one.
    sent: BTreeMap<String, String>,
}

impl Names {
    /// Longer names are truncated to this length; a number may be appended.
    const CHARACTERS: usize = 60;

    /// Creates the mapping for the functions that a request offers and for those called in its history.
    pub(crate) fn of(request: &ModelRequest) -> Self {
        let offered = request.functions.iter().map(|function| &*function.name);
        let past = request.messages.iter().flat_map(names_in);
        let all: Vec<&str> = offered.chain(past).collect();
        let mut names = Self::default();
        if all.iter().all(|name| is_plain(name)) {
            return names;
        }
        // Valid names come first, so that no replacement takes one of them.
        for name in all.iter().filter(|name| is_plain(name)) {
            names.insert(name, (*name).to_owned());
        }
        for name in all {
            names.add(name);
        }
        names
    }

    /// Returns the name to send for a function.
    pub(crate) fn sent<'a>(&'a self, name: &'a str) -> &'a str {
        self.sent.get(name).map_or(name, String::as_str)
    }

    /// Returns the original name of a function that was sent under this name.
    pub(crate) fn original<'a>(&'a self, sent: &'a str) -> &'a str {
        self.original.get(sent).map_or(sent, String::as_str)
    }

    fn add(&mut self, name: &str) {
        if self.sent.contains_key(name) {
            return;
        }
        let plain = plain(name);
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        let mut candidates = std::iter::once(plain.clone()).chain(numbered);
        if let Some(free) = candidates.find(|candidate| !self.original.contains_key(candidate)) {
            self.insert(name, free);
        }
    }

    fn insert(&mut self, name: &str, sent: String) {
        self.sent.insert(name.to_owned(), sent.clone());
        self.original.insert(sent, name.to_owned());
    }
}

fn names_in(message: &Message) -> Vec<&str> {
    match message {
        Message::Assistant { calls, .. } => calls.iter().map(|call| &*call.name).collect(),
        Message::Result { name, .. } => vec![name],
        Message::User { .. } | Message::Notice { .. } => Vec::new(),
    }
}

/// Returns whether every provider accepts this name unchanged.
fn is_plain(name: &str) -> bool {
    has_valid_start(name) && name.len() <= Names::CHARACTERS && name.chars().all(is_allowed)
}

fn has_valid_start(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Converts a name to what every provider accepts: letters, digits, `_` and `-`, starting with a letter or `_`.
fn plain(name: &str) -> String {
    let characters = name.chars().map(|c| if is_allowed(c) { c } else { '_' });
    let prefix = (!has_valid_start(name)).then_some('_');
    prefix
        .into_iter()
        .chain(characters)
        .take(Names::CHARACTERS)
        .collect()
}
