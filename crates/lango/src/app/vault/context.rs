//! What commands that work with secrets start from: the configuration and the vault, without agents and tools.

use super::{PromptMode, VaultAccess, methods};
use crate::app::Failure;
use crate::app::payment::PaymentSource;
use crate::app::roster::Roster;
use crate::app::sessions::Storage;
use lango_config::{LoadedConfig, ProcessEnv};
use lango_core::{AgentName, RecordSelection};
use lango_engine::Tree;
use lango_vault::OpenVault;

/// Which vault the commands work with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VaultOwner {
    /// The vault of `session.user`.
    User,
    /// The vault of `server.user`.
    Server,
}

/// The configuration, the database and the vault for commands that work with secrets but need no agents.
pub struct VaultContext {
    /// The `-c` flags.
    pub flags: Vec<String>,
    pub loaded: LoadedConfig,
    pub process_env: ProcessEnv,
    pub access: VaultAccess,
    storage: Storage,
}

impl VaultContext {
    /// Reads the configuration. Opens neither the database nor the vault.
    pub fn load(flags: Vec<String>, owner: VaultOwner) -> Result<Self, Failure> {
        let process_env = ProcessEnv::from_process(flags.clone())?;
        let loaded = lango_config::load(&process_env)?;
        let roster = Roster::read(&loaded, &process_env.cwd)?;
        let root = roster.topology.as_ref();
        let root = root.map_or(Tree::SINGLE, |topology| topology.root.as_str());
        let storage = Storage::from_settings(&loaded.settings.session, AgentName::from(root))?;
        let access =
            VaultAccess::new(&loaded, &process_env, &storage).without_echo_between_prompts();
        let access = match owner {
            VaultOwner::User => access,
            VaultOwner::Server => access.for_user(loaded.settings.server.user.clone()),
        };
        Ok(Self {
            flags,
            loaded,
            process_env,
            access,
            storage,
        })
    }

    /// Returns what is needed to open the payments.
    pub fn payment_source(&self) -> PaymentSource<'_> {
        PaymentSource {
            loaded: &self.loaded,
            vault: self.access.clone(),
            storage: &self.storage,
            prompt_mode: PromptMode::Allowed,
            reports: None,
        }
    }

    /// Opens the vault, and creates it first if there is none.
    pub async fn open_or_create(&self) -> Result<OpenVault, Failure> {
        match self.access.read(RecordSelection::None).await? {
            Some(_) => self.access.open(PromptMode::Allowed).await,
            None => methods::create_by_default(self).await,
        }
    }
}
