//! The vault checks of `lango doctor`: whether a vault can be unlocked here, whether records were tampered with, and
//! which secrets and bindings cannot be used.

use super::{CheckStatus, Finding};
use crate::app::App;
use crate::app::vault::{
    LockedVault, OWN_COMMAND, OpenResult, PromptMode, SERVER_TOKEN, VaultAccess,
};
use lango_core::text;
use lango_core::{Clock, RecordSelection, Timestamp};
use lango_engine::SystemClock;
use lango_secrets::BindingTarget;
use lango_vault::{MethodKind, SealedVault, SecretEntry, date_and_time};

/// Examines the user's vault and, if it exists, the vault of `server.user`. Unlocks them if that needs no prompt.
pub(super) async fn examine(app: &App) -> Vec<Finding> {
    let mut findings = Vec::new();
    for user in app.users() {
        let is_own = user == app.user();
        let name = if is_own { "vault" } else { "server vault" };
        let access = app.vault.for_user(user);
        let (status, detail) = match access.read(RecordSelection::All).await {
            Ok(Some(sealed)) => {
                let results = examine_vault(app, &access, &sealed).await;
                findings.extend(results.into_iter().map(|(status, detail)| Finding {
                    name,
                    status,
                    detail,
                }));
                continue;
            }
            Ok(None) if !is_own => continue,
            Ok(None) => {
                let detail = "none (created by the first `lango secrets set`)".to_owned();
                (CheckStatus::Passed, detail)
            }
            Err(failure) => {
                let failure = failure.with_command(OWN_COMMAND, access.command());
                (CheckStatus::Failed, failure.to_string())
            }
        };
        findings.push(Finding {
            name,
            status,
            detail,
        });
    }
    findings
}

async fn examine_vault(
    app: &App,
    access: &VaultAccess,
    sealed: &SealedVault,
) -> Vec<(CheckStatus, String)> {
    let mut results = vec![examine_unlock(access, sealed).await];
    let (now, command) = (SystemClock.now(), access.command());
    for entry in sealed.entries() {
        let problems = expiry(entry, now, command).into_iter();
        let problems = problems.chain(bindings(app, entry, command));
        results.extend(problems.map(|problem| (CheckStatus::Warning, problem)));
    }
    results
}

/// Opens the vault with the methods available on this machine, and checks its records.
async fn examine_unlock(access: &VaultAccess, sealed: &SealedVault) -> (CheckStatus, String) {
    let secrets = text::count(sealed.entries().count() as u64, "secret");
    let summary = format!("{secrets}; can be unlocked by {}", describe_methods(sealed));
    let (status, unlock, problems) = match access.try_open(PromptMode::Never).await {
        Ok(OpenResult::Open(open)) => match open.check().await {
            Ok(problems) => (CheckStatus::Passed, "; unlocked here".to_owned(), problems),
            Err(error) => (CheckStatus::Failed, format!("\n{error}"), Vec::new()),
        },
        Ok(OpenResult::Locked(locked)) => {
            let (status, unlock) = describe_locked(access, sealed, &locked);
            (status, unlock, sealed.record_problems())
        }
        Err(failure) => (CheckStatus::Failed, format!("\n{failure}"), Vec::new()),
    };
    let status = if problems.is_empty() {
        status
    } else {
        CheckStatus::Failed
    };
    let problems: String = problems
        .iter()
        .map(|problem| format!("\n{problem}"))
        .collect();
    (status, format!("{summary}{unlock}{problems}"))
}

/// Lists the kinds of unlock methods, with a number if there are several: `passphrase, 2 key files`.
fn describe_methods(sealed: &SealedVault) -> String {
    let kinds = [
        (MethodKind::Passphrase, "passphrase"),
        (MethodKind::KeyFile, "key file"),
        (MethodKind::Keyring, "keyring"),
    ];
    let described = kinds.iter().filter_map(|(kind, name)| {
        let methods = sealed.methods().iter();
        match methods.filter(|method| method.kind() == *kind).count() {
            0 => None,
            1 => Some((*name).to_owned()),
            count => Some(text::count(count as u64, name)),
        }
    });
    described.collect::<Vec<_>>().join(", ")
}

/// Describes a vault that no method unlocks here. Commands prompt for the passphrase of the user's vault; `lango
/// serve`, which uses the server's vault, never prompts.
fn describe_locked(
    access: &VaultAccess,
    sealed: &SealedVault,
    locked: &LockedVault,
) -> (CheckStatus, String) {
    let problems = locked.problems.iter();
    let problems: String = problems.map(|problem| format!("\n{problem}")).collect();
    if !locked.can_be_typed() {
        let next = locked.next_step();
        let text = format!("; no method on this machine unlocks it{problems}\nnext: {next}");
        return (CheckStatus::Failed, text);
    }
    if access.command() != OWN_COMMAND {
        let next = locked.next_step();
        let text = format!(
            "; locked, and `lango serve` never asks for a passphrase, so its agents cannot use these secrets{problems}\nnext: {next}"
        );
        return (CheckStatus::Warning, text);
    }
    let has_token = sealed
        .entries()
        .any(|entry| entry.name.as_str() == SERVER_TOKEN);
    let token = if has_token {
        "; it contains the token of `lango serve`, so the server cannot start until it is unlocked"
    } else {
        ""
    };
    let text = format!("; locked; commands ask for the passphrase at a terminal{token}{problems}");
    if locked.problems.is_empty() && !has_token {
        (CheckStatus::Passed, text)
    } else {
        let next = locked.next_step();
        (CheckStatus::Warning, format!("{text}\nnext: {next}"))
    }
}

fn expiry(entry: &SecretEntry, now: Timestamp, command: &str) -> Option<String> {
    let at = entry.expires.filter(|_| entry.is_expired(now))?;
    let name = &entry.name;
    Some(format!(
        "{name} expired on {} and cannot be used; `{command} rotate {name}` sets a new value, `{command} rm {name}` \
         deletes it",
        date_and_time(at)
    ))
}

/// Describes which bindings of a secret cannot work here.
fn bindings(app: &App, entry: &SecretEntry, command: &str) -> Vec<String> {
    let name = &entry.name;
    let numbered = entry.bindings.iter().enumerate();
    let broken = numbered.filter_map(|(at, binding)| {
        let origin = match &binding.target {
            BindingTarget::Header { origin, .. } => Some(origin),
            BindingTarget::Field { origin, .. } => origin.as_ref(),
            BindingTarget::Program { .. } | BindingTarget::ServerField { .. } => None,
        };
        let place = match origin {
            Some(origin) => format!("at {origin}"),
            None => format!("by {}", binding.tool),
        };
        match app.vaults.check_place(binding) {
            Ok(None) => None,
            Ok(Some(missing)) => Some(format!("{name} cannot be used {place}: {missing}")),
            Err(problem) => Some(format!(
                "{name} cannot be used {place}: {problem}; `{command} unbind {name} {}` removes the binding",
                at + 1
            )),
        }
    });
    broken.collect()
}
