//! `a2a.remoteAgents`: agents elsewhere, by name and the address of their card.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::setting::{Base, Expected, Setting};

/// The remote agents, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemoteAgents(pub Vec<RemoteAgentConfig>);

/// One remote agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemoteAgentConfig {
    /// What it is called here.
    pub name: String,
    /// Where its card is.
    pub agent_card_url: String,
    /// The environment variable that holds its token.
    pub token_env: Option<String>,
}

/// What an entry looks like, for whoever wrote something else.
const EXPECTED: &str = "a list of agents, such as \
     `[{ name = \"weather\", agentCardUrl = \"https://weather.example\", tokenEnv = \"WEATHER_TOKEN\" }]`";

impl Setting for RemoteAgents {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        let DeValue::Array(items) = value else {
            return Err(EXPECTED.into());
        };
        let read = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
            DeValue::Table(table) => agent(table),
            _ => Err(EXPECTED.into()),
        };
        self.0 = items.iter().map(read).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        Some(self.0.iter().map(shown).collect::<Vec<_>>().into())
    }
}

fn agent(table: &DeTable<'_>) -> Result<RemoteAgentConfig, Expected> {
    let mut agent = RemoteAgentConfig::default();
    for (name, value) in table {
        let text = value.get_ref().as_str().filter(|text| !text.is_empty());
        let text = text
            .ok_or("agents whose fields are text that is not empty")?
            .to_owned();
        match name.get_ref().as_ref() {
            "name" => agent.name = text,
            "agentCardUrl" => agent.agent_card_url = text,
            "tokenEnv" => agent.token_env = Some(text),
            _ => {
                return Err("agents with the fields `name`, `agentCardUrl` and `tokenEnv`".into());
            }
        }
    }
    match agent.name.is_empty() || agent.agent_card_url.is_empty() {
        true => Err("agents that have a `name` and an `agentCardUrl`".into()),
        false => Ok(agent),
    }
}

fn shown(agent: &RemoteAgentConfig) -> toml::Value {
    let fields = [
        ("name", Some(agent.name.as_str())),
        ("agentCardUrl", Some(agent.agent_card_url.as_str())),
        ("tokenEnv", agent.token_env.as_deref()),
    ];
    let table: toml::Table = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
        .collect();
    table.into()
}
