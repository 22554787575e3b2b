//! `a2a.remoteAgents`: remote agents, by name and the address of their card.

use std::collections::BTreeMap;
use std::time::Duration;

use lango_a2a::client::HeaderName;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::setting::{Expected, Setting, ValueContext};

/// The remote agents, in the order of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemoteAgentConfigs(pub Vec<RemoteAgentConfig>);

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemoteAgentConfig {
    /// The name that this lango uses for the agent.
    pub name: String,
    /// The address of the agent card.
    pub agent_card_url: String,
    /// The environment variable with the bearer token.
    pub token_env: Option<String>,
    /// More headers to send, each with the environment variable that holds its value.
    pub headers_env: Vec<(HeaderName, String)>,
    /// The time limit of a call; `agent.toolTimeout` if not set.
    pub timeout: Option<Duration>,
}

/// The error text for an unknown field.
const FIELDS: &str =
    "agents with the fields `name`, `agentCardUrl`, `tokenEnv`, `headersEnv` and `timeout`";

/// Headers that lango or HTTP itself sets.
const RESERVED_HEADERS: [&str; 12] = [
    "a2a-version",
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "te",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// The error text for a value that is not a list of agents.
const EXPECTED: &str = "a list of agents, such as \
     `[{ name = \"weather\", agentCardUrl = \"https://weather.example\", tokenEnv = \"WEATHER_TOKEN\" }]`";

impl Setting for RemoteAgentConfigs {
    fn assign(&mut self, value: &DeValue<'_>, context: &ValueContext<'_>) -> Result<(), Expected> {
        let DeValue::Array(items) = value else {
            return Err(EXPECTED.into());
        };
        let read = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
            DeValue::Table(table) => agent(table, context),
            _ => Err(EXPECTED.into()),
        };
        self.0 = items.iter().map(read).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        Some(self.0.iter().map(agent_to_toml).collect::<Vec<_>>().into())
    }
}

fn agent(table: &DeTable<'_>, context: &ValueContext<'_>) -> Result<RemoteAgentConfig, Expected> {
    let mut agent = RemoteAgentConfig::default();
    for (name, value) in table {
        let value = value.get_ref();
        let text = || {
            let text = value.as_str().filter(|text| !text.is_empty());
            text.map(str::to_owned).ok_or_else(|| {
                let name = name.get_ref();
                Expected::from(format!("agents whose `{name}` is text that is not empty"))
            })
        };
        match name.get_ref().as_ref() {
            "name" => agent.name = text()?,
            "agentCardUrl" => agent.agent_card_url = text()?,
            "tokenEnv" => agent.token_env = Some(text()?),
            "headersEnv" => agent.headers_env = headers(value)?,
            "timeout" => agent.timeout = Some(timeout(value, context)?),
            _ => return Err(FIELDS.into()),
        }
    }
    if agent.name.is_empty() || agent.agent_card_url.is_empty() {
        return Err("agents that have a `name` and an `agentCardUrl`".into());
    }
    let mut names = agent.headers_env.iter().map(|(name, _)| name);
    if agent.token_env.is_some() && names.any(|name| name == "authorization") {
        return Err("agents with `tokenEnv` or the header `Authorization`, not both".into());
    }
    Ok(agent)
}

fn timeout(value: &DeValue<'_>, context: &ValueContext<'_>) -> Result<Duration, Expected> {
    let mut timeout = Duration::ZERO;
    let assigned = timeout.assign(value, context);
    assigned.map_err(|expected| Expected::from(format!("agents whose `timeout` is {expected}")))?;
    if timeout.is_zero() {
        return Err("agents whose `timeout` is greater than zero, such as `10m`".into());
    }
    Ok(timeout)
}

fn headers(value: &DeValue<'_>) -> Result<Vec<(HeaderName, String)>, Expected> {
    let expected = || {
        Expected::from(
            "agents whose `headersEnv` maps names of headers to environment variables, such as `{ X-API-Key = \"WEATHER_KEY\" }`",
        )
    };
    let DeValue::Table(table) = value else {
        return Err(expected());
    };
    let mut headers = BTreeMap::new();
    for (name, value) in table {
        let written = name.get_ref();
        let name: HeaderName = written.parse().map_err(|_| expected())?;
        let value = value.get_ref().as_str().filter(|text| !text.is_empty());
        let value = value.ok_or_else(expected)?;
        if RESERVED_HEADERS.contains(&name.as_str()) {
            return Err(format!(
                "agents whose `headersEnv` does not contain `{written}`, which lango sets itself"
            )
            .into());
        }
        if headers
            .insert(name.to_string(), (name, value.to_owned()))
            .is_some()
        {
            return Err(format!("agents whose `headersEnv` contains `{written}` only once").into());
        }
    }
    Ok(headers.into_values().collect())
}

fn agent_to_toml(agent: &RemoteAgentConfig) -> toml::Value {
    let fields = [
        ("name", Some(agent.name.as_str())),
        ("agentCardUrl", Some(agent.agent_card_url.as_str())),
        ("tokenEnv", agent.token_env.as_deref()),
    ];
    let mut table: toml::Table = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
        .collect();
    if !agent.headers_env.is_empty() {
        let headers = agent.headers_env.iter();
        let headers = headers.map(|(name, variable)| (name.to_string(), variable.as_str().into()));
        table.insert(
            "headersEnv".to_owned(),
            toml::Value::Table(headers.collect()),
        );
    }
    if let Some(timeout) = agent.timeout.and_then(|timeout| timeout.to_toml()) {
        table.insert("timeout".to_owned(), timeout);
    }
    table.into()
}
