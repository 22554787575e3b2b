//! The registry of keys. To add one, add a row here and a field in [`Settings`], and decide what a project's file may
//! do with it while it is untrusted ([`UntrustedPolicy`]).
//!
//! The type of a key is the type of its field, and its default is the one in [`Settings::with_defaults`], so neither
//! can disagree with the code that uses it.

mod browser;
mod payment;
mod search;
mod server;
mod table;
mod ui;
mod vault;

use super::setting::Setting;
use super::settings::Settings;
pub use table::KEYS;

pub struct Key {
    /// The dotted name in its exact spelling; `<id>` stands for a name that the user chooses.
    pub name: &'static str,
    /// A one-line description.
    pub help: &'static str,
    /// The function that returns the key's field in the settings. Its text argument is the value of `<id>`.
    pub(super) field: for<'a> fn(&'a mut Settings, &str) -> &'a mut dyn Setting,
    /// What a project's file may do with the key while the user does not trust the file.
    pub(super) untrusted: UntrustedPolicy,
}

/// What an untrusted project file may do with a key. A cloned file must not choose where the content of the workspace
/// is sent, what agents can reach, or how much a turn may spend.
#[derive(Clone, Copy)]
pub(super) enum UntrustedPolicy {
    /// Nothing: lango ignores the value and warns.
    Ignored,
    /// Only lower what weaker layers permit. The function measures how much the settings permit; lango ignores a
    /// value that permits more and warns.
    OnlyLower(fn(&Settings) -> u64),
    /// Set it; the key's type drops the parts that would permit something.
    Filtered,
}

/// How similar two names must be, from 0 to 1, for one to be suggested in place of the other.
const MIN_SIMILARITY: f64 = 0.7;

/// The weight of a matching last part in the wrong section: slightly less than a match of the whole name.
const SAME_LAST_PART: f64 = 0.95;

impl Key {
    /// Returns whether lango ignores the key in a project's file that the user does not trust, whatever its value.
    pub fn is_ignored_while_untrusted(&self) -> bool {
        matches!(self.untrusted, UntrustedPolicy::Ignored)
    }

    /// Returns the environment variable that sets the key: `LANGO_AGENT_MAX_TOOL_CALLS` for `agent.maxToolCalls`.
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

/// A key together with the value of its `<id>`, which is empty for keys without one.
#[derive(Debug, Clone)]
pub(super) struct KeyMatch {
    pub key: &'static Key,
    pub id: String,
}

impl KeyMatch {
    /// Returns the full name, with the id filled in.
    pub(crate) fn name(&self) -> String {
        self.key.name.replace(ID, &self.id)
    }
}

/// The placeholder in a key's name for a part that the user chooses.
pub(super) const ID: &str = "<id>";

/// Finds the key with exactly this name.
pub(super) fn find_by_name(name: &str) -> Option<KeyMatch> {
    KEYS.iter().find_map(|key| {
        let id = match key.name.split_once(ID) {
            None => (key.name == name).then_some("")?,
            Some((before, after)) => name.strip_prefix(before)?.strip_suffix(after)?,
        };
        let is_plain = !id.contains('.') && (key.name.contains(ID) != id.is_empty());
        is_plain.then(|| KeyMatch {
            key,
            id: id.to_owned(),
        })
    })
}

/// Finds the key that a `LANGO_*` variable sets; `suffix` is the part after `LANGO_`, and underscores and case do not
/// matter. If several keys match, the one with the shortest id wins: for example, `clientSecretEnv` could also be the
/// `env` of a longer id.
pub(super) fn find_by_variable(suffix: &str) -> Option<KeyMatch> {
    let suffix = normalized(suffix);
    let matches = KEYS.iter().filter_map(|key| {
        let id = match key.name.split_once(ID) {
            None => (normalized(key.name) == suffix).then_some("")?,
            Some((before, after)) => suffix
                .strip_prefix(&normalized(before))?
                .strip_suffix(&normalized(after))?,
        };
        (key.name.contains(ID) != id.is_empty()).then(|| KeyMatch {
            key,
            id: id.to_owned(),
        })
    });
    matches.min_by_key(|found| found.id.len())
}

/// Returns whether a key lies below `name`, as `agent.model` lies below `agent`.
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

/// Returns the key that was most likely meant by `name`, if one is similar enough.
pub(super) fn nearest(name: &str) -> Option<&'static Key> {
    let similarity = |key: &Key| {
        let whole =
            strsim::normalized_damerau_levenshtein(&normalized(name), &normalized(key.name));
        let last = strsim::normalized_damerau_levenshtein(&last_part(name), &last_part(key.name));
        whole.max(last * SAME_LAST_PART)
    };
    // Among equally similar keys the first one wins.
    KEYS.iter()
        .rev()
        .map(|key| (similarity(key), key))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, key)| key)
}

fn normalized(name: &str) -> String {
    name.chars()
        .filter(|letter| letter.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

fn last_part(name: &str) -> String {
    normalized(name.rsplit('.').next().unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_spells_the_key_in_capitals_with_underscores_between_words() {
        let variable = |name| find_by_name(name).unwrap().key.variable();
        assert_eq!(variable("agent.maxToolCalls"), "LANGO_AGENT_MAX_TOOL_CALLS");
        assert_eq!(variable("session.store"), "LANGO_SESSION_STORE");
    }

    #[test]
    fn no_two_keys_share_a_name_or_a_variable_in_any_spelling() {
        for (index, key) in KEYS.iter().enumerate() {
            assert!(
                KEYS[..index]
                    .iter()
                    .all(|other| normalized(other.name) != normalized(key.name)),
                "{}",
                key.name
            );
            let found = find_by_variable(&key.variable()["LANGO_".len()..]).unwrap();
            assert!(std::ptr::eq(found.key, key));
            assert!(!is_section(key.name), "{} is a key and a section", key.name);
        }
    }

    #[test]
    fn an_untrusted_project_may_only_narrow_and_only_with_these_keys() {
        let narrowing = KEYS.iter().filter(|key| match key.untrusted {
            UntrustedPolicy::Ignored => false,
            UntrustedPolicy::OnlyLower(_) | UntrustedPolicy::Filtered => true,
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
    fn the_nearest_key_is_found_despite_typos_other_spellings_and_the_wrong_section() {
        let nearest = |name| nearest(name).map(|key| key.name);
        assert_eq!(nearest("agent.modle"), Some("agent.model"));
        assert_eq!(nearest("agents.model"), Some("agent.model"));
        assert_eq!(nearest("session.model"), Some("agent.model"));
        assert_eq!(nearest("model"), Some("agent.model"));
        assert_eq!(nearest("agent.max_tool_calls"), Some("agent.maxToolCalls"));
        assert_eq!(nearest("colour.of.the.sky"), None);
    }
}
