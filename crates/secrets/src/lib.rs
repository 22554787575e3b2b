//! Types and rules for using secrets.
//!
//! The vault stores secrets; this crate contains what the users of a secret need. A [`SecretValue`] is never printed. A
//! [`Binding`] says where a value may go. A [`SecretSource`] resolves a bound secret at the last moment. A
//! [`Placeholder`] is what a sandboxed program gets instead of a value. [`Masks`] remove echoes of values from
//! everything that a model or a sandboxed program sees.

mod binding;
mod credential;
mod field;
mod literal_notice;
mod mask;
mod name;
mod placeholder;
mod source;
mod value;

pub use binding::{Binding, BindingError, BindingTarget, MAX_BINDINGS, Origin, ServerToolId};
pub use credential::{Credential, CredentialSource, is_plain_encoding};
pub use field::{FieldTool, field_binding, find_handle, secret_handle};
pub use literal_notice::LiteralSecretNotice;
pub use mask::{MIN_MASKED_BYTES, MaskStream, MaskTextStream, Masks};
pub use name::{InvalidName, SecretName};
pub use placeholder::Placeholder;
pub use source::{
    BoundSecret, SecretError, SecretSource, SecretStatus, SecretUser, UNLOCK_REASON, agent_actor,
};
pub use value::{MAX_SECRET_BYTES, SecretValue};
