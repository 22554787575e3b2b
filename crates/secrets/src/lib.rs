//! Secrets in use.
//!
//! The vault stores secrets; this crate has what every part that uses one needs: a [`SecretValue`] that is never printed,
//! the [`Binding`] that says where a value may go, the [`SecretSource`] that resolves a bound secret at the last moment, the
//! [`Placeholder`] that a sandboxed program holds instead of a value, and [`Masks`], which remove echoes of values from
//! everything that a model or a sandboxed program is shown.

mod binding;
mod credential;
mod field;
mod mask;
mod name;
mod placeholder;
mod source;
mod unresolved;
mod value;

pub use binding::{Binding, BindingError, BindingTarget, MOST_BINDINGS, Origin, ServerToolId};
pub use credential::{Credential, CredentialSource, is_plain_encoding};
pub use field::{FieldTool, field_binding, handle_in, secret_handle};
pub use mask::{LEAST_MASKED_BYTES, MaskStream, MaskText, Masks};
pub use name::{InvalidName, SecretName};
pub use placeholder::Placeholder;
pub use source::{
    BoundSecret, SecretError, SecretSource, SecretStatus, SecretUser, UNLOCK_REASON, agent_actor,
};
pub use unresolved::UnresolvedTool;
pub use value::{MOST_SECRET_BYTES, SecretValue};
