//! The registry of keys. To add one, add a row here and its field in [`Settings`].
//!
//! The kind of a key is the type of its field, the default is what [`Settings::with_defaults`] puts there, so neither
//! can disagree with the code that uses it.

use super::setting::Setting;
use super::settings::Settings;

/// One key of the configuration.
pub struct Key {
    /// The dotted name in its exact spelling; `<id>` stands for a name that the person chooses.
    pub name: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    /// Where its value lives; the text is what stands for `<id>`.
    pub(super) field: for<'a> fn(&'a mut Settings, &str) -> &'a mut dyn Setting,
}

/// All keys, in the order in which they are shown.
pub static KEYS: &[Key] = &[
    Key {
        name: "agent.multiAgent",
        help: "delegate to sub-agents; false runs a single agent that holds all tools",
        field: |settings, _| &mut settings.agent.multi_agent,
    },
    Key {
        name: "agent.topology",
        help: "`specialists`, `classic`, or the name or path of a topology file",
        field: |settings, _| &mut settings.agent.topology,
    },
    Key {
        name: "agent.orchestratorTools",
        help: "`none` or `all`: overrides what the topology lets the orchestrator call",
        field: |settings, _| &mut settings.agent.orchestrator_tools,
    },
    Key {
        name: "agent.model",
        help: "provider and model, such as `offline/rules`; chosen by itself when not set",
        field: |settings, _| &mut settings.agent.model,
    },
    Key {
        name: "agent.fallback",
        help: "models that are asked in this order when `agent.model` fails",
        field: |settings, _| &mut settings.agent.fallback,
    },
    Key {
        name: "agent.maxDelegationRounds",
        help: "delegation rounds of a turn; zero means the default of 3",
        field: |settings, _| &mut settings.agent.max_delegation_rounds,
    },
    Key {
        name: "agent.maxModelCalls",
        help: "model calls of a turn, over all its agents",
        field: |settings, _| &mut settings.agent.max_model_calls,
    },
    Key {
        name: "agent.maxToolCalls",
        help: "tool calls of a turn, over all its agents",
        field: |settings, _| &mut settings.agent.max_tool_calls,
    },
    Key {
        name: "agent.maxTokens",
        help: "tokens of a turn, sent and received; zero makes no call",
        field: |settings, _| &mut settings.agent.max_tokens,
    },
    Key {
        name: "agent.maxCost",
        help: "US dollars of a turn; zero makes no call",
        field: |settings, _| &mut settings.agent.max_cost,
    },
    Key {
        name: "agent.turnTimeout",
        help: "active time of a turn; waiting for a person does not count",
        field: |settings, _| &mut settings.agent.turn_timeout,
    },
    Key {
        name: "agent.idleTimeout",
        help: "how long a model may be silent, before its first word and between words",
        field: |settings, _| &mut settings.agent.idle_timeout,
    },
    Key {
        name: "agent.toolTimeout",
        help: "time of a single tool call or remote call",
        field: |settings, _| &mut settings.agent.tool_timeout,
    },
    Key {
        name: "agent.strictTools",
        help: "refuse to start when a tool has no agent to own it",
        field: |settings, _| &mut settings.agent.strict_tools,
    },
    Key {
        name: "agent.agentsDir",
        help: "folder with definitions of further agents",
        field: |settings, _| &mut settings.agent.agents_dir,
    },
    Key {
        name: "providers.<id>.kind",
        help: "how a provider is spoken to: `openai` (very many servers), `anthropic` or `gemini`",
        field: |settings, id| &mut settings.provider(id).kind,
    },
    Key {
        name: "providers.<id>.baseUrl",
        help: "where it is, such as `http://127.0.0.1:8000/v1`",
        field: |settings, id| &mut settings.provider(id).base_url,
    },
    Key {
        name: "providers.<id>.apiKeyEnv",
        help: "the environment variable that holds its key",
        field: |settings, id| &mut settings.provider(id).api_key_env,
    },
    Key {
        name: "providers.<id>.contextTokens",
        help: "how many tokens its models take at once",
        field: |settings, id| &mut settings.provider(id).context_tokens,
    },
    Key {
        name: "providers.<id>.stream",
        help: "whether its replies are streamed",
        field: |settings, id| &mut settings.provider(id).stream,
    },
    Key {
        name: "approval.rules",
        help: "which calls run, are asked for or never run: `[{ action, agent, tool, match }]`; of all layers",
        field: |settings, _| &mut settings.approval.rules,
    },
    Key {
        name: "tools.exec.read",
        help: "more files and folders that commands and file tools may read",
        field: |settings, _| &mut settings.tools.exec.read,
    },
    Key {
        name: "tools.exec.write",
        help: "more folders that commands and file tools may change",
        field: |settings, _| &mut settings.tools.exec.write,
    },
    Key {
        name: "tools.exec.network",
        help: "whether commands reach the network",
        field: |settings, _| &mut settings.tools.exec.network,
    },
    Key {
        name: "tools.exec.maxProcesses",
        help: "processes that a command may have at once",
        field: |settings, _| &mut settings.tools.exec.max_processes,
    },
    Key {
        name: "tools.exec.maxMemoryMb",
        help: "memory that a command may use, in MiB",
        field: |settings, _| &mut settings.tools.exec.max_memory_mb,
    },
    Key {
        name: "skill.dirs",
        help: "more folders with skills, beside your own and the project's",
        field: |settings, _| &mut settings.skill.dirs,
    },
    Key {
        name: "mcp.startTimeout",
        help: "how long an MCP server may take to answer when it is connected",
        field: |settings, _| &mut settings.mcp.start_timeout,
    },
    Key {
        name: "mcp.servers.<id>.command",
        help: "the program of an MCP server and its arguments; it runs in the sandbox, in the workspace",
        field: |settings, id| &mut settings.server(id).command,
    },
    Key {
        name: "mcp.servers.<id>.url",
        help: "the address of an MCP server that runs elsewhere, such as `https://example.com/mcp`",
        field: |settings, id| &mut settings.server(id).url,
    },
    Key {
        name: "mcp.servers.<id>.tokenEnv",
        help: "the environment variable that holds its bearer token",
        field: |settings, id| &mut settings.server(id).token_env,
    },
    Key {
        name: "mcp.servers.<id>.clientId",
        help: "who lango was registered as for `lango mcp login`; it registers by itself if not set",
        field: |settings, id| &mut settings.server(id).client_id,
    },
    Key {
        name: "mcp.servers.<id>.clientSecretEnv",
        help: "the environment variable that holds the secret of that client",
        field: |settings, id| &mut settings.server(id).client_secret_env,
    },
    Key {
        name: "mcp.servers.<id>.env",
        help: "variables of its program: `NAME` is passed on, `NAME=value` is set",
        field: |settings, id| &mut settings.server(id).env,
    },
    Key {
        name: "mcp.servers.<id>.network",
        help: "whether its program reaches the network",
        field: |settings, id| &mut settings.server(id).network,
    },
    Key {
        name: "mcp.servers.<id>.read",
        help: "more files and folders that its program may read",
        field: |settings, id| &mut settings.server(id).read,
    },
    Key {
        name: "mcp.servers.<id>.write",
        help: "more folders that its program may change",
        field: |settings, id| &mut settings.server(id).write,
    },
    Key {
        name: "mcp.servers.<id>.agent",
        help: "the agent that is given its tools; without it their prefix decides",
        field: |settings, id| &mut settings.server(id).agent,
    },
    Key {
        name: "mcp.servers.<id>.prefix",
        help: "what the names of its tools begin with; `<id>_` if not set",
        field: |settings, id| &mut settings.server(id).prefix,
    },
    Key {
        name: "mcp.servers.<id>.tools",
        help: "the tools that are wanted, by the server's own names; all if empty",
        field: |settings, id| &mut settings.server(id).tools,
    },
    Key {
        name: "mcp.servers.<id>.formDefaults",
        help: "whether its forms are answered with its own defaults",
        field: |settings, id| &mut settings.server(id).form_defaults,
    },
    Key {
        name: "graph.enabled",
        help: "whether the librarian has a graph of facts",
        field: |settings, _| &mut settings.graph.enabled,
    },
    Key {
        name: "graph.maxDepth",
        help: "how many steps a walk through the graph may take",
        field: |settings, _| &mut settings.graph.max_depth,
    },
    Key {
        name: "graph.maxResults",
        help: "how many facts the graph gives at once",
        field: |settings, _| &mut settings.graph.max_results,
    },
    Key {
        name: "embedding.provider",
        help: "what makes vectors of texts: `offline` (spelling, not meaning), `none`, `model2vec`, `ollama`, or a provider",
        field: |settings, _| &mut settings.embedding.provider,
    },
    Key {
        name: "embedding.model",
        help: "the model of that provider; for `model2vec` its folder",
        field: |settings, _| &mut settings.embedding.model,
    },
    Key {
        name: "embedding.dimensions",
        help: "how many numbers a vector has, where the provider lets one choose",
        field: |settings, _| &mut settings.embedding.dimensions,
    },
    Key {
        name: "observationalMemory.enabled",
        help: "true: the model observes and condenses; false: no memory; not set: built-in rules observe, at no cost",
        field: |settings, _| &mut settings.memory.enabled,
    },
    Key {
        name: "observationalMemory.messageTokenThreshold",
        help: "tokens of turns that are observed together",
        field: |settings, _| &mut settings.memory.message_token_threshold,
    },
    Key {
        name: "observationalMemory.observationTokenThreshold",
        help: "tokens of observations that are condensed into reflections",
        field: |settings, _| &mut settings.memory.observation_token_threshold,
    },
    Key {
        name: "observationalMemory.reflectionTokenThreshold",
        help: "tokens of reflections that are condensed into longer-lived ones",
        field: |settings, _| &mut settings.memory.reflection_token_threshold,
    },
    Key {
        name: "observationalMemory.contextTokens",
        help: "tokens of memory that a turn is told at most",
        field: |settings, _| &mut settings.memory.context_tokens,
    },
    Key {
        name: "session.store",
        help: "where sessions are kept: `sqlite:PATH`",
        field: |settings, _| &mut settings.session.store,
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

impl Found {
    /// Whether only the person may set it: a folder that was cloned must not send keys to somebody else's address.
    pub fn is_personal(&self) -> bool {
        ["providers.<id>.baseUrl", "providers.<id>.apiKeyEnv"].contains(&self.key.name)
    }

    /// Whether it lets agents reach more. A project's file is not heard on it until the person trusts that file.
    pub fn opens_something(&self) -> bool {
        let name = self.key.name;
        let opens = ["tools.exec.", "mcp.servers."];
        opens.iter().any(|section| name.starts_with(section))
            || ["skill.dirs", "session.store"].contains(&name)
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

/// The key a `LANGO_*` variable means; `words` is what follows `LANGO_`, underscores and case do not matter.
pub(super) fn by_variable(words: &str) -> Option<Found> {
    let words = folded(words);
    KEYS.iter().find_map(|key| {
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
    })
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
