//! The keys under `egress`: which hosts tools, commands and the browser may contact, and how much a turn may use.

use lango_net::{EgressLimits, HostPattern, HostPatternError};
use toml::de::DeValue;

use super::quote::shortened;
use super::setting::{Base, Expected, Setting};

/// The keys under `egress`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressSettings {
    /// Hosts that may be contacted though they are not public.
    pub allow: AllowedHosts,
    /// Hosts that are never contacted.
    pub deny: Vec<HostPattern>,
    /// Requests of a turn.
    pub max_requests: u64,
    /// Bytes that a turn may receive and send.
    pub max_bytes: u64,
}

/// Hosts that are named one by one: `*` would name nothing that is not allowed anyway.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedHosts(pub Vec<HostPattern>);

/// What commands, or the program of an MCP server, reach of the network.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NetworkAccess {
    /// `false`, or a list without hosts: nothing.
    #[default]
    Closed,
    /// These hosts, through a proxy that keeps the rules under `egress` too.
    Hosts(Vec<HostPattern>),
    /// `true`: every address that this machine reaches, without a proxy.
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
    /// A list, or text with commas in between, as variables and flags have it.
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
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
            let entry = shortened(&error.entry);
            format!("a list of hosts; {}", HostPatternError { entry, ..error })
        })?;
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        Some(
            self.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .into(),
        )
    }
}

impl Setting for NetworkAccess {
    fn assign(&mut self, value: &DeValue<'_>, base: &Base<'_>) -> Result<(), Expected> {
        if let Some(is_open) = value.as_bool() {
            *self = if is_open { Self::Open } else { Self::Closed };
            return Ok(());
        }
        let mut hosts = Vec::new();
        hosts
            .assign(value, base)
            .map_err(|expected| format!("`true`, `false` or {expected}"))?;
        *self = if hosts.is_empty() {
            Self::Closed
        } else {
            Self::Hosts(hosts)
        };
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        match self {
            Self::Closed => Some(false.into()),
            Self::Hosts(hosts) => hosts.shown(),
            Self::Open => Some(true.into()),
        }
    }
}

impl Setting for AllowedHosts {
    fn assign(&mut self, value: &DeValue<'_>, base: &Base<'_>) -> Result<(), Expected> {
        let mut hosts = Vec::new();
        hosts.assign(value, base)?;
        if hosts.iter().any(HostPattern::is_any) {
            return Err(
                "a list of hosts without `*`: public hosts are allowed anyway, and others have to be named".into(),
            );
        }
        self.0 = hosts;
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        self.0.shown()
    }
}
