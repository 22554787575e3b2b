//! Binds secrets to the places where their values may go. Changing the bindings re-encrypts the record, because both of
//! its encryptions authenticate them.

use super::{AuditRecord, OpenVault, RowChanges, is_key};
use crate::audit::AuditAction;
use crate::cipher;
use crate::envelope;
use crate::error::VaultError;
use crate::head::Head;
use crate::manifest::SecretEntry;
use lango_core::{RecordSelection, Text, VaultRecord};
use lango_secrets::{Binding, BindingTarget, MAX_BINDINGS, SecretName, SecretValue};

impl OpenVault {
    /// Adds a binding. Fails for keys, if another secret uses the same environment variable of the same tool, or if the
    /// value is not valid in a header.
    pub async fn bind(
        &self,
        name: &SecretName,
        binding: &Binding,
    ) -> Result<SecretEntry, VaultError> {
        let edit = |head: &Head| {
            let entry = head.entry(name)?;
            if entry.kind.is_key() {
                return Err(is_key(entry));
            }
            if entry.bindings.contains(binding) {
                let name = name.to_string();
                return Err(VaultError::AlreadyBound { name });
            }
            if entry.bindings.len() >= MAX_BINDINGS {
                let (limit, things) = (MAX_BINDINGS, "bindings of one secret");
                return Err(VaultError::Limit { limit, things });
            }
            check_variable(head, name, binding)?;
            let mut bindings = entry.bindings.clone();
            bindings.push(binding.clone());
            Ok(bindings)
        };
        let audit = (AuditAction::Bound, subject(name, binding));
        self.change_bindings(name, audit, edit).await
    }

    /// Removes a binding. Fails if the secret does not have it.
    pub async fn unbind(
        &self,
        name: &SecretName,
        binding: &Binding,
    ) -> Result<SecretEntry, VaultError> {
        let edit = |head: &Head| {
            let mut bindings = head.entry(name)?.bindings.clone();
            let at = bindings.iter().position(|own| own == binding);
            bindings.remove(at.ok_or_else(|| not_bound(name))?);
            Ok(bindings)
        };
        let audit = (AuditAction::Unbound, subject(name, binding));
        self.change_bindings(name, audit, edit).await
    }

    /// Returns the value of a secret for one of its bindings. The caller must record the use with
    /// [`log_use`](Self::log_use).
    pub async fn bound_value(
        &self,
        name: &SecretName,
        binding: &Binding,
    ) -> Result<SecretValue, VaultError> {
        let (head, records) = self.read(RecordSelection::One(name.text())).await?;
        if !head.entry(name)?.bindings.contains(binding) {
            return Err(not_bound(name));
        }
        self.value_in(&head, &records, name)
    }

    /// Records in the audit log that a value was used for a binding.
    pub async fn log_use(&self, name: &SecretName, binding: &Binding) -> Result<(), VaultError> {
        let subject = subject(name, binding);
        self.vault.log(AuditAction::Used, subject).await
    }

    /// Records in the audit log that a placeholder was blocked at a place that the secret is not bound to.
    pub async fn log_blocked(&self, name: &SecretName, place: &str) -> Result<(), VaultError> {
        let subject = format!("{name} ({place})").into();
        self.vault.log(AuditAction::Blocked, subject).await
    }

    async fn change_bindings(
        &self,
        name: &SecretName,
        (action, subject): (AuditAction, Text),
        edit: impl Fn(&Head) -> Result<Vec<Binding>, VaultError>,
    ) -> Result<SecretEntry, VaultError> {
        let change = |head: &mut Head, records: &[VaultRecord]| {
            let bindings = edit(head)?;
            let entry = head.entry(name)?;
            let record = Head::record(entry, records)?;
            let wrapping = &self.keys.wrapping;
            let value = envelope::open(wrapping, &head.vault, entry, &record.envelope)?;
            if action == AuditAction::Bound {
                check_value(name, &bindings, &value)?;
            }
            let mut entry = SecretEntry {
                bindings,
                ..entry.clone()
            };
            let envelope = envelope::seal(wrapping, &head.vault, &entry, &value)?;
            entry.digest = cipher::digest(&envelope);
            head.entries.insert(name.clone(), entry.clone());
            let rows = RowChanges {
                put: vec![VaultRecord {
                    name: name.text(),
                    envelope,
                }],
                ..RowChanges::default()
            };
            Ok((rows, AuditRecord::of(action, subject.clone()), entry))
        };
        let record = RecordSelection::One(name.text());
        self.change(record, change).await
    }
}

/// Fails if the value contains characters that are not valid at its destinations: a zero byte anywhere, or a control
/// character in a header.
pub(super) fn check_value(
    name: &SecretName,
    bindings: &[Binding],
    value: &SecretValue,
) -> Result<(), VaultError> {
    if !bindings.is_empty() && value.expose().contains(&0) {
        return Err(VaultError::UnfitForBinding {
            name: name.to_string(),
        });
    }
    let is_header = |own: &Binding| matches!(own.target, BindingTarget::Header { .. });
    let is_unfit = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
    if bindings.iter().any(is_header) && value.expose().iter().any(is_unfit) {
        return Err(VaultError::UnfitForHeader {
            name: name.to_string(),
        });
    }
    Ok(())
}

/// Fails if another secret uses the environment variable, because a variable can contain only one value.
fn check_variable(head: &Head, name: &SecretName, new: &Binding) -> Result<(), VaultError> {
    let Some(variable) = variable(new) else {
        return Ok(());
    };
    let uses_variable =
        |own: &Binding| own.tool == new.tool && self::variable(own) == Some(variable);
    let mut others = head.entries.values().filter(|entry| entry.name != *name);
    match others.find(|entry| entry.bindings.iter().any(uses_variable)) {
        None => Ok(()),
        Some(other) => Err(VaultError::VariableTaken {
            variable: variable.to_string(),
            tool: new.tool.to_string(),
            name: other.name.to_string(),
        }),
    }
}

fn variable(binding: &Binding) -> Option<&Text> {
    match &binding.target {
        BindingTarget::Header { variable, .. } | BindingTarget::Program { variable, .. } => {
            Some(variable)
        }
        BindingTarget::Field { .. } | BindingTarget::ServerField { .. } => None,
    }
}

fn subject(name: &SecretName, binding: &Binding) -> Text {
    format!("{name} ({binding})").into()
}

fn not_bound(name: &SecretName) -> VaultError {
    VaultError::NotBound {
        name: name.to_string(),
    }
}
