//! The configuration: which keys there are, where their values come from, and what they mean.
//!
//! A key is one row of [`KEYS`] and one field of [`Settings`]; everything else follows from that. [`load`] lays the
//! layers over each other, weakest first: defaults, the user's file, the project's file, `LANGO_*` variables, `-c` flags.
//! It remembers the [`Origin`] of each value and collects every problem of every layer before it gives up. It reads three
//! files at most, writes none, and takes everything else from its [`Surroundings`].

mod browser;
mod choices;
mod duration;
mod egress;
mod keys;
mod mcp;
mod model_settings;
mod origin;
mod overlay;
mod ownership;
mod payment;
mod problem;
mod quote;
mod remote_agents;
mod rules;
mod search;
mod setting;
mod settings;
mod show;
mod surroundings;
mod trust;

pub use browser::{BrowserSettings, BrowserUse};
pub use choices::{OrchestratorTools, StoreLocation, Topology, WhenBusy};
pub use duration::{parse as duration, parse_age as age};
pub use egress::{AllowedHosts, EgressSettings, NetworkAccess};
pub use keys::{KEYS, Key};
pub use mcp::{Capability, McpServer, McpSettings};
pub use model_settings::{OutputTokens, Temperature};
pub use origin::Origin;
pub use overlay::Ignored;
pub use ownership::{ForeignPath, ForeignReason};
pub use payment::PaymentSettings;
pub use problem::{Problem, Problems};
pub use remote_agents::{RemoteAgentConfig, RemoteAgents};
pub use rules::ApprovalRules;
pub use search::{SearchProviderConfig, SearchSettings};
pub use settings::{
    A2aSettings, AgentSettings, ApprovalSettings, EmbeddingConfig, ExecSettings, GraphConfig,
    MemoryConfig, ProviderConfig, ServerConfig, SessionSettings, Settings, SkillSettings,
    ToolSettings, VaultSettings,
};
pub use show::{Layout, json, show};
pub use surroundings::{
    NEW_VAULT_PASSPHRASE, Paths, SERVER_VAULT_PASSPHRASE, Surroundings, VAULT_PASSPHRASE,
};
pub use trust::Trust;

use overlay::{Overlay, Whose};

/// A configuration that holds: every key was known and every value fitted.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What the program runs with.
    pub settings: Settings,
    /// The same, key by key in the order of [`KEYS`], with where each value came from.
    pub values: Vec<Value>,
    /// The files and folders of this run.
    pub paths: Paths,
    /// What a project's file says and what does not hold, because nobody trusts the file.
    pub ignored: Vec<Ignored>,
}

impl Loaded {
    /// Whether the project's file has the last word on this key.
    pub fn is_the_projects(&self, key: &str) -> bool {
        let mut values = self.values.iter();
        let value = values.find(|value| value.key.name == key);
        value.is_some_and(|value| match &value.origin {
            Origin::File { path, .. } => self.paths.project_file.as_ref() == Some(path),
            _ => false,
        })
    }

    /// What a project's file says and what is not heard, because nobody trusts the file.
    pub fn unheard(&self) -> Vec<String> {
        let keys = self.ignored.iter().map(ToString::to_string);
        let rules = self.settings.approval.rules.ignored.iter();
        keys.chain(rules.map(ToString::to_string)).collect()
    }

    /// What of the project's files is ignored, with the next step: one warning for all settings, one for each file.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut ignored = self.unheard();
        if !ignored.is_empty() {
            let more = ignored.len().saturating_sub(MOST_IGNORED_SHOWN);
            ignored.truncate(MOST_IGNORED_SHOWN);
            if more > 0 {
                ignored.push(format!("… and {more} more"));
            }
            warnings.push(format!(
                "ignored, because the project's file is not trusted: {}; read the file, then `lango config trust` trusts it as it is",
                ignored.join(", ")
            ));
        }
        let own_file = self.paths.foreign_project_file();
        warnings.extend(self.paths.foreign.iter().map(|foreign| {
            let next = if own_file == Some(foreign) {
                "read it, then `lango config trust` trusts it as it is"
            } else {
                "make it yours with chown and chmod, or name it in skill.dirs of your own file"
            };
            let ForeignPath { path, reason } = foreign;
            format!("`{}` is ignored: {reason}; {next}", path.display())
        }));
        warnings
    }
}

/// How many ignored settings a warning names before it only counts the rest.
const MOST_IGNORED_SHOWN: usize = 20;

/// The value of one key.
#[derive(Debug, Clone)]
pub struct Value {
    /// Whose value it is.
    pub key: &'static Key,
    /// The whole name of the key.
    pub name: String,
    /// The value as TOML would hold it; nothing if the key is not set.
    pub value: Option<toml::Value>,
    /// Which layer had the last word.
    pub origin: Origin,
}

impl Value {
    /// The value as it would be written in a file, on a single line; nothing if the key is not set.
    pub fn rendered(&self) -> Option<String> {
        self.value.as_ref().map(quote::rendered)
    }
}

/// The database that somebody means who writes this on the command line; or what would have been accepted.
pub fn store_location(
    text: &str,
    surroundings: &Surroundings,
) -> Result<StoreLocation, std::borrow::Cow<'static, str>> {
    let base = setting::Base {
        whose: Whose::Person,
        origin: &Origin::Flag,
        folder: &surroundings.cwd,
        home: surroundings.home(),
    };
    StoreLocation::read(text, &base)
}

/// Reads all layers.
///
/// # Errors
/// All problems of all layers at once. Only a home that cannot be found is reported alone: without it there is no
/// telling which files to read.
pub fn load(surroundings: &Surroundings) -> Result<Loaded, Problems> {
    let paths = Paths::locate(surroundings)?;
    let mut overlay = Overlay::new(surroundings, Settings::with_defaults(&paths));
    overlay.read_file(&paths.user_file, |_| Whose::Person);
    if let Some(project_file) = &paths.project_file {
        let trust = Trust::read(&paths);
        overlay.read_file(project_file, |content| {
            if trust.holds(project_file, content) {
                Whose::Person
            } else {
                Whose::Project
            }
        });
    }
    overlay.read_environment();
    overlay.read_flags();
    let (settings, values, ignored) = overlay.finish()?;
    Ok(Loaded {
        settings,
        values,
        paths,
        ignored,
    })
}
