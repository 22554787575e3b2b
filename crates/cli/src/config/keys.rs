//! The registry of keys. To add one, add a row here and its field in [`Settings`].
//!
//! The kind of a key is the type of its field, the default is what [`Settings::with_defaults`] puts there, so neither
//! can disagree with the code that uses it.

use super::setting::Setting;
use super::settings::Settings;

/// One key of the configuration.
pub struct Key {
    /// The dotted name in its exact spelling.
    pub name: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    /// Where its value lives.
    pub(super) field: fn(&mut Settings) -> &mut dyn Setting,
}

/// All keys, in the order in which they are shown.
pub static KEYS: &[Key] = &[
    Key {
        name: "agent.multiAgent",
        help: "delegate to sub-agents; false runs a single agent that holds all tools",
        field: |settings| &mut settings.agent.multi_agent,
    },
    Key {
        name: "agent.topology",
        help: "`specialists`, `classic`, or the name or path of a topology file",
        field: |settings| &mut settings.agent.topology,
    },
    Key {
        name: "agent.orchestratorTools",
        help: "`none` or `all`: overrides what the topology lets the orchestrator call",
        field: |settings| &mut settings.agent.orchestrator_tools,
    },
    Key {
        name: "agent.model",
        help: "provider and model, such as `offline/rules`; chosen by itself when not set",
        field: |settings| &mut settings.agent.model,
    },
    Key {
        name: "agent.maxDelegationRounds",
        help: "delegation rounds of a turn; zero means the default of 3",
        field: |settings| &mut settings.agent.max_delegation_rounds,
    },
    Key {
        name: "agent.maxModelCalls",
        help: "model calls of a turn, over all its agents",
        field: |settings| &mut settings.agent.max_model_calls,
    },
    Key {
        name: "agent.maxToolCalls",
        help: "tool calls of a turn, over all its agents",
        field: |settings| &mut settings.agent.max_tool_calls,
    },
    Key {
        name: "agent.turnTimeout",
        help: "active time of a turn; waiting for a person does not count",
        field: |settings| &mut settings.agent.turn_timeout,
    },
    Key {
        name: "agent.toolTimeout",
        help: "time of a single tool call or remote call",
        field: |settings| &mut settings.agent.tool_timeout,
    },
    Key {
        name: "agent.strictTools",
        help: "refuse to start when a tool has no agent to own it",
        field: |settings| &mut settings.agent.strict_tools,
    },
    Key {
        name: "agent.agentsDir",
        help: "folder with definitions of further agents",
        field: |settings| &mut settings.agent.agents_dir,
    },
    Key {
        name: "session.store",
        help: "where sessions are kept: `sqlite:PATH`",
        field: |settings| &mut settings.session.store,
    },
];

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

/// The key of exactly this name.
pub(super) fn by_name(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The key a `LANGO_*` variable means; `words` is what follows `LANGO_`, underscores and case do not matter.
pub(super) fn by_variable(words: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| folded(key.name) == folded(words))
}

/// Whether some key lies below `name`, as `agent.model` lies below `agent`.
pub(super) fn is_section(name: &str) -> bool {
    KEYS.iter().any(|key| {
        key.name
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with('.'))
    })
}

/// The key that somebody who wrote `name` most likely meant, if one is near enough.
pub(super) fn nearest(name: &str) -> Option<&'static Key> {
    let likeness = |key: &Key| {
        let whole = strsim::normalized_damerau_levenshtein(&folded(name), &folded(key.name));
        let last = strsim::normalized_damerau_levenshtein(&last_part(name), &last_part(key.name));
        whole.max(last * SAME_LAST_PART)
    };
    KEYS.iter()
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
        let variable = |name| by_name(name).unwrap().variable();
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
            assert!(std::ptr::eq(
                by_variable(&key.variable()["LANGO_".len()..]).unwrap(),
                key
            ));
            assert!(!is_section(key.name), "{} is a key and a section", key.name);
        }
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
