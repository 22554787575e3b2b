//! The interface through which tools use stored secrets.

use crate::binding::Binding;
use crate::name::SecretName;
use crate::value::SecretValue;
use lango_core::{BoxFuture, Caller, SessionId, Text, UserId};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A secret with one of its bindings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundSecret {
    pub name: SecretName,
    pub binding: Binding,
}

/// The user, session and actor of a secret's use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretUser {
    /// The user whose vault has the secret.
    pub user: UserId,
    /// `None` if the use is not tied to a session.
    pub session: Option<SessionId>,
    /// The actor in the audit log; `None` for lango itself.
    pub actor: Option<Text>,
}

impl SecretUser {
    /// Returns the `SecretUser` for an agent's call.
    pub fn agent(caller: &Caller) -> Self {
        Self {
            user: caller.user.clone(),
            session: Some(caller.session.clone()),
            actor: Some(agent_actor(caller)),
        }
    }
}

/// Returns the actor that the audit log records for an agent's call.
pub fn agent_actor(caller: &Caller) -> Text {
    format!("agent {} in session {}", caller.agent, caller.session).into()
}

impl From<&UserId> for SecretUser {
    fn from(user: &UserId) -> Self {
        Self {
            user: user.clone(),
            session: None,
            actor: None,
        }
    }
}

/// A source of users' secrets, which are resolved after a call was approved.
pub trait SecretSource: fmt::Debug + Send + Sync {
    /// Returns the secrets that are bound to a tool; an empty list if the user has no vault.
    fn bound_secrets<'a>(
        &'a self,
        user: &'a UserId,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<Vec<BoundSecret>, SecretError>>;

    /// Returns the value of a secret for one use, records the use in the audit log, and masks the value from now on.
    /// Fails if the secret no longer has this binding.
    fn resolve<'a>(
        &'a self,
        by: &'a SecretUser,
        secret: &'a BoundSecret,
    ) -> BoxFuture<'a, Result<Arc<SecretValue>, SecretError>>;

    /// Masks every stored value of a user from now on, including unbound and expired ones, if the vault can be opened
    /// without a prompt. Does nothing if that was done for the same vault within `max_age`.
    fn load_masks<'a>(&'a self, user: &'a UserId, max_age: Duration) -> BoxFuture<'a, ()>;

    /// Records in the audit log that a secret's placeholder was sent to a place that the secret is not bound to, and
    /// was blocked. If the vault has been locked in the meantime, nothing is recorded; the command's result still
    /// reports it.
    fn log_blocked<'a>(
        &'a self,
        by: &'a SecretUser,
        name: &'a SecretName,
        place: &'a str,
    ) -> BoxFuture<'a, ()>;

    /// Returns the status of a secret. This also works while the vault is locked.
    fn status<'a>(
        &'a self,
        user: &'a UserId,
        name: &'a SecretName,
    ) -> BoxFuture<'a, Result<SecretStatus, SecretError>>;

    /// Returns the secrets that are bound to a tool if the vault is locked and its user can be asked for the passphrase
    /// now; otherwise an empty list. They are not authenticated, so they may only be used to decide whether to ask.
    fn locked_secrets<'a>(
        &'a self,
        user: &'a UserId,
        tool: &'a str,
    ) -> BoxFuture<'a, Vec<BoundSecret>>;

    /// Tells the user that a call was refused, or ran without a secret, because of this problem. The other methods
    /// already report the problems that they return.
    fn report(&self, problem: &str);
}

/// The reason why only the user can approve a call that needs a locked vault. The interface that asks the user then
/// also reads the passphrase.
pub const UNLOCK_REASON: &str = "the vault is locked; you will be asked for its passphrase";

/// The status of a secret in the vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretStatus {
    /// The secret or the vault does not exist.
    Missing,
    Expired,
    /// The secret can be used where it is bound.
    Stored,
}

impl SecretStatus {
    /// Returns why a secret cannot be used anywhere, with the next step; `None` if only a binding is missing.
    pub fn problem(self, name: &SecretName) -> Option<String> {
        match self {
            Self::Missing => Some(format!(
                "there is no secret `{name}`; `lango secrets set {name}` stores it"
            )),
            Self::Expired => Some(format!(
                "the secret `{name}` has expired; `lango secrets rotate {name}` gives it a new value"
            )),
            Self::Stored => None,
        }
    }
}

/// The reason why a secret cannot be used. Its text never contains a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The vault is locked or absent.
    #[error("{detail}")]
    Unavailable {
        /// The problem and the next step.
        detail: String,
    },
    /// The secret does not exist, has expired, or was changed outside lango.
    #[error("{detail}")]
    Unusable {
        name: SecretName,
        /// The reason, with the name of the secret, and the next step.
        detail: String,
    },
    #[error("the secret `{name}` is not bound to this use; `lango secrets bind {name}` binds it")]
    NotBound { name: SecretName },
}
