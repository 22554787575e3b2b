//! The registry of keys. To add one, add a row here and its field in [`Settings`], and decide what a project's file may do
//! with it before it is trusted ([`Untrusted`]).
//!
//! The kind of a key is the type of its field, the default is what [`Settings::with_defaults`] puts there, so neither
//! can disagree with the code that uses it.

mod browser;
mod payment;
mod search;
mod server;
mod table;
mod vault;

use super::setting::Setting;
use super::settings::Settings;
pub use table::KEYS;

/// One key of the configuration.
pub struct Key {
    /// The dotted name in its exact spelling; `<id>` stands for a name that the person chooses.
    pub name: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    /// Where its value lives; the text is what stands for `<id>`.
    pub(super) field: for<'a> fn(&'a mut Settings, &str) -> &'a mut dyn Setting,
    /// What a project's file may do with it before the user trusts the file.
    pub(super) untrusted: Untrusted,
}

/// What a project's file that the user does not trust may do with a key. A file that was cloned must not choose where
/// the content of the workspace is sent, what agents reach, or how much a turn may spend.
#[derive(Clone, Copy)]
pub(super) enum Untrusted {
    /// Nothing: the value is ignored, with a warning.
    Ignored,
    /// It may permit less than the weaker layers do. The function measures how much the settings permit; a value that
    /// permits more is ignored, with a warning.
    OnlyLower(fn(&Settings) -> u64),
    /// The type of the key drops what would permit something.
    Filtered,
}

/// How alike two names must be, from 0 to 1, for one to be offered in place of the other.
const NEAR: f64 = 0.7;

/// A little less than an equal name: a right last part in the wrong section.
const SAME_LAST_PART: f64 = 0.95;

impl Key {
    /// The environment variable that sets it: `agent.maxToolCalls` is `LANGO_AGENT_MAX_TOOL_CALLS`.
    pub fn variable(&self) -> String {
        let mut variable = String::from("LANGO_");
        for letter in self.name.chars() {
            match letter {
                '.' => variable.push('_'),
                '<' | '>' => {}
                _ => {
                    if letter.is_ascii_uppercase() {
                        variable.push('_');
                    }
                    variable.push(letter.to_ascii_uppercase());
                }
            }
        }
        variable
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Key").field(&self.name).finish()
    }
}

/// A key, and what stands for its `<id>`.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub key: &'static Key,
    pub id: String,
}

impl Found {
    /// The whole name.
    pub fn name(&self) -> String {
        self.key.name.replace(ID, &self.id)
    }
}

/// What stands in a name for a part that the person chooses.
pub(super) const ID: &str = "<id>";

/// The key of exactly this name.
pub(super) fn by_name(name: &str) -> Option<Found> {
    KEYS.iter().find_map(|key| {
        let id = match key.name.split_once(ID) {
            None => (key.name == name).then_some("")?,
            Some((before, after)) => name.strip_prefix(before)?.strip_suffix(after)?,
        };
        let is_plain = !id.contains('.') && (key.name.contains(ID) != id.is_empty());
        is_plain.then(|| Found {
            key,
            id: id.to_owned(),
        })
    })
}

/// The key a `LANGO_*` variable means; `words` is what follows `LANGO_`, underscores and case do not matter. Where it could
/// be several, as `clientSecretEnv` could be the `env` of something, the one whose own words are the most is meant.
pub(super) fn by_variable(words: &str) -> Option<Found> {
    let words = folded(words);
    let found = KEYS.iter().filter_map(|key| {
        let id = match key.name.split_once(ID) {
            None => (folded(key.name) == words).then_some("")?,
            Some((before, after)) => words
                .strip_prefix(&folded(before))?
                .strip_suffix(&folded(after))?,
        };
        (key.name.contains(ID) != id.is_empty()).then(|| Found {
            key,
            id: id.to_owned(),
        })
    });
    found.min_by_key(|found| found.id.len())
}

/// Whether some key lies below `name`, as `agent.model` lies below `agent`.
pub(super) fn is_section(name: &str) -> bool {
    let parts: Vec<&str> = name.split('.').collect();
    KEYS.iter().any(|key| {
        let of_key: Vec<&str> = key.name.split('.').collect();
        of_key.len() > parts.len()
            && of_key
                .iter()
                .zip(&parts)
                .all(|(own, part)| own == part || *own == ID)
    })
}

/// The key that somebody who wrote `name` most likely meant, if one is near enough.
pub(super) fn nearest(name: &str) -> Option<&'static Key> {
    let likeness = |key: &Key| {
        let whole = strsim::normalized_damerau_levenshtein(&folded(name), &folded(key.name));
        let last = strsim::normalized_damerau_levenshtein(&last_part(name), &last_part(key.name));
        whole.max(last * SAME_LAST_PART)
    };
    // Of two that are equally near the first one.
    KEYS.iter()
        .rev()
        .map(|key| (likeness(key), key))
        .filter(|(likeness, _)| *likeness >= NEAR)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, key)| key)
}

fn folded(name: &str) -> String {
    name.chars()
        .filter(|letter| letter.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

fn last_part(name: &str) -> String {
    folded(name.rsplit('.').next().unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_spells_the_key_in_capitals_with_underscores_between_words() {
        let variable = |name| by_name(name).unwrap().key.variable();
        assert_eq!(variable("agent.maxToolCalls"), "LANGO_AGENT_MAX_TOOL_CALLS");
        assert_eq!(variable("session.store"), "LANGO_SESSION_STORE");
    }

    #[test]
    fn no_two_keys_share_a_name_or_a_variable_however_it_is_spelled() {
        for (index, key) in KEYS.iter().enumerate() {
            assert!(
                KEYS[..index]
                    .iter()
                    .all(|other| folded(other.name) != folded(key.name)),
                "{}",
                key.name
            );
            let found = by_variable(&key.variable()["LANGO_".len()..]).unwrap();
            assert!(std::ptr::eq(found.key, key));
            assert!(!is_section(key.name), "{} is a key and a section", key.name);
        }
    }

    #[test]
    fn an_untrusted_project_may_only_narrow_and_only_with_these_keys() {
        let narrowing = KEYS.iter().filter(|key| match key.untrusted {
            Untrusted::Ignored => false,
            Untrusted::OnlyLower(_) | Untrusted::Filtered => true,
        });
        let names: Vec<&str> = narrowing.map(|key| key.name).collect();
        // A key belongs here only if no value of it lets a cloned project read, send or spend more.
        assert_eq!(
            names,
            [
                "agent.maxOutputTokens",
                "agent.maxDelegationRounds",
                "agent.maxModelCalls",
                "agent.maxToolCalls",
                "agent.maxTokens",
                "agent.maxCost",
                "agent.turnTimeout",
                "agent.idleTimeout",
                "agent.toolTimeout",
                "agent.strictTools",
                "approval.rules",
                "egress.maxRequests",
                "egress.maxBytes",
                "browser.enabled",
                "mcp.startTimeout",
                "graph.enabled",
                "graph.maxDepth",
                "graph.maxResults",
                "observationalMemory.enabled",
                "observationalMemory.contextTokens",
                "session.whenBusy",
                "session.queueLimit",
                "a2a.enabled",
            ]
        );
    }

    #[test]
    fn the_nearest_key_forgives_typing_spelling_and_section() {
        let nearest = |name| nearest(name).map(|key| key.name);
        assert_eq!(nearest("agent.modle"), Some("agent.model"));
        assert_eq!(nearest("agents.model"), Some("agent.model"));
        assert_eq!(nearest("session.model"), Some("agent.model"));
        assert_eq!(nearest("model"), Some("agent.model"));
        assert_eq!(nearest("agent.max_tool_calls"), Some("agent.maxToolCalls"));
        assert_eq!(nearest("colour.of.the.sky"), None);
    }
}
