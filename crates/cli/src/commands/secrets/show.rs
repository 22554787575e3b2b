//! Lists the secrets and the audit log: names and times, never values.

use crate::screen::{self, Layout, age};
use lango::app::Failure;
use lango::app::vault::{LockedVault, OpenResult, PromptMode, VaultContext};
use lango_core::text::sanitize;
use lango_core::{Clock, RecordSelection, Timestamp};
use lango_engine::SystemClock;
use lango_secrets::{Binding, BindingTarget, SecretName};
use lango_vault::{SecretEntry, VaultError, date_and_time};
use serde_json::json;

/// Lists the secrets. Verifies a vault that unlocks without a prompt; otherwise lists the stored state with a note
/// that it was not verified.
pub(super) async fn list(secrets: &VaultContext, as_json: bool) -> Result<(), Failure> {
    let Some(sealed) = secrets.access.read(RecordSelection::All).await? else {
        if as_json {
            return Ok(screen::print("[]")?);
        }
        return Ok(screen::print(&format!(
            "there is no {} yet; create it with `{} set NAME`",
            secrets.access.name(),
            secrets.access.command()
        ))?);
    };
    let now = SystemClock.now();
    let opening = secrets.access.try_open(PromptMode::Never).await?;
    let (entries, problems, locked) = match opening {
        OpenResult::Open(open) => (open.entries().await?, open.check().await?, None),
        OpenResult::Locked(locked) => {
            let entries = sealed.entries().cloned().collect();
            (entries, sealed.record_problems(), Some(locked))
        }
    };
    if as_json {
        let rows = entries
            .iter()
            .map(|entry| row(entry, now, locked.is_none()));
        let rows: Vec<_> = rows.collect();
        screen::print(&screen::json(&rows, Layout::Indented)?)?;
    } else {
        for entry in &entries {
            screen::print(&line(entry, now))?;
        }
        if entries.is_empty() {
            screen::print(&format!("the {} is empty", secrets.access.name()))?;
        }
        if let Some(locked) = &locked {
            screen::say(&unverified_notice(locked, "this list"));
        }
    }
    refuse_changes(problems)
}

/// Formats the warning that `shown` was read from a locked vault, so lango could not verify it.
fn unverified_notice(locked: &LockedVault, shown: &str) -> String {
    let (status, next) = (locked.status(), locked.next_step());
    format!("{status}, so {shown} was not checked; to check it: {next}")
}

/// Prints all problems and returns the first one as an error.
fn refuse_changes(mut problems: Vec<VaultError>) -> Result<(), Failure> {
    if problems.is_empty() {
        return Ok(());
    }
    let first = problems.remove(0);
    for other in problems {
        screen::say(&other.to_string());
    }
    Err(first.into())
}

fn line(entry: &SecretEntry, now: Timestamp) -> String {
    let expires = match entry.expires {
        None => String::new(),
        Some(at) if entry.is_expired(now) => format!("  EXPIRED on {}", date_and_time(at)),
        Some(at) => format!("  expires on {}", date_and_time(at)),
    };
    let (name, kind, version) = (entry.name.as_str(), entry.kind.to_string(), entry.version);
    let age = age(entry.updated, now);
    let mut text = format!("{name:<32}  {kind:<13}  version {version:<4}  {age:>10}{expires}");
    if let Some(id) = &entry.public_id {
        text.push_str(&format!("\n  {id}"));
    }
    for (number, binding) in entry.bindings.iter().enumerate() {
        text.push_str(&format!("\n  {}. {binding}", number + 1));
    }
    text
}

fn row(entry: &SecretEntry, now: Timestamp, is_checked: bool) -> serde_json::Value {
    json!({
        "name": entry.name.as_str(),
        "kind": entry.kind.to_string(),
        "version": entry.version,
        "created": entry.created.0,
        "updated": entry.updated.0,
        "expires": entry.expires.map(|time| time.0),
        "expired": entry.is_expired(now),
        "publicId": entry.public_id,
        "bindings": entry.bindings.iter().map(binding_row).collect::<Vec<_>>(),
        "checked": is_checked,
    })
}

fn binding_row(binding: &Binding) -> serde_json::Value {
    let tool = &binding.tool;
    match &binding.target {
        BindingTarget::Header {
            origin,
            header,
            variable,
        } => json!({
            "tool": tool,
            "origin": origin.to_string(),
            "header": header,
            "variable": variable,
        }),
        BindingTarget::Program { program, variable } => {
            json!({ "tool": tool, "program": program, "variable": variable })
        }
        BindingTarget::Field { field, origin } => {
            let origin = origin.as_ref().map(ToString::to_string);
            json!({ "tool": tool, "field": field, "origin": origin })
        }
        BindingTarget::ServerField { tool: own, field } => json!({
            "tool": tool,
            "server": Binding::mcp_server_of(tool),
            "serverTool": own,
            "field": field,
        }),
    }
}

/// Prints one secret with its bindings, without the value.
pub(super) async fn describe(
    secrets: &VaultContext,
    name: &str,
    as_json: bool,
) -> Result<(), Failure> {
    let name = SecretName::new(name)?;
    let sealed = secrets.access.sealed().await?;
    let (entries, locked) = match secrets.access.try_open(PromptMode::Never).await? {
        OpenResult::Open(open) => (open.entries().await?, None),
        OpenResult::Locked(locked) => (sealed.entries().cloned().collect(), Some(locked)),
    };
    let entry = entries.iter().find(|entry| entry.name == name);
    let entry = entry.ok_or_else(|| VaultError::NotFound {
        name: name.to_string(),
    })?;
    let now = SystemClock.now();
    if as_json {
        let row = row(entry, now, locked.is_none());
        return Ok(screen::print(&screen::json(&row, Layout::Indented)?)?);
    }
    screen::print(&line(entry, now))?;
    if entry.bindings.is_empty() && !entry.kind.is_key() {
        screen::print(&format!(
            "  no bindings: only lango's own configuration can use it; `{} bind {name}` adds one",
            secrets.access.command()
        ))?;
    }
    if let Some(locked) = &locked {
        screen::say(&unverified_notice(locked, "this"));
    }
    Ok(())
}

/// Prints the audit log.
pub(super) async fn log(
    secrets: &VaultContext,
    limit: usize,
    as_json: bool,
) -> Result<(), Failure> {
    let events = secrets.access.events(limit).await?;
    if as_json {
        let rows = events.iter().map(|event| {
            json!({
                "time": event.time.0,
                "action": event.action,
                "subject": event.subject,
                "actor": event.actor,
            })
        });
        let rows: Vec<_> = rows.collect();
        return Ok(screen::print(&screen::json(&rows, Layout::Indented)?)?);
    }
    if events.is_empty() {
        return Ok(screen::print("the audit log is empty")?);
    }
    let now = SystemClock.now();
    for event in &events {
        let subject = event.subject.as_deref().unwrap_or_default();
        let (age, action, actor) = (age(event.time, now), &event.action, &event.actor);
        let line = format!("{age:>10}  {action:<22}  {subject:<24}  {actor}");
        screen::print(&sanitize(&line))?;
    }
    Ok(())
}
