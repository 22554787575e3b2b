//! The keys under `browser`: whether agents have one, which program, and how long it stays open.

use std::path::PathBuf;
use std::time::Duration;
use toml::de::DeValue;

use super::setting::{Base, Expected, Setting};

/// The keys under `browser`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserSettings {
    /// Whether agents have a browser.
    pub enabled: BrowserUse,
    /// The program.
    pub path: Option<PathBuf>,
    /// How long a browser is left open without a call.
    pub idle_time: Duration,
    /// The address of a search, with `{query}` in it.
    pub search_url: Option<String>,
}

/// `browser.enabled`: whether agents have a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum BrowserUse {
    /// `false`: never.
    Never,
    /// `"auto"`: if one is installed and the sandbox can hold it.
    #[default]
    Auto,
    /// `true`: always; without one lango does not start.
    Always,
}

impl Default for BrowserSettings {
    fn default() -> Self {
        Self {
            enabled: BrowserUse::default(),
            path: None,
            idle_time: Duration::from_secs(5 * 60),
            search_url: None,
        }
    }
}

impl Setting for BrowserUse {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        *self = match (value.as_bool(), value.as_str()) {
            (Some(true), _) | (_, Some("true")) => Self::Always,
            (Some(false), _) | (_, Some("false")) => Self::Never,
            (_, Some("auto")) => Self::Auto,
            _ => return Err("`\"auto\"`, `true` or `false`".into()),
        };
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        Some(match self {
            Self::Never => false.into(),
            Self::Auto => "auto".into(),
            Self::Always => true.into(),
        })
    }
}
