//! The secrets of the users of this process: opens each user's vault when it is first needed, and keeps it open.

use super::{Asking, Opening, Places, VaultAccess, can_ask};
use crate::exit::Failure;
use lango_core::{BoxFuture, Clock, RecordSelection, Text, UserId};
use lango_engine::SystemClock;
use lango_secrets::{
    Binding, BoundSecret, Masks, SecretError, SecretName, SecretSource, SecretStatus, SecretUser,
    SecretValue,
};
use lango_vault::{Entry, OpenVault, SealedVault, SecretField, VaultError, VaultProvider};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Interval within which the audit log has one entry for equal uses or blocked placeholders. A single push makes dozens of requests.
const USE_INTERVAL: Duration = Duration::from_secs(60);

/// A use of a secret for a binding; without one for a placeholder that was blocked.
type UseKey = (SecretUser, SecretName, Option<Binding>);

/// Maximum number of uses to remember.
const MOST_USES: usize = 1_000;

/// The vaults of all users of this process.
pub struct UserVaults {
    access: VaultAccess,
    masks: Masks,
    /// The open vaults. The lock is held while one is unlocked, so that no user is unlocked twice at once.
    open: tokio::sync::Mutex<HashMap<UserId, Arc<OpenVault>>>,
    uses: Mutex<BTreeMap<UseKey, Instant>>,
    /// The versions of bound secrets whose values are masked.
    masked: Mutex<BTreeMap<(UserId, SecretName), u64>>,
    /// Values that the user typed for calls that run next.
    typed: Mutex<HashMap<String, SecretValue>>,
    /// The places where values can be used here.
    places: OnceLock<Places>,
    /// The users who did not unlock their vaults when a command or an MCP server needed it.
    declined: Mutex<BTreeSet<UserId>>,
    /// Whether the command that runs here asks the user at the terminal.
    is_interactive: AtomicBool,
}

impl UserVaults {
    /// Creates the vaults over the unlock methods of `access`. Opens none yet.
    pub fn new(access: VaultAccess, masks: Masks) -> Self {
        Self {
            access,
            masks,
            open: tokio::sync::Mutex::default(),
            uses: Mutex::default(),
            masked: Mutex::default(),
            typed: Mutex::default(),
            places: OnceLock::new(),
            declined: Mutex::default(),
            is_interactive: AtomicBool::new(false),
        }
    }

    /// Lets tools ask for passphrases and values at the terminal, for a command that asks the user there.
    pub fn allow_prompts(&self) {
        self.is_interactive.store(can_ask(), Ordering::Relaxed);
    }

    /// Sets the places where values can be used. Later calls change nothing.
    pub fn set_places(&self, places: Places) {
        // The tools of a process do not change.
        let _ = self.places.set(places);
    }

    /// Returns the arguments of tools that can be bound.
    pub fn fields(&self) -> Vec<SecretField> {
        let places = self.places.get();
        places.map_or_else(Vec::new, |places| places.fields().to_vec())
    }

    /// Checks the place of a binding as [`Places::check`] does. Before the places are set every place is accepted.
    pub fn check_place(&self, binding: &Binding) -> Result<Option<String>, String> {
        let places = self.places.get();
        places.map_or(Ok(None), |places| places.check(binding))
    }

    pub(super) fn access(&self) -> &VaultAccess {
        &self.access
    }

    pub(super) async fn keep_open(&self, user: &UserId, vault: OpenVault) {
        let mut open = self.open.lock().await;
        open.insert(user.clone(), Arc::new(vault));
    }

    /// Remembers that a user did not unlock the vault for a command or an MCP server.
    pub(super) fn decline(&self, user: &UserId) {
        let mut declined = self.declined.lock().unwrap_or_else(PoisonError::into_inner);
        declined.insert(user.clone());
    }

    fn has_declined(&self, user: &UserId) -> bool {
        let declined = self.declined.lock().unwrap_or_else(PoisonError::into_inner);
        declined.contains(user)
    }

    /// Keeps a value that the user typed until the call with this key runs.
    pub(super) fn keep_typed(&self, call: String, value: SecretValue) {
        let mut typed = self.typed.lock().unwrap_or_else(PoisonError::into_inner);
        typed.insert(call, value);
    }

    /// Reads a user's vault without unlocking it; `None` if there is none.
    pub async fn sealed(
        &self,
        user: &UserId,
        records: RecordSelection,
    ) -> Result<Option<SealedVault>, SecretError> {
        let access = self.access.for_user(user.clone());
        access.read(records).await.map_err(|error| failed(&error))
    }

    /// Returns a user's vault, opened by the methods of this machine. Fails if there is none, or if it needs a prompt.
    pub async fn opened(&self, user: &UserId) -> Result<Arc<OpenVault>, SecretError> {
        let mut open = self.open.lock().await;
        if let Some(vault) = open.get(user) {
            return Ok(Arc::clone(vault));
        }
        let access = self.access.for_user(user.clone());
        let sealed = access.read(RecordSelection::None).await;
        if sealed.map_err(|error| failed(&error))?.is_none() {
            return Err(absent(&access));
        }
        let opening = access.try_open(Asking::Never).await;
        match opening.map_err(|error| failed(&error))? {
            Opening::Open(vault) => {
                let vault = Arc::new(vault);
                open.insert(user.clone(), Arc::clone(&vault));
                Ok(vault)
            }
            Opening::Locked(locked) => Err(SecretError::Unavailable {
                detail: locked.line(),
            }),
        }
    }

    /// Opens a user's vault, and asks for the passphrase if nothing else unlocks it.
    pub async fn unlock(&self, user: &UserId) -> Result<(), Failure> {
        let mut open = self.open.lock().await;
        if !open.contains_key(user) {
            let access = self.access.for_user(user.clone());
            let vault = access.open(Asking::Allowed).await?;
            open.insert(user.clone(), Arc::new(vault));
        }
        Ok(())
    }

    /// Closes a user's vault after its master key was replaced elsewhere.
    async fn close(&self, user: &UserId) {
        self.open.lock().await.remove(user);
    }

    /// Runs an operation on a user's vault; once more if the master key was replaced meanwhile.
    pub async fn with_open<T, F>(
        &self,
        user: &UserId,
        operation: impl Fn(Arc<OpenVault>) -> F,
    ) -> Result<T, UseError>
    where
        F: Future<Output = Result<T, VaultError>>,
    {
        let vault = self.opened(user).await.map_err(UseError::Secret)?;
        match operation(vault).await {
            Err(VaultError::KeyOutdated | VaultError::Absent) => {
                self.close(user).await;
                let vault = self.opened(user).await.map_err(UseError::Secret)?;
                operation(vault).await.map_err(UseError::Vault)
            }
            result => result.map_err(UseError::Vault),
        }
    }

    /// Returns whether the same use was recorded within [`USE_INTERVAL`].
    fn is_recorded(&self, key: &UseKey) -> bool {
        let uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        let at = uses.get(key);
        at.is_some_and(|at| at.elapsed() < USE_INTERVAL)
    }

    fn remember_use(&self, key: UseKey) {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        if uses.len() >= MOST_USES {
            uses.retain(|_, at| at.elapsed() < USE_INTERVAL);
        }
        if uses.len() < MOST_USES {
            uses.insert(key, Instant::now());
        }
    }

    async fn find(&self, user: &UserId, tool: &str) -> Result<Vec<BoundSecret>, SecretError> {
        let is_bound = |entry: &&Entry| {
            let mut tools = entry.bindings.iter().map(|binding| &*binding.tool);
            tools.any(|own| own == tool)
        };
        let sealed = self.sealed(user, RecordSelection::None).await?;
        // What nothing claims to be bound to needs no unlocking.
        if !sealed.is_some_and(|sealed| sealed.entries().any(|entry| is_bound(&entry))) {
            return Ok(Vec::new());
        }
        let entries = self.with_open(user, async |vault| vault.entries().await);
        let entries = entries.await.map_err(UseError::into_secret_error)?;
        self.mask_bound(user, &entries).await?;
        let bound = entries.iter().flat_map(|entry| bound_to(entry, tool));
        Ok(bound.collect())
    }

    /// Masks the values of all bound secrets before anything that could echo one runs: a server may show what another
    /// process sent.
    async fn mask_bound(&self, user: &UserId, entries: &[Entry]) -> Result<(), SecretError> {
        for entry in entries.iter().filter(|entry| !entry.bindings.is_empty()) {
            let key = (user.clone(), entry.name.clone());
            let known = {
                let masked = self.masked.lock().unwrap_or_else(PoisonError::into_inner);
                masked.get(&key).copied()
            };
            if known == Some(entry.version) {
                continue;
            }
            let value = self.with_open(user, async |vault| vault.value(&entry.name).await);
            match value.await {
                Ok(value) => self.masks.add(entry.name.as_str(), &value),
                // It cannot be used either.
                Err(UseError::Vault(VaultError::Expired { .. } | VaultError::NotFound { .. })) => {}
                Err(error) => return Err(error.about(&entry.name)),
            }
            let mut masked = self.masked.lock().unwrap_or_else(PoisonError::into_inner);
            masked.insert(key, entry.version);
        }
        Ok(())
    }

    async fn value(
        &self,
        by: &SecretUser,
        secret: &BoundSecret,
    ) -> Result<Arc<SecretValue>, SecretError> {
        let BoundSecret { name, binding } = secret;
        let key = (by.clone(), name.clone(), Some(binding.clone()));
        let is_recorded = self.is_recorded(&key);
        let value = self.with_open(&by.user, async |vault| {
            let value = vault.bound_value(name, binding).await?;
            if !is_recorded {
                acting_as(vault, by).log_use(name, binding).await?;
            }
            Ok(value)
        });
        let value = value.await.map_err(|error| error.about(name))?;
        if !is_recorded {
            self.remember_use(key);
        }
        self.masks.add(name.as_str(), &value);
        Ok(Arc::new(value))
    }
}

impl SecretSource for UserVaults {
    fn bound<'a>(
        &'a self,
        user: &'a UserId,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<Vec<BoundSecret>, SecretError>> {
        Box::pin(self.find(user, tool))
    }

    fn resolve<'a>(
        &'a self,
        by: &'a SecretUser,
        secret: &'a BoundSecret,
    ) -> BoxFuture<'a, Result<Arc<SecretValue>, SecretError>> {
        Box::pin(self.value(by, secret))
    }

    fn log_blocked<'a>(
        &'a self,
        by: &'a SecretUser,
        name: &'a SecretName,
        place: &'a str,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // One entry for all places: an agent must not be able to fill the log.
            let key = (by.clone(), name.clone(), None);
            if self.is_recorded(&key) {
                return;
            }
            self.remember_use(key);
            let logged = self.with_open(&by.user, async |vault| {
                let vault = acting_as(vault, by);
                vault.log_blocked(name, place).await
            });
            let _ = logged.await;
        })
    }

    fn status<'a>(
        &'a self,
        user: &'a UserId,
        name: &'a SecretName,
    ) -> BoxFuture<'a, Result<SecretStatus, SecretError>> {
        Box::pin(async move {
            let sealed = self.sealed(user, RecordSelection::None).await?;
            let now = SystemClock.now();
            let entry = sealed.iter().flat_map(|sealed| sealed.entries());
            let entry = entry.into_iter().find(|entry| entry.name == *name);
            Ok(match entry {
                None => SecretStatus::Missing,
                Some(entry) if entry.is_expired(now) => SecretStatus::Expired,
                Some(_) => SecretStatus::Stored,
            })
        })
    }

    fn locked<'a>(&'a self, user: &'a UserId, tool: &'a str) -> BoxFuture<'a, Vec<BoundSecret>> {
        Box::pin(async move {
            if !self.can_prompt() || self.has_declined(user) {
                return Vec::new();
            }
            let sealed = self.sealed(user, RecordSelection::None).await;
            let sealed = sealed.ok().flatten();
            let entries = sealed.iter().flat_map(|sealed| sealed.entries());
            let bound: Vec<_> = entries.flat_map(|entry| bound_to(entry, tool)).collect();
            // What nothing claims to be bound to needs no unlocking.
            if bound.is_empty() || self.opened(user).await.is_ok() {
                return Vec::new();
            }
            bound
        })
    }
}

/// Returns the bindings of an entry for a tool.
fn bound_to(entry: &Entry, tool: &str) -> impl Iterator<Item = BoundSecret> {
    let own = entry.bindings.iter().filter(move |own| *own.tool == *tool);
    own.map(|binding| BoundSecret {
        name: entry.name.clone(),
        binding: binding.clone(),
    })
}

impl VaultProvider for UserVaults {
    fn sealed<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<Option<SealedVault>, SecretError>> {
        Box::pin(self.sealed(user, RecordSelection::None))
    }

    fn open<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<Arc<OpenVault>, SecretError>> {
        Box::pin(async move {
            // Reading the methods authenticates the head with the key.
            let open = self.with_open(user, async |vault| vault.methods().await.map(|_| vault));
            open.await.map_err(UseError::into_secret_error)
        })
    }

    fn can_prompt(&self) -> bool {
        self.is_interactive.load(Ordering::Relaxed)
    }

    fn take_typed(&self, call: &str) -> Option<SecretValue> {
        let mut typed = self.typed.lock().unwrap_or_else(PoisonError::into_inner);
        typed.remove(call)
    }

    fn fields(&self) -> Vec<SecretField> {
        self.fields()
    }

    fn check_place(&self, binding: &Binding) -> Result<Option<String>, String> {
        self.check_place(binding)
    }
}

/// A failed operation on a user's vault.
#[derive(Debug)]
pub enum UseError {
    /// The vault cannot be opened.
    Secret(SecretError),
    /// The operation failed.
    Vault(VaultError),
}

impl UseError {
    fn into_secret_error(self) -> SecretError {
        match self {
            Self::Secret(error) => error,
            Self::Vault(error) => SecretError::Unavailable {
                detail: error.to_string(),
            },
        }
    }

    fn about(self, secret: &SecretName) -> SecretError {
        let name = secret.clone();
        match self {
            Self::Vault(VaultError::NotBound { .. }) => SecretError::NotBound { name },
            Self::Vault(
                error @ (VaultError::NotFound { .. }
                | VaultError::Expired { .. }
                | VaultError::RolledBack { .. }
                | VaultError::RecordChanged { .. }
                | VaultError::RecordMissing { .. }),
            ) => SecretError::Unusable {
                name,
                detail: describe_unusable(&error, secret),
            },
            error => error.into_secret_error(),
        }
    }
}

/// Describes why a secret cannot be used, with the next step.
pub(super) fn describe_unusable(error: &VaultError, name: &SecretName) -> String {
    match error {
        VaultError::Expired { .. } => {
            format!("{error}; `lango secrets rotate {name}` gives it a new value")
        }
        VaultError::NotFound { .. } => {
            format!("{error}; `lango secrets set {name}` stores it")
        }
        error => error.to_string(),
    }
}

/// Returns the vault with the actor that its audit log names.
fn acting_as(vault: Arc<OpenVault>, by: &SecretUser) -> Arc<OpenVault> {
    match &by.actor {
        Some(actor) => Arc::new(vault.acting_as(Text::clone(actor))),
        None => vault,
    }
}

fn absent(access: &VaultAccess) -> SecretError {
    SecretError::Unavailable {
        detail: format!(
            "there is no vault yet; the user can make it with `{} init`",
            access.command()
        ),
    }
}

fn failed(error: &Failure) -> SecretError {
    let detail = error.to_string().replace("\n  next: ", "; ");
    SecretError::Unavailable { detail }
}

impl fmt::Debug for UserVaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserVaults").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
