//! The text that describes a server's tools to the orchestrator.
//!
//! The text says in plain language what an agent can do, and never names a tool: an orchestrator that reads
//! `tracker_search` takes it for an agent. So a text that contains the name of a tool or an agent, or a bare prefix
//! of tools, is not used. A server's own title is untrusted, so it must also consist of plain characters only.

use super::McpContext;
use lango_config::Capability;
use lango_engine::{DELEGATE, GENERAL_ACTIONS, Topology, Tree};
use lango_mcp::{ServerOverview, ToolState};
use std::collections::BTreeSet;

/// Tool prefixes that models take for agents when they stand alone.
const PREFIXES: [&str; 5] = ["exec", "fs", "browser", "crypto", "rag"];

/// Names that no capability may contain.
pub(super) struct ReservedNames {
    tools: BTreeSet<String>,
    /// Tools that a server added after it was pinned; the user has not accepted their names yet.
    new_tools: BTreeSet<String>,
    agents: BTreeSet<String>,
}

impl ReservedNames {
    pub(super) fn new(context: &McpContext<'_>, servers: &[ServerOverview]) -> Self {
        let all = servers.iter().flat_map(|server| &server.tools);
        let (new, known): (Vec<_>, Vec<_>) = all.partition(|tool| tool.state == ToolState::New);
        let name = |tool: &lango_mcp::ToolOverview| tool.name.to_string();
        let own = context
            .tools
            .iter()
            .map(|tool| tool.spec().name.to_string());
        let built_in = Topology::BUILT_IN.iter();
        let built_in = built_in.filter_map(|name| Topology::built_in(name).ok());
        let built_in = built_in.flat_map(|topology| {
            let agents = topology
                .agents
                .into_iter()
                .map(|spec| spec.name.to_string());
            agents
                .chain([topology.root.to_string()])
                .collect::<Vec<_>>()
        });
        let remote = context.loaded.settings.a2a.remote_agents.0.iter();
        let remote = remote.map(|agent| agent.name.clone());
        let agents = context.agents.iter().map(ToString::to_string);
        let agents = agents.chain(built_in).chain(remote);
        Self {
            tools: own
                .chain(known.into_iter().map(name))
                .chain([DELEGATE.to_owned()])
                .collect(),
            new_tools: new.into_iter().map(name).collect(),
            agents: agents.chain([Tree::SINGLE.to_owned()]).collect(),
        }
    }

    /// Returns the capability text: the user's, else the server's title, else a general text. Fails if the user's
    /// text is invalid.
    pub(super) fn capability(
        &self,
        server: &ServerOverview,
        configured: Option<&str>,
    ) -> Result<String, String> {
        let text = match configured {
            Some(text) => match self.problem(text) {
                Some(problem) => return Err(problem),
                None => Some(text),
            },
            None => server
                .title
                .as_deref()
                .filter(|title| self.is_usable(title)),
        };
        // The name of a new tool must not turn the user's text into an error.
        let names_new_tool =
            |text: &&str| self.new_tools.iter().any(|tool| contains_word(text, tool));
        let text = text.filter(|text| !names_new_tool(text));
        Ok(text.unwrap_or(GENERAL_ACTIONS).to_owned())
    }

    /// Returns whether the orchestrator may see the title that a server gives itself.
    fn is_usable(&self, title: &str) -> bool {
        let plain = |c: char| c.is_alphanumeric() || " -_.,&+/()'".contains(c);
        Capability::fits(title) && title.chars().all(plain) && self.problem(title).is_none()
    }

    /// Describes what is wrong with a text.
    fn problem(&self, text: &str) -> Option<String> {
        let is_in = |word: &&str| contains_word(text, word);
        let found = |words: &BTreeSet<String>| {
            let mut words = words.iter().map(String::as_str);
            words.find(is_in).map(str::to_owned)
        };
        let advice = "describe in plain words what the tools are for";
        if let Some(tool) = found(&self.tools) {
            return Some(format!(
                "contains `{tool}`, which is the name of a tool; {advice}"
            ));
        }
        if let Some(agent) = found(&self.agents) {
            return Some(format!(
                "contains `{agent}`, which is the name of an agent; {advice}"
            ));
        }
        let prefix = PREFIXES.iter().copied().find(is_in)?;
        Some(format!(
            "contains `{prefix}`, which a model takes for the name of an agent; {advice}"
        ))
    }
}

/// Returns whether a text contains a word or phrase as a whole, ignoring case.
fn contains_word(text: &str, word: &str) -> bool {
    let (text, word) = (text.to_lowercase(), word.to_lowercase());
    let is_inside = |c: char| c.is_alphanumeric() || c == '_';
    let mut places = text.match_indices(&word);
    places.any(|(start, _)| {
        let (before, after) = (&text[..start], &text[start + word.len()..]);
        !before.ends_with(is_inside) && !after.starts_with(is_inside)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_core::ToolName;
    use lango_mcp::ToolOverview;

    fn reserved_names() -> ReservedNames {
        let set = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        ReservedNames {
            tools: set(&["fs_read", "toy_echo"]),
            new_tools: set(&["issues"]),
            agents: set(&["vault", "memory-manager"]),
        }
    }

    fn server(title: Option<&str>) -> ServerOverview {
        ServerOverview {
            id: "toy".to_owned(),
            transport: "stdio",
            target: "toy".to_owned(),
            agent: None,
            name: "toy 1.0".to_owned(),
            title: title.map(str::to_owned),
            is_pinned: true,
            problem: None,
            tools: vec![ToolOverview {
                name: ToolName::from("toy_echo"),
                tool: "echo".to_owned(),
                summary: String::new(),
                state: ToolState::Pinned,
                hash: String::new(),
            }],
        }
    }

    #[test]
    fn i06_a_title_with_a_name_a_prefix_or_odd_characters_is_not_used() {
        let long = "x".repeat(81);
        let capability = |title| reserved_names().capability(&server(title), None).unwrap();
        assert_eq!(capability(Some("Git & GitHub")), "Git & GitHub");
        assert_eq!(capability(Some("Executive browsers")), "Executive browsers");
        for title in [
            "Echo with toy_echo",
            "the FS_READ tool",
            "ask vault",
            "a memory-manager",
            "Browser control",
            "exec",
            "my rag",
            "crypto",
            "fs, and more",
            "issues",
            "",
            " spaced",
            "two\nlines",
            "a\u{200b}b",
            "a\u{202e}b",
            "`code`",
            "# heading",
            "say: \"yes\"",
            &long,
        ] {
            assert_eq!(capability(Some(title)), GENERAL_ACTIONS, "{title:?}");
        }
        assert_eq!(capability(None), GENERAL_ACTIONS);
    }

    #[test]
    fn c05_a_configured_capability_that_names_a_tool_or_an_agent_is_an_error() {
        let capability = |text| reserved_names().capability(&server(Some("Title")), Some(text));
        assert_eq!(capability("issue tracking").unwrap(), "issue tracking");
        for (text, expected) in [
            ("call toy_echo", "`toy_echo`, which is the name of a tool"),
            ("the vault", "`vault`, which is the name of an agent"),
            ("Browser", "`browser`, which a model takes for"),
        ] {
            let problem = capability(text).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
        // A server's new tool cannot stop lango from starting.
        assert_eq!(capability("issues").unwrap(), GENERAL_ACTIONS);
    }
}
