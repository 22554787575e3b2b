//! The keys under `browser`: whether agents have a browser, which program it is, and how long it stays open.

use std::path::PathBuf;
use std::time::Duration;
use toml::de::DeValue;

use super::setting::{Expected, Setting, ValueContext};

/// The keys under `browser`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserSettings {
    pub enabled: BrowserUse,
    /// The browser's executable; detected if not set.
    pub path: Option<PathBuf>,
    /// How long a browser stays open without a call.
    pub idle_time: Duration,
    /// The address of a search page, with a `{query}` placeholder.
    pub search_url: Option<String>,
}

/// `browser.enabled`: whether agents have a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum BrowserUse {
    /// `false`: never.
    Never,
    /// `"auto"`: if a browser is installed and the sandbox supports it.
    #[default]
    Auto,
    /// `true`: always; lango does not start without a browser.
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
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        *self = match (value.as_bool(), value.as_str()) {
            (Some(true), _) | (_, Some("true")) => Self::Always,
            (Some(false), _) | (_, Some("false")) => Self::Never,
            (_, Some("auto")) => Self::Auto,
            _ => return Err("`\"auto\"`, `true` or `false`".into()),
        };
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        Some(match self {
            Self::Never => false.into(),
            Self::Auto => "auto".into(),
            Self::Always => true.into(),
        })
    }
}
