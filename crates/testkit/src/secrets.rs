//! An in-memory source of secrets, for tests of the code that uses secrets.

use lango_core::{BoxFuture, UserId};
use lango_secrets::{
    Binding, BoundSecret, Masks, Origin, SecretError, SecretName, SecretSource, SecretStatus,
    SecretUser, SecretValue, ServerToolId,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// A source whose secrets all have the same value.
#[derive(Debug, Default)]
pub struct MemorySecrets {
    value: String,
    bound: Mutex<Vec<BoundSecret>>,
    is_locked: AtomicBool,
    is_expired: bool,
    can_prompt: bool,
    late_masks: Option<(Masks, Arc<Notify>)>,
}

impl MemorySecrets {
    /// Creates a source without bindings.
    pub fn new(value: &str) -> Self {
        Self {
            value: value.to_owned(),
            ..Self::default()
        }
    }

    /// Creates a source that is locked.
    pub fn locked() -> Self {
        Self {
            is_locked: true.into(),
            ..Self::default()
        }
    }

    /// Locks the source, with a user present who can be asked for the passphrase.
    #[must_use]
    pub fn with_prompt(self) -> Self {
        Self {
            is_locked: true.into(),
            can_prompt: true,
            ..self
        }
    }

    pub fn unlock(&self) {
        self.is_locked.store(false, Ordering::Relaxed);
    }

    /// Makes all secrets expired.
    #[must_use]
    pub fn expired(self) -> Self {
        Self {
            is_expired: true,
            ..self
        }
    }

    /// Makes loading the masks wait for a notification. Then the value is masked as `LATE`.
    #[must_use]
    pub fn with_late_masks(self, masks: Masks, ready: Arc<Notify>) -> Self {
        Self {
            late_masks: Some((masks, ready)),
            ..self
        }
    }

    /// Binds a secret to the `authorization` header of an origin.
    #[must_use]
    pub fn with_header(self, name: &str, tool: &str, origin: &str, variable: &str) -> Self {
        let origin = Origin::parse(origin).expect("an origin");
        self.with(
            name,
            Binding::header(tool, origin, "authorization", variable),
        )
    }

    /// Binds a secret to an argument of a tool of an MCP server.
    #[must_use]
    pub fn with_server_field(self, name: &str, id: &ServerToolId, field: &str) -> Self {
        self.with(name, Binding::server_field(id, field))
    }

    /// Binds a secret to the environment of a program.
    #[must_use]
    pub fn with_program(self, name: &str, program: &str, variable: &str) -> Self {
        self.with(name, Binding::program("exec", program, variable))
    }

    /// Binds a secret to an argument of a tool, at one origin.
    #[must_use]
    pub fn with_field(self, name: &str, tool: &str, argument: &str, origin: &str) -> Self {
        let origin = Origin::parse(origin).expect("an origin");
        self.with(name, Binding::field(tool, argument, Some(origin)))
    }

    fn with(self, name: &str, binding: Result<Binding, lango_secrets::BindingError>) -> Self {
        let bound = BoundSecret {
            name: SecretName::new(name).expect("a name"),
            binding: binding.expect("a binding"),
        };
        self.bound().push(bound);
        self
    }

    /// Removes all bindings.
    pub fn unbind(&self) {
        self.bound().clear();
    }

    fn is_locked(&self) -> bool {
        self.is_locked.load(Ordering::Relaxed)
    }

    fn bound(&self) -> std::sync::MutexGuard<'_, Vec<BoundSecret>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SecretSource for MemorySecrets {
    fn bound_secrets<'a>(
        &'a self,
        _: &'a UserId,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<Vec<BoundSecret>, SecretError>> {
        let detail = "the vault is locked; run `lango secrets unlock`".to_owned();
        let is_own = |secret: &&BoundSecret| &*secret.binding.tool == tool;
        let bound = self.bound().iter().filter(is_own).cloned().collect();
        let result = if self.is_locked() {
            Err(SecretError::Unavailable { detail })
        } else {
            Ok(bound)
        };
        Box::pin(std::future::ready(result))
    }

    fn resolve<'a>(
        &'a self,
        _: &'a SecretUser,
        secret: &'a BoundSecret,
    ) -> BoxFuture<'a, Result<Arc<SecretValue>, SecretError>> {
        let result = if self.bound().contains(secret) {
            Ok(Arc::new(SecretValue::new(self.value.as_str())))
        } else {
            let name = secret.name.clone();
            Err(SecretError::NotBound { name })
        };
        Box::pin(std::future::ready(result))
    }

    fn load_masks<'a>(&'a self, _: &'a UserId, _: Duration) -> BoxFuture<'a, ()> {
        Box::pin(async {
            if let Some((masks, ready)) = &self.late_masks {
                ready.notified().await;
                masks.add("LATE", &SecretValue::new(self.value.as_str()));
            }
        })
    }

    fn log_blocked<'a>(
        &'a self,
        _: &'a SecretUser,
        _: &'a SecretName,
        _: &'a str,
    ) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn status<'a>(
        &'a self,
        _: &'a UserId,
        name: &'a SecretName,
    ) -> BoxFuture<'a, Result<SecretStatus, SecretError>> {
        let is_stored = self.bound().iter().any(|secret| secret.name == *name);
        let status = if !is_stored {
            SecretStatus::Missing
        } else if self.is_expired {
            SecretStatus::Expired
        } else {
            SecretStatus::Stored
        };
        Box::pin(std::future::ready(Ok(status)))
    }

    fn locked_secrets<'a>(
        &'a self,
        _: &'a UserId,
        tool: &'a str,
    ) -> BoxFuture<'a, Vec<BoundSecret>> {
        let is_own = |secret: &&BoundSecret| self.can_prompt && &*secret.binding.tool == tool;
        let bound = self.bound().iter().filter(is_own).cloned().collect();
        Box::pin(std::future::ready(if self.is_locked() {
            bound
        } else {
            Vec::new()
        }))
    }

    fn report(&self, _: &str) {}
}
