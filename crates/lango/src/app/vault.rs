//! The vault on this machine: unlocks it through the configuration, the environment, the desktop's keyring or the
//! terminal, and caches the unlock.

mod addresses;
pub mod bindings;
mod cache;
mod context;
mod credentials;
mod entries;
mod expiry;
mod failed_unlocks;
mod grants;
pub mod import;
mod keyring;
mod locked;
pub mod methods;
mod passphrase;
mod places;
mod programs;
mod prompt;
mod prompts;
mod references;
mod source;

pub use addresses::derive_address;
pub use context::{VaultContext, VaultOwner};
pub use credentials::{CredentialParts, Credentials};
pub use entries::{
    check_token, describe_contents, describe_stored, existing_entry, find_entry,
    lost_expiry_warning, remove_secret,
};
pub use expiry::Expiry;
pub use grants::encrypt as encrypt_grants;
pub use keyring::OsKeyring;
pub use locked::LockedVault;
pub use places::{BindingPlaces, no_server, server_fields};
pub use programs::program_warnings;
pub use prompt::{EchoGuard, can_ask, new_passphrase, read_confirmed, read_hidden, read_piped};
pub use prompts::{read_secret_value, read_typed, warn_if_short};
pub use references::{SERVER_TOKEN, key_settings, secret_of};
pub use source::UserVaults;

use crate::app::failure::Failure;
use crate::app::notice::notice;
use crate::app::sessions::Storage;
use failed_unlocks::FailedUnlocks;
use lango_config::{LoadedConfig, ProcessEnv, SERVER_VAULT_PASSPHRASE, StoreLocation};
use lango_core::{RecordSelection, UserId, VaultEvent, VaultStore};
use lango_engine::SystemClock;
use lango_vault::{
    MethodKind, OpenVault, SealedVault, SecretValue, UnlockSecret, Vault, VaultError, VaultParts,
    key_file,
};
use std::path::PathBuf;
use std::sync::Arc;

/// The command for the vault of `session.user`.
pub const OWN_COMMAND: &str = "lango secrets";

/// The command for the vault of `server.user`.
const SERVER_COMMAND: &str = "lango secrets --server";

/// Maximum number of passphrase prompts.
pub const MAX_TRIES: usize = 3;

/// Whether lango may prompt for the passphrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptMode {
    /// Prompt at a terminal, if there is one.
    Allowed,
    /// Prompt at a terminal; an empty line leaves the vault locked, and the command continues.
    AllowedOrDeclined,
    /// Prompt at a terminal; the command itself prints how long the unlock lasts.
    AllowedForUnlock,
    /// Never prompt; a vault that needs a prompt stays locked.
    Never,
}

/// The result of opening a vault.
pub enum OpenResult {
    Open(OpenVault),
    /// No available method unlocks it.
    Locked(LockedVault),
}

/// The vault of the configured user, with the available unlock methods.
#[derive(Clone)]
pub struct VaultAccess {
    pub vault: Vault,
    /// The location of the database.
    location: StoreLocation,
    /// Whether the database is the default one.
    is_default_location: bool,
    /// The passphrase in the environment for the vault of `own_user`.
    own_passphrase: Option<Arc<SecretValue>>,
    /// The passphrase in the environment for other vaults.
    server_passphrase: Option<Arc<SecretValue>>,
    /// `vault.keyFile`.
    pub key_file: Option<PathBuf>,
    pub keyring: OsKeyring,
    /// The user whose vault commands without `--server` use.
    own_user: UserId,
    /// Secrets that failed to unlock a vault in this process.
    failed: Arc<FailedUnlocks>,
    /// The guard that keeps the terminal's echo off between the prompts of a command.
    echo_guard: Option<EchoGuard>,
}

impl VaultAccess {
    /// Creates the access to the vault in this database. Reads nothing yet.
    pub fn new(loaded: &LoadedConfig, process_env: &ProcessEnv, storage: &Storage) -> Self {
        Self {
            vault: vault_of(loaded, storage),
            location: loaded.settings.session.store.clone(),
            is_default_location: is_default(loaded),
            own_passphrase: process_env.vault_passphrase.clone(),
            server_passphrase: process_env.server_vault_passphrase.clone(),
            key_file: loaded.settings.vault.key_file.clone(),
            keyring: OsKeyring::new(&process_env.env),
            own_user: loaded.settings.session.user.clone(),
            failed: Arc::default(),
            echo_guard: None,
        }
    }

    /// Returns this access for a command with several prompts. The echo stays off between them until the access is
    /// dropped.
    pub fn without_echo_between_prompts(self) -> Self {
        Self {
            echo_guard: Some(EchoGuard::default()),
            ..self
        }
    }

    /// Returns the echo guard for the next prompt.
    pub fn echo_guard(&self) -> EchoGuard {
        self.echo_guard.clone().unwrap_or_default()
    }

    /// Returns the access to another user's vault with the same unlock methods.
    pub fn for_user(&self, user: UserId) -> Self {
        Self {
            vault: self.vault.of_user(user),
            ..self.clone()
        }
    }

    /// Returns whether this is the vault of commands without `--server`.
    fn is_own(&self) -> bool {
        *self.vault.user() == self.own_user
    }

    /// Returns the display name of the vault, without an article: "vault of `ann`". It includes the database if that
    /// is not the default one.
    pub fn name(&self) -> String {
        let user = self.vault.user();
        let name = if self.is_own() {
            format!("vault of `{user}`")
        } else {
            format!("vault of the server (`{user}`)")
        };
        if self.is_default_location {
            name
        } else {
            format!("{name} in {}", self.location)
        }
    }

    /// Returns the start of commands for this vault: `lango secrets`, with `--server` if needed.
    pub fn command(&self) -> &'static str {
        if self.is_own() {
            OWN_COMMAND
        } else {
            SERVER_COMMAND
        }
    }

    /// Converts an error and adds the name of this vault.
    fn failure(&self, error: VaultError) -> Failure {
        Failure::from(error).with_vault_name(&self.name())
    }

    /// Reads the vault without unlocking it; `None` if there is none. Never creates a database.
    pub async fn read(&self, records: RecordSelection) -> Result<Option<SealedVault>, Failure> {
        if is_missing(&self.location) {
            return Ok(None);
        }
        let sealed = self.vault.read(records).await;
        sealed.map_err(|error| self.failure(error))
    }

    /// Reads the vault without unlocking it; fails if there is none.
    pub async fn sealed(&self) -> Result<SealedVault, Failure> {
        let sealed = self.read(RecordSelection::None).await?;
        sealed.ok_or_else(|| self.failure(VaultError::Absent))
    }

    /// Returns the newest entries of the audit log.
    pub async fn events(&self, limit: usize) -> Result<Vec<VaultEvent>, Failure> {
        if is_missing(&self.location) {
            return Ok(Vec::new());
        }
        let events = self.vault.events(limit).await;
        events.map_err(|error| self.failure(error))
    }

    /// Opens the vault with the cached unlock, the environment, the key file, the desktop's keyring, or a prompt, in
    /// this order.
    pub async fn open(&self, prompt_mode: PromptMode) -> Result<OpenVault, Failure> {
        match self.try_open(prompt_mode).await? {
            OpenResult::Open(open) => Ok(open),
            OpenResult::Locked(locked) => Err(locked.into()),
        }
    }

    /// Opens the vault like [`open`](Self::open), but returns [`OpenResult::Locked`] if no method works. If a method
    /// fails, the next one is tried; only a wrong passphrase in the environment ends the search.
    pub async fn try_open(&self, prompt_mode: PromptMode) -> Result<OpenResult, Failure> {
        let sealed = self.sealed().await?;
        let opening = self.try_methods(&sealed, prompt_mode).await?;
        if let OpenResult::Open(open) = &opening {
            addresses::add_missing(&sealed, open).await;
        }
        Ok(opening)
    }

    async fn try_methods(
        &self,
        sealed: &SealedVault,
        prompt_mode: PromptMode,
    ) -> Result<OpenResult, Failure> {
        // An explicit unlock skips the cache: otherwise its time would not start again, and a wrong passphrase would
        // go unnoticed.
        if prompt_mode != PromptMode::AllowedForUnlock
            && let Some(open) = self.open_cached(sealed).await?
        {
            return Ok(OpenResult::Open(open));
        }
        let has = |kind| sealed.methods().iter().any(|method| method.kind() == kind);
        let mut problems = Vec::new();
        if let Some(passphrase) = self.passphrase().filter(|_| has(MethodKind::Passphrase)) {
            match self.attempt(sealed, passphrase.secret()).await {
                Ok(open) => return Ok(OpenResult::Open(open)),
                Err(VaultError::WrongSecret { .. }) if passphrase.is_fallback => {
                    problems.push(format!(
                        "{} does not unlock the {}; if its passphrase is different, set {SERVER_VAULT_PASSPHRASE}",
                        passphrase.variable,
                        self.name()
                    ));
                }
                Err(VaultError::WrongSecret { .. }) => {
                    let locked = LockedVault::new(self, sealed, Vec::new());
                    return Ok(OpenResult::Locked(locked.with_wrong_passphrase()));
                }
                Err(error) => return Err(self.failure(error)),
            }
        }
        for secret in self.stored_secrets(sealed, &mut problems) {
            match self.attempt(sealed, secret).await {
                Ok(open) => return Ok(OpenResult::Open(open)),
                Err(error @ (VaultError::WrongSecret { .. } | VaultError::NoMethod { .. })) => {
                    problems.push(self.failure(error).message());
                }
                Err(error) => return Err(self.failure(error)),
            }
        }
        let can_ask = prompt_mode != PromptMode::Never && can_ask();
        if can_ask && has(MethodKind::Passphrase) {
            problems.iter().for_each(|problem| notice(problem));
            let empty = match prompt_mode {
                PromptMode::AllowedOrDeclined => EmptyAnswer::Declines,
                _ => EmptyAnswer::Tried,
            };
            let open = self.ask(empty).await?;
            // Without a cache each command asks; that is not an error.
            let is_cached = self.cache_unlock(sealed, &open);
            if is_cached && prompt_mode != PromptMode::AllowedForUnlock {
                notice(&self.cache_notice());
            }
            return Ok(OpenResult::Open(open));
        }
        Ok(OpenResult::Locked(LockedVault::new(self, sealed, problems)))
    }

    /// Unlocks the vault with a secret of this machine, unless the same secret has already failed.
    async fn attempt(
        &self,
        sealed: &SealedVault,
        secret: UnlockSecret,
    ) -> Result<OpenVault, VaultError> {
        let method = secret.kind();
        if self.failed.contains(sealed, &secret) {
            return Err(VaultError::WrongSecret { method });
        }
        let tried = secret.duplicate();
        let unlocked = self.vault.unlock(secret).await;
        if let Err(VaultError::WrongSecret { .. }) = &unlocked {
            self.failed.add(sealed, tried);
        }
        unlocked
    }

    /// Returns a message that says how long a cached unlock lasts.
    pub fn cache_notice(&self) -> String {
        let (name, command) = (self.name(), self.command());
        format!(
            "the {name} is unlocked for 15 minutes in this login session; run `{command} lock` to lock it"
        )
    }

    /// Caches the unlock. Returns whether this system supports that.
    pub fn cache_unlock(&self, sealed: &SealedVault, open: &OpenVault) -> bool {
        cache::store(sealed.id(), open.master())
    }

    /// Removes the cached unlock. Returns whether there was one.
    pub fn clear_cached_unlock(&self, sealed: &SealedVault) -> bool {
        cache::remove(sealed.id())
    }

    /// Returns the keys that this machine stores for unlock methods.
    pub fn stored_secrets(
        &self,
        sealed: &SealedVault,
        problems: &mut Vec<String>,
    ) -> Vec<UnlockSecret> {
        let has = |kind| sealed.methods().iter().any(|method| method.kind() == kind);
        let mut secrets = Vec::new();
        if let Some(path) = &self.key_file {
            match key_file::read(path) {
                Ok(key) => secrets.push(UnlockSecret::KeyFile(key)),
                Err(error) => problems.push(error.to_string()),
            }
        }
        if has(MethodKind::Keyring) {
            match self.keyring.lookup(sealed.id()) {
                Ok(key) => secrets.push(UnlockSecret::Keyring(key)),
                Err(problem) => problems.push(problem),
            }
        }
        secrets
    }

    async fn open_cached(&self, sealed: &SealedVault) -> Result<Option<OpenVault>, Failure> {
        let Some(master) = cache::load(sealed.id()) else {
            return Ok(None);
        };
        match self.vault.open(master).await {
            Err(VaultError::KeyOutdated) => {
                cache::remove(sealed.id());
                Ok(None)
            }
            open => open.map(Some).map_err(|error| self.failure(error)),
        }
    }

    /// Prompts for the passphrase, up to [`MAX_TRIES`] times if it is wrong.
    async fn ask(&self, empty: EmptyAnswer) -> Result<OpenVault, Failure> {
        let (name, echo_guard) = (self.name(), self.echo_guard());
        let mut tries = 1;
        loop {
            let typed = read_hidden(&echo_guard, &format!("passphrase of the {name}: ")).await?;
            if typed.is_empty() && empty == EmptyAnswer::Declines {
                return Err(Failure::config("no passphrase was typed"));
            }
            match self.vault.unlock(UnlockSecret::Passphrase(typed)).await {
                Err(error @ VaultError::WrongSecret { .. }) if tries < MAX_TRIES => {
                    tries += 1;
                    notice(&format!("{}; try again", self.failure(error).message()));
                }
                unlocked => return unlocked.map_err(|error| self.failure(error)),
            }
        }
    }
}

/// What an empty line at a passphrase prompt means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EmptyAnswer {
    /// It is tried like any other passphrase.
    Tried,
    /// The vault stays locked.
    Declines,
}

/// Returns whether the database is the default one.
fn is_default(loaded: &LoadedConfig) -> bool {
    let location = &loaded.settings.session.store;
    matches!(location, StoreLocation::Sqlite(path) if *path == loaded.paths.database())
}

/// Returns the vault of the configured user in this database, without opening it.
fn vault_of(loaded: &LoadedConfig, storage: &Storage) -> Vault {
    let uid = rustix::process::getuid().as_raw();
    Vault::new(VaultParts {
        store: Arc::clone(&storage.database) as Arc<dyn VaultStore>,
        clock: Arc::new(SystemClock),
        owner: loaded.settings.session.user.clone(),
        actor: format!("command line of uid {uid}").into(),
    })
}

/// Returns whether there is no database yet. An empty file counts as none: a first use that ran out of disk space
/// leaves one behind.
fn is_missing(location: &StoreLocation) -> bool {
    let StoreLocation::Sqlite(path) = location else {
        return false;
    };
    match path.metadata() {
        Ok(found) => found.is_file() && found.len() == 0,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}
