//! Function names that a provider takes. Tools may have names it forbids, and a model may have called what was never
//! there; such names are sent under others and called back by their own.

use lango_core::{Message, ModelRequest};
use std::collections::BTreeMap;

/// Maps function names to the names sent to the provider. Both maps are empty if no name has to change.
#[derive(Default)]
pub(crate) struct Names {
    /// From the name that is sent to the own one.
    own: BTreeMap<String, String>,
    /// From the own name to the one that is sent.
    sent: BTreeMap<String, String>,
}

impl Names {
    /// The longest part of a name that is kept; a number may follow it.
    const CHARACTERS: usize = 60;

    /// Names for the functions that a request offers and for those that were called before it.
    pub fn of(request: &ModelRequest) -> Self {
        let offered = request.functions.iter().map(|function| &*function.name);
        let past = request.messages.iter().flat_map(names_in);
        let all: Vec<&str> = offered.chain(past).collect();
        let mut names = Self::default();
        if all.iter().all(|name| is_plain(name)) {
            return names;
        }
        // A name that needs no change keeps it, whatever others become.
        for name in all.iter().filter(|name| is_plain(name)) {
            names.insert(name, (*name).to_owned());
        }
        for name in all {
            names.add(name);
        }
        names
    }

    /// The name under which a function is sent.
    pub fn sent<'a>(&'a self, name: &'a str) -> &'a str {
        self.sent.get(name).map_or(name, String::as_str)
    }

    /// The function's own name.
    pub fn own<'a>(&'a self, sent: &'a str) -> &'a str {
        self.own.get(sent).map_or(sent, String::as_str)
    }

    fn add(&mut self, name: &str) {
        if self.sent.contains_key(name) {
            return;
        }
        let plain = plain(name);
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        let mut candidates = std::iter::once(plain.clone()).chain(numbered);
        if let Some(free) = candidates.find(|candidate| !self.own.contains_key(candidate)) {
            self.insert(name, free);
        }
    }

    fn insert(&mut self, name: &str, sent: String) {
        self.sent.insert(name.to_owned(), sent.clone());
        self.own.insert(sent, name.to_owned());
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
    begins_well(name) && name.len() <= Names::CHARACTERS && name.chars().all(is_taken)
}

fn begins_well(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn is_taken(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Letters, digits, `_` and `-`, beginning with a letter or `_`: what every provider takes.
fn plain(name: &str) -> String {
    let characters = name.chars().map(|c| if is_taken(c) { c } else { '_' });
    let prefix = (!begins_well(name)).then_some('_');
    prefix
        .into_iter()
        .chain(characters)
        .take(Names::CHARACTERS)
        .collect()
}
