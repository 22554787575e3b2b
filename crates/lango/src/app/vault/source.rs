//! The vaults of the users of this process: each is opened when it is first needed and stays open.

mod errors;
mod masks;

pub(super) use errors::{UseError, describe_unusable};

use super::{BindingPlaces, LockedVault, OpenResult, PromptMode, VaultAccess, can_ask};
use crate::app::failure::Failure;
use crate::app::notice::notice;
use errors::{missing_vault, unavailable};
use lango_core::{BoxFuture, Clock, RecordSelection, Text, UserId};
use lango_engine::SystemClock;
use lango_secrets::{
    Binding, BoundSecret, Masks, SecretError, SecretName, SecretSource, SecretStatus, SecretUser,
    SecretValue,
};
use lango_vault::{OpenVault, SealedVault, SecretEntry, SecretField, VaultError, VaultProvider};
use masks::MaskCheck;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Within this interval the audit log records equal uses or blocked placeholders only once, because a single `git
/// push` makes dozens of requests.
const USE_INTERVAL: Duration = Duration::from_secs(60);

/// A use of a secret for a binding; `None` stands for a blocked placeholder.
type UseKey = (SecretUser, SecretName, Option<Binding>);

/// Maximum number of uses to remember.
const MAX_USES: usize = 1_000;

/// Maximum number of problems to report in one process.
const MAX_REPORTS: usize = 50;

/// The vaults of all users of this process.
pub struct UserVaults {
    access: VaultAccess,
    masks: Masks,
    /// The open vaults. The lock is held during an unlock, so that a user's vault is never unlocked twice
    /// concurrently.
    open: tokio::sync::Mutex<HashMap<UserId, Arc<OpenVault>>>,
    uses: Mutex<BTreeMap<UseKey, Instant>>,
    mask_checks: Mutex<HashMap<UserId, MaskCheck>>,
    /// Values that the user typed for calls that are about to run.
    typed: Mutex<HashMap<String, SecretValue>>,
    /// Where bound secrets can be used.
    places: OnceLock<BindingPlaces>,
    /// Users who declined to unlock their vault for a command or an MCP server.
    declined: Mutex<BTreeSet<UserId>>,
    /// Whether this process prompts the user at the terminal.
    is_interactive: AtomicBool,
    /// The problems printed so far; `None` if this process does not print them.
    reported: Mutex<Option<BTreeSet<String>>>,
}

impl UserVaults {
    /// Creates the vaults with the unlock methods of `access`. Opens none yet.
    pub fn new(access: VaultAccess, masks: Masks) -> Self {
        Self {
            access,
            masks,
            open: tokio::sync::Mutex::default(),
            uses: Mutex::default(),
            mask_checks: Mutex::default(),
            typed: Mutex::default(),
            places: OnceLock::new(),
            declined: Mutex::default(),
            is_interactive: AtomicBool::new(false),
            reported: Mutex::default(),
        }
    }

    /// Starts printing problems with secrets on standard error, each once, because an agent may not report them to
    /// the user.
    pub fn print_problems(&self) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        reported.get_or_insert_default();
    }

    fn print_problem(&self, problem: &str) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reported) = reported.as_mut()
            && reported.len() < MAX_REPORTS
            && reported.insert(problem.to_owned())
        {
            notice(&format!("warning: a secret was not used: {problem}"));
        }
    }

    /// Prints the problem, if there is one, and returns the result.
    fn print_error<T>(&self, result: Result<T, SecretError>) -> Result<T, SecretError> {
        result.inspect_err(|error| self.print_problem(&error.to_string()))
    }

    /// Lets tools prompt for passphrases and values, for a command that is used at a terminal.
    pub fn allow_prompts(&self) {
        self.is_interactive.store(can_ask(), Ordering::Relaxed);
    }

    /// Sets where bound secrets can be used. Only the first call has an effect.
    pub fn set_places(&self, places: BindingPlaces) {
        // The tools of a process do not change.
        let _ = self.places.set(places);
    }

    /// Returns the tool arguments that can be bound.
    pub fn fields(&self) -> Vec<SecretField> {
        let places = self.places.get();
        places.map_or_else(Vec::new, |places| places.fields().to_vec())
    }

    /// Checks the place of a binding as [`BindingPlaces::check`] does. Until the places are set, every place is
    /// accepted.
    pub fn check_place(&self, binding: &Binding) -> Result<Option<String>, String> {
        let places = self.places.get();
        places.map_or(Ok(None), |places| places.check(binding))
    }

    pub(super) fn access(&self) -> &VaultAccess {
        &self.access
    }

    pub(super) async fn store_open(&self, user: &UserId, vault: OpenVault) {
        let mut open = self.open.lock().await;
        open.insert(user.clone(), Arc::new(vault));
    }

    /// Records that a user declined to unlock the vault for a command or an MCP server.
    pub(super) fn decline(&self, user: &UserId) {
        let mut declined = self.declined.lock().unwrap_or_else(PoisonError::into_inner);
        declined.insert(user.clone());
    }

    fn has_declined(&self, user: &UserId) -> bool {
        let declined = self.declined.lock().unwrap_or_else(PoisonError::into_inner);
        declined.contains(user)
    }

    /// Stores a typed value, for use when the call with this key runs.
    pub(super) fn store_typed(&self, call: String, value: SecretValue) {
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
        access
            .read(records)
            .await
            .map_err(|error| unavailable(&error))
    }

    /// Returns a user's vault, opened with the methods of this machine. Fails if there is none, or if it needs a
    /// prompt.
    pub async fn opened(&self, user: &UserId) -> Result<Arc<OpenVault>, SecretError> {
        let access = self.access.for_user(user.clone());
        let opened = self.try_opened(&access).await;
        match opened.map_err(|error| unavailable(&error))? {
            Some(Ok(vault)) => Ok(vault),
            Some(Err(locked)) => Err(SecretError::Unavailable {
                detail: locked.line(),
            }),
            None => Err(missing_vault(&access)),
        }
    }

    /// Returns the state of a user's vault if the methods of this machine do not open it; `None` if they do, or if
    /// the vault has no secrets.
    pub async fn locked_vault(&self, user: &UserId) -> Result<Option<LockedVault>, Failure> {
        let access = self.access.for_user(user.clone());
        let sealed = access.read(RecordSelection::None).await?;
        if sealed.is_none_or(|sealed| sealed.entries().next().is_none()) {
            return Ok(None);
        }
        let opened = self.try_opened(&access).await?;
        Ok(opened.and_then(Result::err))
    }

    /// Opens a vault with the methods of this machine and leaves it open; `None` if there is none.
    async fn try_opened(
        &self,
        access: &VaultAccess,
    ) -> Result<Option<Result<Arc<OpenVault>, LockedVault>>, Failure> {
        let user = access.vault.user();
        let mut open = self.open.lock().await;
        if let Some(vault) = open.get(user) {
            return Ok(Some(Ok(Arc::clone(vault))));
        }
        if access.read(RecordSelection::None).await?.is_none() {
            return Ok(None);
        }
        Ok(Some(match access.try_open(PromptMode::Never).await? {
            OpenResult::Open(vault) => {
                let vault = Arc::new(vault);
                open.insert(user.clone(), Arc::clone(&vault));
                Ok(vault)
            }
            OpenResult::Locked(locked) => Err(locked),
        }))
    }

    /// Opens a user's vault, prompting for the passphrase if no other method works. Fails if the user types an empty
    /// line.
    pub async fn unlock(&self, user: &UserId) -> Result<(), Failure> {
        let mut open = self.open.lock().await;
        if !open.contains_key(user) {
            let access = self.access.for_user(user.clone());
            let vault = access.open(PromptMode::AllowedOrDeclined).await?;
            open.insert(user.clone(), Arc::new(vault));
        }
        Ok(())
    }

    /// Closes a user's vault after another process replaced its master key.
    async fn close(&self, user: &UserId) {
        self.open.lock().await.remove(user);
    }

    /// Runs an operation on a user's vault; retries once if the master key was replaced meanwhile.
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
        if uses.len() >= MAX_USES {
            uses.retain(|_, at| at.elapsed() < USE_INTERVAL);
        }
        if uses.len() < MAX_USES {
            uses.insert(key, Instant::now());
        }
    }

    async fn find(&self, user: &UserId, tool: &str) -> Result<Vec<BoundSecret>, SecretError> {
        let is_bound = |entry: &&SecretEntry| {
            let mut tools = entry.bindings.iter().map(|binding| &*binding.tool);
            tools.any(|own| own == tool)
        };
        let sealed = self.sealed(user, RecordSelection::None).await?;
        // If no entry is bound to the tool, nothing has to be unlocked.
        let is_needed = |sealed: &SealedVault| sealed.entries().any(|entry| is_bound(&entry));
        let Some(sealed) = sealed.filter(is_needed) else {
            return Ok(Vec::new());
        };
        self.mask_all(user, sealed.version()).await?;
        let entries = self.with_open(user, async |vault| vault.entries().await);
        let entries = entries.await.map_err(UseError::into_secret_error)?;
        let bound = entries.iter().flat_map(|entry| bound_to(entry, tool));
        Ok(bound.collect())
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
        let value = value.await.map_err(|error| error.into_error_about(name))?;
        if !is_recorded {
            self.remember_use(key);
        }
        self.masks.add(name.as_str(), &value);
        Ok(Arc::new(value))
    }
}

impl SecretSource for UserVaults {
    fn bound_secrets<'a>(
        &'a self,
        user: &'a UserId,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<Vec<BoundSecret>, SecretError>> {
        Box::pin(async move { self.print_error(self.find(user, tool).await) })
    }

    fn resolve<'a>(
        &'a self,
        by: &'a SecretUser,
        secret: &'a BoundSecret,
    ) -> BoxFuture<'a, Result<Arc<SecretValue>, SecretError>> {
        Box::pin(async move { self.print_error(self.value(by, secret).await) })
    }

    fn load_masks<'a>(&'a self, user: &'a UserId, max_age: Duration) -> BoxFuture<'a, ()> {
        Box::pin(self.refresh_masks(user, max_age))
    }

    fn log_blocked<'a>(
        &'a self,
        by: &'a SecretUser,
        name: &'a SecretName,
        place: &'a str,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // One entry covers all places: an agent must not be able to fill the log.
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

    fn locked_secrets<'a>(
        &'a self,
        user: &'a UserId,
        tool: &'a str,
    ) -> BoxFuture<'a, Vec<BoundSecret>> {
        Box::pin(async move {
            if !self.can_prompt() || self.has_declined(user) {
                return Vec::new();
            }
            let sealed = self.sealed(user, RecordSelection::None).await;
            let sealed = sealed.ok().flatten();
            let entries = sealed.iter().flat_map(|sealed| sealed.entries());
            let bound: Vec<_> = entries.flat_map(|entry| bound_to(entry, tool)).collect();
            // If no entry is bound to the tool, nothing has to be unlocked.
            if bound.is_empty() || self.opened(user).await.is_ok() {
                return Vec::new();
            }
            bound
        })
    }

    fn report(&self, problem: &str) {
        self.print_problem(problem);
    }
}

/// Returns the bindings of an entry for a tool.
fn bound_to(entry: &SecretEntry, tool: &str) -> impl Iterator<Item = BoundSecret> {
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

    fn report(&self, problem: &str) {
        self.print_problem(problem);
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

/// Returns the vault with the actor to record in its audit log.
fn acting_as(vault: Arc<OpenVault>, by: &SecretUser) -> Arc<OpenVault> {
    match &by.actor {
        Some(actor) => Arc::new(vault.acting_as(Text::clone(actor))),
        None => vault,
    }
}

impl fmt::Debug for UserVaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserVaults").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
