//! The seam to the stored secrets, for the parts that use them.

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
    /// The name of the secret.
    pub name: SecretName,
    /// The binding.
    pub binding: Binding,
}

/// Who uses a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretUser {
    /// The user whose vault has the secret.
    pub user: UserId,
    /// The session that it is for; `None` if it is for all of them.
    pub session: Option<SessionId>,
    /// The actor in the audit log; `None` for lango itself.
    pub actor: Option<Text>,
}

impl SecretUser {
    /// An agent of a session.
    pub fn agent(caller: &Caller) -> Self {
        Self {
            user: caller.user.clone(),
            session: Some(caller.session.clone()),
            actor: Some(agent_actor(caller)),
        }
    }
}

/// Returns the actor of an agent's call in the audit log.
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

/// The secrets of the users, resolved after a call was allowed.
pub trait SecretSource: fmt::Debug + Send + Sync {
    /// Returns the bindings for a tool; none if the user has no vault.
    fn bound<'a>(
        &'a self,
        user: &'a UserId,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<Vec<BoundSecret>, SecretError>>;

    /// Returns the value of a secret for one use, records the use in the audit log, and masks the value from now on. Fails
    /// if the secret no longer has this binding.
    fn resolve<'a>(
        &'a self,
        by: &'a SecretUser,
        secret: &'a BoundSecret,
    ) -> BoxFuture<'a, Result<Arc<SecretValue>, SecretError>>;

    /// Masks every stored value of a user from now on, also those that are not bound or have expired, if the vault can be
    /// opened without a prompt. Does nothing if that was done for the same vault within `max_age`.
    fn load_masks<'a>(&'a self, user: &'a UserId, max_age: Duration) -> BoxFuture<'a, ()>;

    /// Records in the audit log that a placeholder of a secret was on its way to a place that the secret is not bound to.
    /// A vault that is locked meanwhile has no entry of it; the result of the command has one in any case.
    fn log_blocked<'a>(
        &'a self,
        by: &'a SecretUser,
        name: &'a SecretName,
        place: &'a str,
    ) -> BoxFuture<'a, ()>;

    /// Returns what is stored of a secret, also while the vault is locked.
    fn status<'a>(
        &'a self,
        user: &'a UserId,
        name: &'a SecretName,
    ) -> BoxFuture<'a, Result<SecretStatus, SecretError>>;

    /// Returns the bindings for a tool in a vault that is locked, if its user can be asked for the passphrase now; none
    /// otherwise. Nothing authenticates them yet: they are for the question only.
    fn locked<'a>(&'a self, user: &'a UserId, tool: &'a str) -> BoxFuture<'a, Vec<BoundSecret>>;

    /// Tells the user that a call was refused, or went without a secret, because of this problem. Problems that the other
    /// functions return are reported already.
    fn report(&self, problem: &str);
}

/// Why only the user can allow a call that needs a locked vault. The edge that asks then also reads the passphrase.
pub const UNLOCK_REASON: &str = "the vault is locked; you will be asked for its passphrase";

/// What a vault has of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretStatus {
    /// There is no such secret, or no vault.
    Missing,
    /// It has expired.
    Expired,
    /// It can be used where it is bound.
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

/// A reason why a secret cannot be used. Its text never contains a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The vault is locked or absent.
    #[error("{detail}")]
    Unavailable {
        /// The problem and the next step.
        detail: String,
    },
    /// There is no such secret, it expired, or it was changed outside lango.
    #[error("{detail}")]
    Unusable {
        /// The name of the secret.
        name: SecretName,
        /// The reason, with the name of the secret, and the next step.
        detail: String,
    },
    /// The secret is not bound to this use.
    #[error("the secret `{name}` is not bound to this use; `lango secrets bind {name}` binds it")]
    NotBound {
        /// The name of the secret.
        name: SecretName,
    },
}
