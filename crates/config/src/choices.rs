//! Settings that choose between alternatives: the topology, the orchestrator's tools, the store, the behaviour of a
//! busy session.

use std::path::PathBuf;

use lango_core::UserId;
use lango_models::{OpenAiApi, ProviderFamily};
use toml::de::DeValue;

use super::setting::{Expected, Setting, ValueContext};

/// `agent.topology`: which agents exist and which agent calls which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopologyChoice {
    /// A topology known by name, such as `specialists` or `classic`.
    Named(String),
    /// A file or directory that describes a topology: any value that contains a `/` or ends in `.toml`.
    File(PathBuf),
}

impl Setting for TopologyChoice {
    fn assign(&mut self, value: &DeValue<'_>, context: &ValueContext<'_>) -> Result<(), Expected> {
        *self = match value.as_str() {
            Some(path) if path.contains('/') || path.ends_with(".toml") => {
                Self::File(context.resolve(path)?)
            }
            Some(name) if !name.is_empty() => Self::Named(name.into()),
            _ => {
                return Err("`specialists`, `classic`, or the name or path of a topology".into());
            }
        };
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        Some(match self {
            Self::Named(name) => name.clone().into(),
            Self::File(path) => path.to_string_lossy().into_owned().into(),
        })
    }
}

/// `agent.orchestratorTools`: which tools the orchestrator may call itself. Overrides the topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrchestratorTools {
    /// None: the orchestrator can only delegate.
    None,
    /// All tools, in addition to delegating.
    All,
}

impl Setting for Option<OrchestratorTools> {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        *self = match value.as_str() {
            Some("none") => Some(OrchestratorTools::None),
            Some("all") => Some(OrchestratorTools::All),
            _ => return Err("`none` or `all`".into()),
        };
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        self.map(|tools| match tools {
            OrchestratorTools::None => "none".into(),
            OrchestratorTools::All => "all".into(),
        })
    }
}

/// `session.store`: the database that stores sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// `sqlite:PATH`: a database file.
    Sqlite(PathBuf),
    /// `postgres://…`: a database server, which many replicas of lango can share.
    Postgres(String),
}

impl StoreLocation {
    /// Parses a location; relative paths are resolved with `context`.
    pub(super) fn read(text: &str, context: &ValueContext<'_>) -> Result<Self, Expected> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        let path = text.strip_prefix("sqlite:").filter(|path| !path.is_empty());
        let path =
            path.ok_or("`sqlite:` and the path of a file, or `postgres://user@host/database`")?;
        Ok(Self::Sqlite(context.resolve(path)?))
    }
}

impl std::fmt::Display for StoreLocation {
    /// Leaves out the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(address) => f.write_str(&lango_store::without_password(address)),
        }
    }
}

impl Setting for StoreLocation {
    fn assign(&mut self, value: &DeValue<'_>, context: &ValueContext<'_>) -> Result<(), Expected> {
        *self = Self::read(value.as_str().unwrap_or_default(), context)?;
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        Some(self.to_string().into())
    }
}

/// `session.user` and `server.user`: the user who owns the sessions.
impl Setting for UserId {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        let user = value.as_str().map(Self::from).filter(Self::is_valid);
        *self = user.ok_or_else(|| {
            format!(
                "a name of at most {} bytes without control characters",
                Self::MAX_BYTES
            )
        })?;
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        Some(self.as_str().into())
    }
}

/// `session.whenBusy`: what happens to a question when its session is busy with another turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusySetting {
    /// The question waits in a queue.
    Wait,
    /// The question is refused.
    Refuse,
}

impl Setting for BusySetting {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        *self = match value.as_str() {
            Some("wait") => Self::Wait,
            Some("refuse") => Self::Refuse,
            _ => return Err("`wait` or `refuse`".into()),
        };
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        Some(match self {
            Self::Wait => "wait".into(),
            Self::Refuse => "refuse".into(),
        })
    }
}

impl Setting for Option<ProviderFamily> {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        let name = value.as_str().unwrap_or_default();
        let kind = ProviderFamily::ALL
            .into_iter()
            .find(|kind| kind.name() == name);
        *self = Some(kind.ok_or("`openai`, `anthropic` or `gemini`")?);
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        self.map(|kind| kind.name().into())
    }
}

impl Setting for Option<OpenAiApi> {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        let name = value.as_str().unwrap_or_default();
        let api = OpenAiApi::ALL.into_iter().find(|api| api.name() == name);
        *self = Some(api.ok_or("`responses` or `chat`")?);
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        self.map(|api| api.name().into())
    }
}
