//! The vault on this machine: unlocks it through the configuration, the environment, the desktop's keyring or the
//! terminal, and caches the unlock.

mod addresses;
mod cache;
mod credentials;
mod failed_unlocks;
mod grants;
mod keyring;
mod locked;
mod passphrase;
mod places;
mod prompt;
mod prompts;
mod references;
mod source;

pub use addresses::derive_address;
pub use credentials::{CredentialParts, Credentials};
pub use grants::encrypt as encrypt_grants;
pub use keyring::OsKeyring;
pub use locked::Locked;
pub use places::{Places, no_server, server_fields};
pub use prompt::{Silence, can_ask, new_passphrase, read_confirmed, read_hidden, read_piped};
pub use prompts::{typed, typed_value, warn_if_short};
pub use references::{SERVER_TOKEN, key_settings, secret_of};
pub use source::UserVaults;

use crate::config::{Loaded, SERVER_VAULT_PASSPHRASE, StoreLocation, Surroundings};
use crate::exit::{Exit, Failure};
use crate::screen;
use crate::sessions::Kept;
use failed_unlocks::FailedUnlocks;
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
pub const TRIES: usize = 3;

/// Whether lango may prompt for the passphrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// At a terminal, if there is one.
    Allowed,
    /// At a terminal, for a command that goes on with a locked vault after an empty line.
    AllowedOrDeclined,
    /// At a terminal, by a command that says itself how long the unlock lasts.
    AllowedForUnlock,
    /// Never: a vault that needs a prompt stays locked.
    Never,
}

/// The result of opening a vault.
pub enum Opening {
    /// It is open.
    Open(OpenVault),
    /// No available method unlocks it.
    Locked(Locked),
}

/// The vault of the configured user, with the available unlock methods.
#[derive(Clone)]
pub struct VaultAccess {
    /// The vault.
    pub vault: Vault,
    /// The location of the database.
    place: StoreLocation,
    /// Whether the database is the one that is used if nothing is configured.
    is_default_place: bool,
    /// The passphrase of the environment for the vault of `own_user`.
    own_passphrase: Option<Arc<SecretValue>>,
    /// The passphrase of the environment for other vaults.
    server_passphrase: Option<Arc<SecretValue>>,
    /// `vault.keyFile`.
    pub key_file: Option<PathBuf>,
    /// The keyring of the desktop.
    pub keyring: OsKeyring,
    /// The user of the commands without `--server`.
    own_user: UserId,
    /// The unlocks that failed in this process.
    failed: Arc<FailedUnlocks>,
    /// Keeps the echo of the terminal off from the first prompt to the last one.
    silence: Option<Silence>,
}

impl VaultAccess {
    /// Creates the access to the vault in this database. Reads nothing yet.
    pub fn new(loaded: &Loaded, surroundings: &Surroundings, kept: &Kept) -> Self {
        Self {
            vault: vault_of(loaded, kept),
            place: loaded.settings.session.store.clone(),
            is_default_place: is_default(loaded),
            own_passphrase: surroundings.vault_passphrase.clone(),
            server_passphrase: surroundings.server_vault_passphrase.clone(),
            key_file: loaded.settings.vault.key_file.clone(),
            keyring: OsKeyring::new(&surroundings.env),
            own_user: loaded.settings.session.user.clone(),
            failed: Arc::default(),
            silence: None,
        }
    }

    /// Returns the same for a command with several prompts: the echo stays off between them, until this is dropped.
    pub fn silent_between_prompts(self) -> Self {
        Self {
            silence: Some(Silence::default()),
            ..self
        }
    }

    /// Returns the silence for the next prompt.
    pub fn silence(&self) -> Silence {
        self.silence.clone().unwrap_or_default()
    }

    /// Returns the access to another user's vault by the same unlock methods.
    pub fn for_user(&self, user: UserId) -> Self {
        Self {
            vault: self.vault.of_user(user),
            ..self.clone()
        }
    }

    /// Returns whether it is the vault of the commands without `--server`.
    fn is_own(&self) -> bool {
        *self.vault.user() == self.own_user
    }

    /// Returns the name of the vault for people, without an article: "vault of `ann`". It has the database if that is not
    /// the default one.
    pub fn name(&self) -> String {
        let user = self.vault.user();
        let name = if self.is_own() {
            format!("vault of `{user}`")
        } else {
            format!("vault of the server (`{user}`)")
        };
        if self.is_default_place {
            name
        } else {
            format!("{name} in {}", self.place)
        }
    }

    /// Returns the beginning of the commands that work on this vault: `lango secrets`, or with `--server`.
    pub fn command(&self) -> &'static str {
        if self.is_own() {
            OWN_COMMAND
        } else {
            SERVER_COMMAND
        }
    }

    /// Returns an error with the name of this vault.
    fn failure(&self, error: VaultError) -> Failure {
        Failure::from(error).of_vault(&self.name())
    }

    /// Reads the locked vault; `None` if there is none. Creates no database.
    pub async fn read(&self, records: RecordSelection) -> Result<Option<SealedVault>, Failure> {
        if is_missing(&self.place) {
            return Ok(None);
        }
        let sealed = self.vault.read(records).await;
        sealed.map_err(|error| self.failure(error))
    }

    /// Reads the locked vault; fails if there is none.
    pub async fn sealed(&self) -> Result<SealedVault, Failure> {
        let sealed = self.read(RecordSelection::None).await?;
        sealed.ok_or_else(|| self.failure(VaultError::Absent))
    }

    /// Returns the newest entries of the audit log.
    pub async fn events(&self, limit: usize) -> Result<Vec<VaultEvent>, Failure> {
        if is_missing(&self.place) {
            return Ok(Vec::new());
        }
        let events = self.vault.events(limit).await;
        events.map_err(|error| self.failure(error))
    }

    /// Opens the vault with the cached unlock, the environment, the key file, the desktop's keyring, or a prompt, in
    /// this order.
    pub async fn open(&self, asking: Asking) -> Result<OpenVault, Failure> {
        match self.try_open(asking).await? {
            Opening::Open(open) => Ok(open),
            Opening::Locked(locked) => Err(locked.into()),
        }
    }

    /// Opens the vault like [`open`](Self::open), but returns [`Opening::Locked`] if no method works. A failing method
    /// falls through to the next one, except a wrong passphrase in the environment, which ends the search.
    pub async fn try_open(&self, asking: Asking) -> Result<Opening, Failure> {
        let sealed = self.sealed().await?;
        let opening = self.try_methods(&sealed, asking).await?;
        if let Opening::Open(open) = &opening {
            addresses::add_missing(&sealed, open).await;
        }
        Ok(opening)
    }

    async fn try_methods(&self, sealed: &SealedVault, asking: Asking) -> Result<Opening, Failure> {
        // An explicit unlock does not use the cache: its time would not start anew, and a wrong passphrase would not be noticed.
        if asking != Asking::AllowedForUnlock
            && let Some(open) = self.open_cached(sealed).await?
        {
            return Ok(Opening::Open(open));
        }
        let has = |kind| sealed.methods().iter().any(|method| method.kind() == kind);
        let mut problems = Vec::new();
        if let Some(passphrase) = self.passphrase().filter(|_| has(MethodKind::Passphrase)) {
            match self.attempt(sealed, passphrase.secret()).await {
                Ok(open) => return Ok(Opening::Open(open)),
                Err(VaultError::WrongSecret { .. }) if passphrase.is_borrowed => {
                    problems.push(format!(
                        "{} does not unlock the {}; if that has another passphrase, set {SERVER_VAULT_PASSPHRASE}",
                        passphrase.variable,
                        self.name()
                    ));
                }
                Err(VaultError::WrongSecret { .. }) => {
                    let locked = Locked::new(self, sealed, Vec::new());
                    return Ok(Opening::Locked(locked.with_wrong_passphrase()));
                }
                Err(error) => return Err(self.failure(error)),
            }
        }
        for secret in self.stored_secrets(sealed, &mut problems) {
            match self.attempt(sealed, secret).await {
                Ok(open) => return Ok(Opening::Open(open)),
                Err(error @ (VaultError::WrongSecret { .. } | VaultError::NoMethod { .. })) => {
                    problems.push(self.failure(error).message());
                }
                Err(error) => return Err(self.failure(error)),
            }
        }
        let can_ask = asking != Asking::Never && can_ask();
        if can_ask && has(MethodKind::Passphrase) {
            problems.iter().for_each(|problem| screen::say(problem));
            let empty = match asking {
                Asking::AllowedOrDeclined => EmptyAnswer::Declines,
                _ => EmptyAnswer::Tried,
            };
            let open = self.ask(empty).await?;
            // Without a cache each command asks; that is no error.
            let is_cached = self.remember(sealed, &open);
            if is_cached && asking != Asking::AllowedForUnlock {
                screen::say(&self.cache_notice());
            }
            return Ok(Opening::Open(open));
        }
        Ok(Opening::Locked(Locked::new(self, sealed, problems)))
    }

    /// Unlocks the vault with a secret that this machine has, unless it failed before.
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

    /// Says how long a cached unlock lasts.
    pub fn cache_notice(&self) -> String {
        let (name, command) = (self.name(), self.command());
        format!(
            "the {name} is unlocked for 15 minutes in this login session; `{command} lock` ends it"
        )
    }

    /// Caches the unlock. Returns whether this system supports it.
    pub fn remember(&self, sealed: &SealedVault, open: &OpenVault) -> bool {
        cache::store(sealed.id(), open.master())
    }

    /// Removes the cached unlock. Returns whether there was one.
    pub fn forget(&self, sealed: &SealedVault) -> bool {
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

    /// Prompts for the passphrase, and anew if it is wrong. Fails after [`TRIES`] times.
    async fn ask(&self, empty: EmptyAnswer) -> Result<OpenVault, Failure> {
        let (name, silence) = (self.name(), self.silence());
        let mut tries = 1;
        loop {
            let typed = read_hidden(&silence, &format!("passphrase of the {name}: ")).await?;
            if typed.is_empty() && empty == EmptyAnswer::Declines {
                return Err(Failure::new(Exit::Config, "no passphrase was typed"));
            }
            match self.vault.unlock(UnlockSecret::Passphrase(typed)).await {
                Err(error @ VaultError::WrongSecret { .. }) if tries < TRIES => {
                    tries += 1;
                    screen::say(&format!("{}; try again", self.failure(error).message()));
                }
                unlocked => return unlocked.map_err(|error| self.failure(error)),
            }
        }
    }
}

/// What an empty line at a passphrase prompt means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EmptyAnswer {
    /// It is tried like any other.
    Tried,
    /// The vault stays locked.
    Declines,
}

/// Returns whether the database is the one that is used if nothing is configured.
fn is_default(loaded: &Loaded) -> bool {
    let place = &loaded.settings.session.store;
    matches!(place, StoreLocation::Sqlite(path) if *path == loaded.paths.database())
}

/// Opens the vault of the configured user in this database.
fn vault_of(loaded: &Loaded, kept: &Kept) -> Vault {
    let uid = rustix::process::getuid().as_raw();
    Vault::new(VaultParts {
        store: Arc::clone(&kept.database) as Arc<dyn VaultStore>,
        clock: Arc::new(SystemClock),
        owner: loaded.settings.session.user.clone(),
        actor: format!("command line of uid {uid}").into(),
    })
}

/// Returns whether there is no database yet. A first use that ran out of disk space leaves an empty file.
fn is_missing(place: &StoreLocation) -> bool {
    let StoreLocation::Sqlite(path) = place else {
        return false;
    };
    match path.metadata() {
        Ok(found) => found.is_file() && found.len() == 0,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}
