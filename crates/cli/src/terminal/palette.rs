//! Colours and attributes of lango's own lines. `NO_COLOR` removes colours and keeps bold and dim text.

use lango_core::AgentName;
use std::io::IsTerminal;

/// A colour of the terminal's own theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Colour {
    fn code(self) -> &'static str {
        match self {
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Cyan => "36",
        }
    }
}

/// The codes of the agents' colours, in the order in which agents appear: the normal ones, then the bright ones. Red is
/// for failures.
const AGENT_COLOURS: [&str; 10] = ["36", "35", "32", "33", "34", "96", "95", "92", "93", "94"];

/// Which attributes lines may have, and which colour belongs to which agent.
#[derive(Debug, Clone)]
pub struct Palette {
    has_attributes: bool,
    has_colour: bool,
    /// The agents that have appeared; the position decides the colour.
    agents: Vec<AgentName>,
}

impl Palette {
    /// Creates a palette for text without any attributes.
    pub fn plain() -> Self {
        Self {
            has_attributes: false,
            has_colour: false,
            agents: Vec::new(),
        }
    }

    /// Creates a palette for a terminal; without colours if the user set `NO_COLOR`.
    pub fn for_terminal() -> Self {
        Self {
            has_attributes: true,
            has_colour: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            agents: Vec::new(),
        }
    }

    /// Gives these agents the first colours, in this order, so that a colour does not depend on who acts first.
    pub fn with_agents(mut self, agents: impl IntoIterator<Item = AgentName>) -> Self {
        self.agents = agents.into_iter().collect();
        self
    }

    pub fn bold(&self, text: &str) -> String {
        self.attribute(text, "1")
    }

    pub fn dim(&self, text: &str) -> String {
        self.attribute(text, "2")
    }

    pub fn colour(&self, text: &str, colour: Colour) -> String {
        if self.has_colour {
            wrap_in(text, colour.code())
        } else {
            text.to_owned()
        }
    }

    /// Gives an agent the next colour, if it has none yet.
    pub fn add_agent(&mut self, agent: &AgentName) {
        if !self.agents.contains(agent) {
            self.agents.push(agent.clone());
        }
    }

    /// Returns the name of an agent, in its colour if it has one.
    pub fn agent(&self, agent: &AgentName) -> String {
        let position = self.agents.iter().position(|known| known == agent);
        match position.filter(|_| self.has_colour) {
            Some(position) => {
                let colour = AGENT_COLOURS[position % AGENT_COLOURS.len()];
                wrap_in(agent.as_str(), colour)
            }
            None => agent.to_string(),
        }
    }

    /// Returns the style for markdown. Text for a terminal is always sanitized; only a pipe gets it byte for byte.
    pub fn markdown(&self) -> lango_markdown::Style {
        match (self.has_attributes, self.has_colour) {
            (false, _) if std::io::stdout().is_terminal() => lango_markdown::Style::Source,
            (false, _) => lango_markdown::Style::Plain,
            (true, false) => lango_markdown::Style::Uncoloured,
            (true, true) => lango_markdown::Style::Coloured,
        }
    }

    fn attribute(&self, text: &str, code: &str) -> String {
        if self.has_attributes {
            wrap_in(text, code)
        } else {
            text.to_owned()
        }
    }
}

fn wrap_in(text: &str, code: &str) -> String {
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}
