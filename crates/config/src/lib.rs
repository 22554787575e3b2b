//! The configuration: which keys exist, where their values come from, and what they mean.
//!
//! A key is one row of [`KEYS`] and one field of [`Settings`]; everything else is derived from that. [`load`] merges
//! the layers, weakest first: defaults, the user's file, the project's file, `LANGO_*` variables, `-c` flags. It
//! records the [`Origin`] of each value and collects every problem of every layer before it fails. It reads at most
//! three files, writes none, and takes everything else from its [`ProcessEnv`].

mod browser;
mod choices;
mod duration;
pub mod edit;
mod egress;
mod keys;
mod mcp;
mod model_settings;
mod origin;
mod overlay;
mod ownership;
mod payment;
mod problem;
mod process_env;
mod quote;
mod redact;
mod remote_agents;
mod rules;
mod search;
mod setting;
mod settings;
mod show;
pub mod text_file;
mod trusted_files;

pub use browser::{BrowserSettings, BrowserUse};
pub use choices::{BusySetting, OrchestratorTools, StoreLocation, TopologyChoice};
pub use duration::{parse as duration, parse_age as age};
pub use egress::{AllowedHosts, EgressSettings, NetworkAccess};
pub use keys::{KEYS, Key};
pub use mcp::{Capability, McpServer, McpSettings};
pub use model_settings::{OutputTokens, Temperature};
pub use origin::Origin;
pub use overlay::IgnoredSetting;
pub use ownership::{ForeignPath, ForeignReason};
pub use payment::PaymentSettings;
pub use problem::{ConfigProblem, ConfigProblems};
pub use process_env::{
    NEW_VAULT_PASSPHRASE, Paths, ProcessEnv, SERVER_VAULT_PASSPHRASE, VAULT_PASSPHRASE,
};
pub use redact::{is_secret_name, redact, redact_value};
pub use remote_agents::{RemoteAgentConfig, RemoteAgentConfigs};
pub use rules::ApprovalRules;
pub use search::{SearchProviderConfig, SearchSettings};
pub use settings::{
    A2aSettings, AgentSettings, ApprovalSettings, EmbeddingConfig, ExecSettings, GraphConfig,
    MemoryConfig, ProviderConfig, ServerConfig, SessionSettings, Settings, SkillSettings,
    ToolSettings, UiSettings, VaultSettings,
};
pub use show::{Layout, json, show};
pub use trusted_files::TrustedFiles;

use overlay::{Overlay, TrustLevel};

/// The environment variable that selects what is logged.
pub const LOG_VARIABLE: &str = "LANGO_LOG";

/// A valid configuration: every key is known and every value has the right type.
#[derive(Debug, Clone)]
pub struct LoadedConfig {
    pub settings: Settings,
    /// Every value with its origin, in the order of [`KEYS`].
    pub values: Vec<ConfigValue>,
    pub paths: Paths,
    /// Settings of the project's file that are ignored because the user does not trust the file.
    pub ignored: Vec<IgnoredSetting>,
}

impl LoadedConfig {
    /// Returns whether the effective value of this key comes from the project's file.
    pub fn is_set_by_project(&self, key: &str) -> bool {
        let value = self.values.iter().find(|value| value.key.name == key);
        value.is_some_and(|value| match &value.origin {
            Origin::File { path, .. } => self.paths.project_file.as_ref() == Some(path),
            _ => false,
        })
    }

    /// Describes the settings and rules of the project's file that are ignored because the user does not trust it.
    pub fn ignored_settings(&self) -> Vec<String> {
        let keys = self.ignored.iter().map(ToString::to_string);
        let rules = self.settings.approval.rules.ignored.iter();
        keys.chain(rules.map(ToString::to_string)).collect()
    }

    /// Returns warnings about ignored parts of the project, with the next step: one for all settings, one for each
    /// file.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut ignored = self.ignored_settings();
        if !ignored.is_empty() {
            let more = ignored.len().saturating_sub(MAX_IGNORED_SHOWN);
            ignored.truncate(MAX_IGNORED_SHOWN);
            if more > 0 {
                ignored.push(format!("… and {more} more"));
            }
            warnings.push(format!(
                "ignored because the project's file is not trusted: {}; read the file, then run `lango config trust` to trust its current content",
                ignored.join(", ")
            ));
        }
        let own_file = self.paths.foreign_project_file();
        warnings.extend(self.paths.foreign.iter().map(|foreign| {
            let next = if own_file == Some(foreign) {
                "read it, then run `lango config trust` to trust its current content"
            } else {
                "make it yours with chown and chmod, or name it in skill.dirs of your own file"
            };
            let ForeignPath { path, reason } = foreign;
            format!("`{}` is ignored: {reason}; {next}", path.display())
        }));
        warnings
    }
}

/// How many ignored settings a warning lists by name; it only counts the others.
const MAX_IGNORED_SHOWN: usize = 20;

/// The value of one key.
#[derive(Debug, Clone)]
pub struct ConfigValue {
    pub key: &'static Key,
    /// The full name of the key, with its id if it has one.
    pub name: String,
    /// The value as TOML; `None` if the key is not set.
    pub value: Option<toml::Value>,
    /// The layer that set the value.
    pub origin: Origin,
}

impl ConfigValue {
    /// Renders the value as a single line of a configuration file; `None` if the key is not set.
    pub fn render(&self) -> Option<String> {
        self.value.as_ref().map(quote::render)
    }
}

/// Parses a database location given on the command line.
///
/// # Errors
/// A description of what would have been accepted.
pub fn store_location(
    text: &str,
    process_env: &ProcessEnv,
) -> Result<StoreLocation, std::borrow::Cow<'static, str>> {
    let context = setting::ValueContext {
        trust_level: TrustLevel::Trusted,
        origin: &Origin::Flag,
        folder: &process_env.cwd,
        home: process_env.home(),
    };
    StoreLocation::read(text, &context)
}

/// Reads and merges all layers.
///
/// # Errors
/// All problems of all layers together. Only a missing home directory is reported alone, because without it the files
/// cannot be located.
pub fn load(process_env: &ProcessEnv) -> Result<LoadedConfig, ConfigProblems> {
    let paths = Paths::locate(process_env)?;
    let trust = TrustedFiles::read(&paths);
    merge(process_env, paths, &trust)
}

/// Reads and merges all layers as if these were the trusted files, instead of the stored ones.
///
/// # Errors
/// As [`load`].
pub fn load_with_trust(
    process_env: &ProcessEnv,
    trust: &TrustedFiles,
) -> Result<LoadedConfig, ConfigProblems> {
    let paths = Paths::locate_with_trust(process_env, trust)?;
    merge(process_env, paths, trust)
}

fn merge(
    process_env: &ProcessEnv,
    paths: Paths,
    trust: &TrustedFiles,
) -> Result<LoadedConfig, ConfigProblems> {
    let mut overlay = Overlay::new(process_env, Settings::with_defaults(&paths));
    overlay.read_file(&paths.user_file, |_| TrustLevel::Trusted);
    if let Some(project_file) = &paths.project_file {
        overlay.read_file(project_file, |content| {
            if trust.is_trusted(project_file, content) {
                TrustLevel::Trusted
            } else {
                TrustLevel::Untrusted
            }
        });
    }
    overlay.read_environment();
    overlay.read_flags();
    let (settings, values, ignored) = overlay.finish()?;
    Ok(LoadedConfig {
        settings,
        values,
        paths,
        ignored,
    })
}
