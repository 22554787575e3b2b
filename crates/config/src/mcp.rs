//! The keys under `mcp`: which servers exist and how each one is reached.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

use super::egress::NetworkAccess;
use super::setting::{Expected, Setting, ValueContext};
use lango_core::text::is_invisible;

/// The keys under `mcp`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpSettings {
    /// How long a server may take to answer the connection handshake.
    pub start_timeout: Duration,
    /// The servers, by the name that the user gave them.
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
    /// The program to start, with its arguments.
    pub command: CommandLine,
    /// The address of a remote server; no program is started for it.
    pub url: Option<String>,
    /// Arguments that name data rather than code. These files may change without asking the user for trust again.
    pub data: Vec<String>,
    /// The environment variables of the program.
    pub env: EnvVars,
    /// The environment variable with the bearer token for `url`.
    pub token_env: Option<String>,
    /// The OAuth client id under which lango is registered.
    pub client_id: Option<String>,
    /// The environment variable with the OAuth client secret.
    pub client_secret_env: Option<String>,
    /// The network access of the program.
    pub network: NetworkAccess,
    /// Additional paths that the program may read.
    pub read: Vec<PathBuf>,
    /// Additional paths that the program may change.
    pub write: Vec<PathBuf>,
    /// The agent that gets the tools.
    pub agent: Option<String>,
    /// What the agent can do with the tools, for the orchestrator's instruction.
    pub capability: Capability,
    /// The prefix of the tools' names.
    pub prefix: Prefix,
    /// The tools to offer; empty means all.
    pub tools: Vec<String>,
    /// Whether lango answers the server's forms with the defaults they contain.
    pub form_defaults: bool,
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine(pub Vec<String>);

impl Setting for CommandLine {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        let expected = || {
            Expected::from(
                "a program and its arguments as a list, such as `[\"uvx\", \"mcp-server-time==2026.10.19\"]`",
            )
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

    fn to_toml(&self) -> Option<toml::Value> {
        (!self.0.is_empty()).then(|| self.0.clone().into())
    }
}

/// Environment variables for a program: a bare name passes lango's own value on, `NAME=value` sets one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnvVars(pub Vec<(String, Option<String>)>);

impl Setting for EnvVars {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        let expected = || {
            Expected::from(
                "a list such as `[\"API_KEY\", \"LEVEL=debug\"]`; a name without a value passes lango's own value on",
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

    /// Leaves out values: they may be secret, and this output is often shared.
    fn to_toml(&self) -> Option<toml::Value> {
        let shown = self.0.iter().map(|(name, value)| match value {
            Some(_) => format!("{name}=…"),
            None => name.clone(),
        });
        let shown: Vec<String> = shown.collect();
        Some(shown.into())
    }
}

/// The prefix of tool names; `<id>_` if not set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prefix(pub Option<String>);

impl Setting for Prefix {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let text = value
            .as_str()
            .filter(|text| text.len() <= 32 && text.chars().all(plain))
            .ok_or("up to 32 letters, digits, `-`, `_` and `.`, or an empty text")?;
        self.0 = Some(text.to_owned());
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        self.0.clone().map(Into::into)
    }
}

/// A short text for the orchestrator that says what an agent can do with a server's tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capability(pub Option<String>);

impl Capability {
    /// The maximum length in characters.
    pub const LONGEST: usize = 80;

    /// Returns whether a text is short enough, on one line, and free of invisible characters.
    pub fn fits(text: &str) -> bool {
        let is_short = (1..=Self::LONGEST).contains(&text.chars().count());
        is_short && text.trim() == text && !text.contains(is_invisible)
    }
}

impl Setting for Capability {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        let text = value
            .as_str()
            .filter(|text| Self::fits(text))
            .ok_or("one line of up to 80 characters, such as `issue tracking`")?;
        self.0 = Some(text.to_owned());
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        self.0.clone().map(Into::into)
    }
}
