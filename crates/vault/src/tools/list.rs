//! `secrets_list` and `secrets_describe`: show names, kinds, expiry and bindings of secrets.

use super::{VaultProvider, declaration, name};
use crate::error::date;
use crate::manifest::SecretEntry;
use lango_core::{Caller, Clock, Effect, Risk, Timestamp, Tool, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write;
use std::sync::Arc;

#[derive(Deserialize, JsonSchema)]
struct ListArguments {}

#[derive(Deserialize, JsonSchema)]
struct DescribeArguments {
    /// The name of the secret.
    name: String,
}

/// The entries of a vault, and whether they were authenticated.
struct SecretListing {
    entries: Vec<SecretEntry>,
    is_checked: bool,
}

pub(super) fn tools(
    provider: &Arc<dyn VaultProvider>,
    clock: &Arc<dyn Clock>,
) -> Vec<Arc<dyn Tool>> {
    let safe = (Effect::Pure, Risk::Safe);
    let list = declaration(
        "secrets_list",
        "Lists the user's stored secrets and keys: names, kinds, expiry and where each may be used. Values are never \
         shown to anyone. Use it to find the name of a credential.",
        safe,
    );
    let (run_provider, run_clock) = (Arc::clone(provider), Arc::clone(clock));
    let list = list.with_code(move |caller: Caller, _: ListArguments| {
        let (provider, now) = (Arc::clone(&run_provider), run_clock.now());
        async move { show_all(&read(&provider, &caller).await?, now) }
    });
    let describe = declaration(
        "secrets_describe",
        "Describes one stored secret: its kind, version, expiry and bindings, which are the places where its value may be \
         used. The value itself is never shown.",
        safe,
    );
    let (run_provider, run_clock) = (Arc::clone(provider), Arc::clone(clock));
    let describe = describe.with_code(move |caller: Caller, arguments: DescribeArguments| {
        let (provider, now) = (Arc::clone(&run_provider), run_clock.now());
        async move {
            let name = name(&arguments.name)?;
            let listing = read(&provider, &caller).await?;
            let entry = listing.entries.iter().find(|entry| entry.name == name);
            let entry = entry.ok_or_else(|| {
                ToolError::trusted(format!(
                    "there is no secret `{name}`; `secrets_list` shows all, `secrets_request` asks the user for it"
                ))
            })?;
            Ok(ToolOutput::trusted(describe_entry(entry, now, listing.is_checked)))
        }
    });
    vec![list, describe]
}

/// Reads the entries. They are authenticated if the vault can be opened without a prompt.
async fn read(
    provider: &Arc<dyn VaultProvider>,
    caller: &Caller,
) -> Result<SecretListing, ToolError> {
    let sealed = provider.sealed(&caller.user).await;
    let sealed = sealed.map_err(|error| ToolError::trusted(error.to_string()))?;
    let Some(sealed) = sealed else {
        return Ok(SecretListing {
            entries: Vec::new(),
            is_checked: true,
        });
    };
    match provider.open(&caller.user).await {
        Ok(open) => Ok(SecretListing {
            entries: open.entries().await.map_err(super::failed)?,
            is_checked: true,
        }),
        Err(_) => Ok(SecretListing {
            entries: sealed.entries().cloned().collect(),
            is_checked: false,
        }),
    }
}

fn show_all(listing: &SecretListing, now: Timestamp) -> Result<ToolOutput, ToolError> {
    if listing.entries.is_empty() {
        return Ok(ToolOutput::trusted(
            "there are no secrets; `secrets_request` asks the user for one, `crypto_create_key` creates a key",
        ));
    }
    let mut text = String::new();
    for entry in &listing.entries {
        // Writing to a string does not fail.
        let _ = write!(text, "{} ({}", entry.name, entry.kind);
        if let Some(expiry) = describe_expiry(entry, now) {
            let _ = write!(text, ", {expiry}");
        }
        let _ = match entry.bindings.len() {
            0 => writeln!(text, ")"),
            1 => writeln!(text, ") {}", entry.bindings[0]),
            count => writeln!(text, ") {count} bindings"),
        };
    }
    text.push_str(note(listing.is_checked));
    Ok(ToolOutput::trusted(text))
}

fn describe_expiry(entry: &SecretEntry, now: Timestamp) -> Option<String> {
    let at = date(entry.expires?);
    Some(if entry.is_expired(now) {
        let name = &entry.name;
        format!("EXPIRED on {at}, cannot be used until the user runs `lango secrets rotate {name}`")
    } else {
        format!("expires on {at}")
    })
}

fn describe_entry(entry: &SecretEntry, now: Timestamp, is_checked: bool) -> String {
    let mut text = format!(
        "{} ({}, version {})\n",
        entry.name, entry.kind, entry.version
    );
    let _ = writeln!(text, "stored on {}", date(entry.updated));
    if let Some(expiry) = describe_expiry(entry, now) {
        let _ = writeln!(text, "{expiry}");
    }
    if entry.kind.is_key() {
        text.push_str("a key: used by crypto tools inside lango, never sent anywhere\n");
    } else if entry.bindings.is_empty() {
        text.push_str("no bindings: only lango's own configuration can use it\n");
    }
    for (number, binding) in entry.bindings.iter().enumerate() {
        let _ = writeln!(text, "binding {}: {binding}", number + 1);
    }
    text.push_str(note(is_checked));
    text
}

fn note(is_checked: bool) -> &'static str {
    if is_checked {
        ""
    } else {
        "the vault is locked, so this list is not verified; the user can unlock it with `lango secrets unlock`\n"
    }
}
