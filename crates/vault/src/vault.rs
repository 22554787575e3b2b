//! A user's vault: reads, creates, unlocks and deletes it.

use crate::audit::AuditAction;
use crate::cipher;
use crate::envelope::VaultIdentity;
use crate::error::VaultError;
use crate::head::{Head, Keys, SealedVault};
use crate::key::Key;
use crate::method::{UnlockMethod, UnlockSecret};
use crate::open_vault::OpenVault;
use lango_core::{
    Clock, RecordSelection, Text, UserId, VaultChange, VaultChangeOutcome, VaultEvent, VaultStore,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The dependencies of a vault.
#[derive(Clone)]
pub struct VaultParts {
    pub store: Arc<dyn VaultStore>,
    pub clock: Arc<dyn Clock>,
    pub owner: UserId,
    /// The actor in the audit log, such as `command line`.
    pub actor: Text,
}

/// Maximum number of attempts to change a vault while other replicas change it too.
pub(crate) const MAX_ATTEMPTS: u32 = 64;

/// Number of log entries to search for the creation or deletion of a vault.
const NEWEST_EVENTS: usize = 100;

/// Maximum pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// The vault of one user, locked or not yet created.
#[derive(Clone)]
pub struct Vault {
    parts: VaultParts,
}

impl Vault {
    /// Creates a handle to the vault of `parts.owner`, without reading anything.
    pub fn new(parts: VaultParts) -> Self {
        Self { parts }
    }

    /// Returns a handle to another user's vault in the same store.
    pub fn of_user(&self, owner: UserId) -> Self {
        Self::new(VaultParts {
            owner,
            ..self.parts.clone()
        })
    }

    /// Returns the owner of the vault.
    pub fn user(&self) -> &UserId {
        &self.parts.owner
    }

    /// Returns a handle to this vault that logs its uses under another actor.
    pub(crate) fn acting_as(&self, actor: Text) -> Self {
        Self::new(VaultParts {
            actor,
            ..self.parts.clone()
        })
    }

    /// Reads the vault with some of its records; returns `None` if there is no vault.
    pub async fn read(&self, records: RecordSelection) -> Result<Option<SealedVault>, VaultError> {
        let VaultParts { store, owner, .. } = &self.parts;
        let mut snapshot = store.read_vault(owner, records.clone()).await?;
        if snapshot.is_none() {
            if !self.exists_in_log().await? {
                return Ok(None);
            }
            // Another process may have created the vault before the log was read.
            snapshot = store.read_vault(owner, records).await?;
        }
        let snapshot = snapshot.ok_or(VaultError::HeadMissing)?;
        SealedVault::read(owner, snapshot).map(Some)
    }

    /// Returns whether, according to the log, a vault was created and not deleted.
    async fn exists_in_log(&self) -> Result<bool, VaultError> {
        let deleted = AuditAction::VaultDeleted.to_string();
        let created = AuditAction::VaultCreated.to_string();
        let events = self.events(NEWEST_EVENTS).await?;
        let mut actions = events.iter().map(|event| &*event.action);
        // Another process may have written a log entry after the vault was deleted.
        let last = actions.find(|action| **action == *deleted || **action == *created);
        Ok(!events.is_empty() && last != Some(deleted.as_str()))
    }

    /// Creates the vault with one or more unlock methods. Fails if a vault, or a remainder of one, exists.
    pub async fn create(&self, secrets: Vec<UnlockSecret>) -> Result<OpenVault, VaultError> {
        if self.read(RecordSelection::None).await?.is_some() {
            return Err(VaultError::Exists);
        }
        let now = self.parts.clock.now();
        let owner = self.parts.owner.clone();
        let created = run_blocking(move || {
            let mut id = [0; 16];
            cipher::fill_random(&mut id)?;
            let vault = VaultIdentity { id, owner };
            let master = cipher::random_key()?;
            let mut head = Head {
                vault,
                // Greater than the revision of a deleted vault, so that no pending change of that vault applies to this
                // one.
                revision: now.0.max(1),
                next_method: 1,
                methods: Vec::new(),
                entries: BTreeMap::new(),
            };
            for secret in &secrets {
                let method = UnlockMethod::new(now, &head.vault, secret, &master)?;
                head.add_method(method)?;
            }
            Ok((head, master))
        });
        let (head, master) = created.await?;
        if head.methods.is_empty() {
            return Err(VaultError::LastMethod);
        }
        let keys = Keys::derive(&master, head.vault.id)?;
        let change = VaultChange {
            expected: None,
            revision: head.revision,
            head: Some(head.encode(&keys)),
            put: Vec::new(),
            remove: Vec::new(),
            event: self.event(AuditAction::VaultCreated, None),
        };
        match self.apply(change).await? {
            VaultChangeOutcome::Applied => Ok(OpenVault::new(self.clone(), master, keys)),
            VaultChangeOutcome::Outdated => Err(VaultError::Exists),
        }
    }

    /// Unlocks the vault. Records every attempt in the audit log; if that fails, the vault stays locked.
    pub async fn unlock(&self, secret: UnlockSecret) -> Result<OpenVault, VaultError> {
        let sealed = self.read(RecordSelection::None).await?;
        let sealed = sealed.ok_or(VaultError::Absent)?;
        let method: Text = secret.kind().to_string().into();
        let tried = sealed.clone();
        let (id, master) = match run_blocking(move || tried.unlock(&secret)).await {
            Err(error @ VaultError::WrongSecret { .. }) => {
                self.log(AuditAction::UnlockFailed, method).await?;
                return Err(error);
            }
            unlocked => unlocked?,
        };
        let keys = Keys::derive(&master, sealed.id())?;
        sealed.verify(&keys).map_err(|error| match error {
            // The key comes from this head, so it cannot be outdated.
            VaultError::KeyOutdated => VaultError::changed("its key does not belong to its head"),
            error => error,
        })?;
        self.log(AuditAction::Unlocked, method).await?;
        Ok(OpenVault::new(self.clone(), master, keys).with_method(id))
    }

    /// Opens the vault with a master key from an earlier [`unlock`](Self::unlock).
    pub async fn open(&self, master: Key) -> Result<OpenVault, VaultError> {
        let sealed = self.read(RecordSelection::None).await?;
        let sealed = sealed.ok_or(VaultError::Absent)?;
        let keys = Keys::derive(&master, sealed.id())?;
        sealed.verify(&keys)?;
        Ok(OpenVault::new(self.clone(), master, keys))
    }

    /// Deletes the vault with all its secrets. Needs no key, so that a user who lost it can start over.
    pub async fn delete(&self) -> Result<(), VaultError> {
        let VaultParts { store, owner, .. } = &self.parts;
        for attempt in 0..MAX_ATTEMPTS {
            let snapshot = store.read_vault(owner, RecordSelection::None).await?;
            let Some(snapshot) = snapshot else {
                if !self.exists_in_log().await? {
                    return Err(VaultError::Absent);
                }
                let event = self.event(AuditAction::VaultDeleted, None);
                return Ok(store.append_vault_event(owner, event).await?);
            };
            let change = VaultChange {
                expected: Some(snapshot.revision),
                revision: snapshot.revision + 1,
                head: None,
                put: Vec::new(),
                remove: Vec::new(),
                event: self.event(AuditAction::VaultDeleted, None),
            };
            if self.apply(change).await? == VaultChangeOutcome::Applied {
                return Ok(());
            }
            pause(attempt).await?;
        }
        Err(VaultError::Contended)
    }

    /// Returns the newest entries of the audit log, newest first.
    pub async fn events(&self, limit: usize) -> Result<Vec<VaultEvent>, VaultError> {
        let VaultParts { store, owner, .. } = &self.parts;
        Ok(store.vault_events(owner, limit).await?)
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.parts.clock
    }

    pub(crate) async fn apply(
        &self,
        change: VaultChange,
    ) -> Result<VaultChangeOutcome, VaultError> {
        let VaultParts { store, owner, .. } = &self.parts;
        Ok(store.change_vault(owner, change).await?)
    }

    pub(crate) fn event(&self, action: AuditAction, subject: Option<Text>) -> VaultEvent {
        VaultEvent {
            time: self.parts.clock.now(),
            action: action.to_string().into(),
            subject,
            actor: self.parts.actor.clone(),
        }
    }

    pub(crate) async fn log(&self, action: AuditAction, subject: Text) -> Result<(), VaultError> {
        let event = self.event(action, Some(subject));
        let VaultParts { store, owner, .. } = &self.parts;
        Ok(store.append_vault_event(owner, event).await?)
    }
}

/// Sleeps for a random time before the next attempt, so that competing replicas do not collide again.
pub(crate) async fn pause(attempt: u32) -> Result<(), VaultError> {
    let mut random = [0; 1];
    cipher::fill_random(&mut random)?;
    let limit = MAX_PAUSE.min(Duration::from_millis(4 << attempt.min(8)));
    tokio::time::sleep(limit * u32::from(random[0]) / 255).await;
    Ok(())
}

/// Runs slow work on a blocking thread.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, VaultError> + Send + 'static,
) -> Result<T, VaultError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| {
        Err(VaultError::System(
            "deriving a key was interrupted".to_owned(),
        ))
    })
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vault")
            .field("owner", &self.parts.owner)
            .finish_non_exhaustive()
    }
}
