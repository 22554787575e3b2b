//! The seam to the stored secrets, for the parts that use them.

use crate::binding::Binding;
use crate::name::SecretName;
use crate::value::SecretValue;
use lango_core::{BoxFuture, UserId};
use std::fmt;
use std::sync::Arc;

/// A secret with one of its bindings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundSecret {
    /// The name of the secret.
    pub name: SecretName,
    /// The binding.
    pub binding: Binding,
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
        user: &'a UserId,
        secret: &'a BoundSecret,
    ) -> BoxFuture<'a, Result<Arc<SecretValue>, SecretError>>;
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
