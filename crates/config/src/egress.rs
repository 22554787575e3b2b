//! The keys under `egress`: which hosts tools, commands and the browser may contact, and how much a turn may use.

use lango_net::{EgressLimits, HostPattern, HostPatternError};
use toml::de::DeValue;

use super::quote::shorten;
use super::setting::{Expected, Setting, ValueContext};

/// The keys under `egress`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressSettings {
    /// Hosts that may be contacted although they are not public.
    pub allow: AllowedHosts,
    pub deny: Vec<HostPattern>,
    /// The most requests per turn.
    pub max_requests: u64,
    /// The most bytes that a turn may send and receive, in total.
    pub max_bytes: u64,
}

/// A list of hosts without `*`. Public hosts are allowed anyway, and others must be named one by one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedHosts(pub Vec<HostPattern>);

/// The network access of commands, or of an MCP server's program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NetworkAccess {
    /// `false` or an empty list: no network.
    #[default]
    Closed,
    /// These hosts, through a proxy that also enforces the rules under `egress`.
    Hosts(Vec<HostPattern>),
    /// `true`: every address that this machine can reach, without a proxy.
    Open,
}

impl Default for EgressSettings {
    fn default() -> Self {
        let limits = EgressLimits::default();
        Self {
            allow: AllowedHosts::default(),
            deny: Vec::new(),
            max_requests: limits.requests,
            max_bytes: limits.total_bytes,
        }
    }
}

impl Setting for Vec<HostPattern> {
    /// Accepts a list, or comma-separated text, as in variables and flags.
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        let expected =
            || Expected::from("a list of hosts, such as `[\"example.com\", \"10.0.0.5:8080\"]`");
        let items: Vec<&str> = match value {
            DeValue::Array(items) => {
                let texts = items.iter().map(|item| item.get_ref().as_str());
                texts.collect::<Option<_>>().ok_or_else(expected)?
            }
            DeValue::String(text) if text.is_empty() => Vec::new(),
            DeValue::String(text) => text.split(',').collect(),
            _ => return Err(expected()),
        };
        let hosts = items.into_iter().map(str::parse::<HostPattern>);
        let hosts: Result<Vec<_>, _> = hosts.collect();
        *self = hosts.map_err(|error| {
            let entry = shorten(&error.entry);
            format!("a list of hosts; {}", HostPatternError { entry, ..error })
        })?;
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        Some(
            self.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .into(),
        )
    }
}

impl Setting for NetworkAccess {
    fn assign(&mut self, value: &DeValue<'_>, context: &ValueContext<'_>) -> Result<(), Expected> {
        if let Some(is_open) = value.as_bool() {
            *self = if is_open { Self::Open } else { Self::Closed };
            return Ok(());
        }
        let mut hosts = Vec::new();
        hosts
            .assign(value, context)
            .map_err(|expected| format!("`true`, `false` or {expected}"))?;
        *self = if hosts.is_empty() {
            Self::Closed
        } else {
            Self::Hosts(hosts)
        };
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        match self {
            Self::Closed => Some(false.into()),
            Self::Hosts(hosts) => hosts.to_toml(),
            Self::Open => Some(true.into()),
        }
    }
}

impl Setting for AllowedHosts {
    fn assign(&mut self, value: &DeValue<'_>, context: &ValueContext<'_>) -> Result<(), Expected> {
        let mut hosts = Vec::new();
        hosts.assign(value, context)?;
        if hosts.iter().any(HostPattern::is_any) {
            return Err(
                "a list of hosts without `*`: public hosts are allowed anyway, and others must be named one by one".into(),
            );
        }
        self.0 = hosts;
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        self.0.to_toml()
    }
}
