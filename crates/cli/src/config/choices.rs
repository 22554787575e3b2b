//! Values with a meaning of their own: which topology, whose tools, what store.

use std::path::PathBuf;

use lango_core::UserId;
use lango_models::{Api, Kind};
use toml::de::DeValue;

use super::setting::{Base, Expected, Setting};

/// `agent.topology`: which agents there are and who calls whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topology {
    /// A topology that is known by its name, such as `specialists` or `classic`.
    Named(String),
    /// A file or a folder that describes one: any value with a `/` in it or `.toml` at its end.
    File(PathBuf),
}

impl Setting for Topology {
    fn assign(&mut self, value: &DeValue<'_>, base: &Base<'_>) -> Result<(), Expected> {
        *self = match value.as_str() {
            Some(path) if path.contains('/') || path.ends_with(".toml") => {
                Self::File(base.resolve(path)?)
            }
            Some(name) if !name.is_empty() => Self::Named(name.into()),
            _ => {
                return Err("`specialists`, `classic`, or the name or path of a topology".into());
            }
        };
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        Some(match self {
            Self::Named(name) => name.clone().into(),
            Self::File(path) => path.to_string_lossy().into_owned().into(),
        })
    }
}

/// `agent.orchestratorTools`: what the orchestrator may call itself, whatever its topology says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrchestratorTools {
    /// Nothing: it can only delegate.
    None,
    /// Every tool, beside delegating.
    All,
}

impl Setting for Option<OrchestratorTools> {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        *self = match value.as_str() {
            Some("none") => Some(OrchestratorTools::None),
            Some("all") => Some(OrchestratorTools::All),
            _ => return Err("`none` or `all`".into()),
        };
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        self.map(|tools| match tools {
            OrchestratorTools::None => "none".into(),
            OrchestratorTools::All => "all".into(),
        })
    }
}

/// `session.store`: where sessions are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// `sqlite:PATH`: a database file.
    Sqlite(PathBuf),
    /// `postgres://…`: a database on a server, which many copies of lango can share.
    Postgres(String),
}

impl StoreLocation {
    /// The place that `text` means, as it stands here.
    pub(super) fn read(text: &str, base: &Base<'_>) -> Result<Self, Expected> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        let path = text.strip_prefix("sqlite:").filter(|path| !path.is_empty());
        let path =
            path.ok_or("`sqlite:` and the path of a file, or `postgres://user@host/database`")?;
        Ok(Self::Sqlite(base.resolve(path)?))
    }
}

impl std::fmt::Display for StoreLocation {
    /// Without the password, if there is one.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(address) => f.write_str(&lango_store::without_password(address)),
        }
    }
}

impl Setting for StoreLocation {
    fn assign(&mut self, value: &DeValue<'_>, base: &Base<'_>) -> Result<(), Expected> {
        *self = Self::read(value.as_str().unwrap_or_default(), base)?;
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        Some(self.to_string().into())
    }
}

/// `session.user` and `server.user`: whose sessions they are.
impl Setting for UserId {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        let user = value.as_str().map(Self::from).filter(Self::can_be_kept);
        *self = user.ok_or_else(|| {
            format!(
                "a name of at most {} bytes without control characters",
                Self::LONGEST
            )
        })?;
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        Some(self.as_str().into())
    }
}

/// `session.whenBusy`: what a question does that finds its session busy with another turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenBusy {
    /// It waits in line.
    Wait,
    /// It is refused.
    Refuse,
}

impl Setting for WhenBusy {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        *self = match value.as_str() {
            Some("wait") => Self::Wait,
            Some("refuse") => Self::Refuse,
            _ => return Err("`wait` or `refuse`".into()),
        };
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        Some(match self {
            Self::Wait => "wait".into(),
            Self::Refuse => "refuse".into(),
        })
    }
}

impl Setting for Option<Kind> {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        let name = value.as_str().unwrap_or_default();
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        *self = Some(kind.ok_or("`openai`, `anthropic` or `gemini`")?);
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        self.map(|kind| kind.name().into())
    }
}

impl Setting for Option<Api> {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        let name = value.as_str().unwrap_or_default();
        let api = Api::ALL.into_iter().find(|api| api.name() == name);
        *self = Some(api.ok_or("`responses` or `chat`")?);
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        self.map(|api| api.name().into())
    }
}
