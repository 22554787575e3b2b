//! The keys under `mcp`: which servers there are, and how each is reached.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

use super::egress::NetworkAccess;
use super::setting::{Base, Expected, Setting};
use crate::screen::is_unseen;

/// The keys under `mcp`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpSettings {
    /// How long a server may take to answer when it is connected.
    pub start_timeout: Duration,
    /// The servers, by the name that the person gave them.
    pub servers: BTreeMap<String, McpServer>,
}

impl Default for McpSettings {
    fn default() -> Self {
        Self {
            start_timeout: Duration::from_secs(10),
            servers: BTreeMap::new(),
        }
    }
}

/// The keys under `mcp.servers.<id>`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct McpServer {
    /// The program that is started and its arguments.
    pub command: Words,
    /// The address, where nothing is started.
    pub url: Option<String>,
    /// Arguments of the program that name data, which may change.
    pub data: Vec<String>,
    /// The variables of the program.
    pub env: Variables,
    /// The environment variable that holds the token for the address.
    pub token_env: Option<String>,
    /// Who lango was registered as where access to the address is granted.
    pub client_id: Option<String>,
    /// The environment variable that holds its secret there.
    pub client_secret_env: Option<String>,
    /// What the program reaches of the network.
    pub network: NetworkAccess,
    /// More that the program may read.
    pub read: Vec<PathBuf>,
    /// More that the program may change.
    pub write: Vec<PathBuf>,
    /// The agent that is given the tools.
    pub agent: Option<String>,
    /// What the agent can do with the tools, in words.
    pub capability: Capability,
    /// What the names of the tools begin with.
    pub prefix: Prefix,
    /// The tools that are wanted; none means all.
    pub tools: Vec<String>,
    /// Whether forms of the server are answered with its own defaults.
    pub form_defaults: bool,
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Words(pub Vec<String>);

impl Setting for Words {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        let expected = || {
            Expected::from("a list of words, such as `[\"uvx\", \"mcp-server-time==2026.10.19\"]`")
        };
        let DeValue::Array(items) = value else {
            return Err(expected());
        };
        let words = items.iter().map(|item| item.get_ref().as_str());
        let words: Vec<&str> = words.collect::<Option<_>>().ok_or_else(expected)?;
        if words.first().is_none_or(|program| program.is_empty()) {
            return Err(expected());
        }
        self.0 = words.into_iter().map(str::to_owned).collect();
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        (!self.0.is_empty()).then(|| self.0.clone().into())
    }
}

/// Variables for a program: by name, with the value that lango itself has, or with a value of their own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Variables(pub Vec<(String, Option<String>)>);

impl Setting for Variables {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        let expected = || {
            Expected::from(
                "a list such as `[\"API_KEY\", \"LEVEL=debug\"]`: a name passes lango's own value on",
            )
        };
        let pairs: Option<Vec<(String, Option<String>)>> = match value {
            DeValue::Array(items) => {
                let texts = items.iter().map(|item| item.get_ref().as_str());
                let pair = |text: &str| match text.split_once('=') {
                    Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                    None => (text.to_owned(), None),
                };
                texts.map(|text| text.map(pair)).collect()
            }
            DeValue::Table(table) => {
                let pairs = table.iter().map(|(name, value)| {
                    let value = value.get_ref().as_str()?;
                    Some((name.get_ref().to_string(), Some(value.to_owned())))
                });
                pairs.collect()
            }
            _ => None,
        };
        let is_name = |name: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            !name.is_empty()
                && !name.starts_with(|c: char| c.is_ascii_digit())
                && name.chars().all(plain)
        };
        self.0 = pairs
            .filter(|pairs| pairs.iter().all(|(name, _)| is_name(name)))
            .ok_or_else(expected)?;
        Ok(())
    }

    /// Values may be secret, and what is shown is often passed around.
    fn shown(&self) -> Option<toml::Value> {
        let shown = self.0.iter().map(|(name, value)| match value {
            Some(_) => format!("{name}=…"),
            None => name.clone(),
        });
        let shown: Vec<String> = shown.collect();
        Some(shown.into())
    }
}

/// What the names of tools begin with; nothing is `<id>_`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prefix(pub Option<String>);

impl Setting for Prefix {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let text = value
            .as_str()
            .filter(|text| text.len() <= 32 && text.chars().all(plain))
            .ok_or("up to 32 letters, digits, `-`, `_` and `.`, or nothing")?;
        self.0 = Some(text.to_owned());
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        self.0.clone().map(Into::into)
    }
}

/// What an agent can do with a server's tools: a short text for the orchestrator.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capability(pub Option<String>);

impl Capability {
    /// The most characters it has.
    pub const LONGEST: usize = 80;

    /// Whether a text is short, on one line, and free of characters that cannot be seen.
    pub fn fits(text: &str) -> bool {
        let is_short = (1..=Self::LONGEST).contains(&text.chars().count());
        is_short && text.trim() == text && !text.contains(is_unseen)
    }
}

impl Setting for Capability {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        let text = value
            .as_str()
            .filter(|text| Self::fits(text))
            .ok_or("one line of up to 80 characters, such as `issue tracking`")?;
        self.0 = Some(text.to_owned());
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        self.0.clone().map(Into::into)
    }
}
