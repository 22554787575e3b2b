//! What `lango doctor` says about the vault: whether it can be unlocked here, records that were changed, and secrets and
//! bindings that cannot be used.

use super::{Finding, Mark};
use crate::app::App;
use crate::screen;
use crate::vault::{Asking, Locked, OWN_COMMAND, Opening, SERVER_TOKEN, VaultAccess};
use lango_core::{Clock, RecordSelection, Timestamp};
use lango_engine::SystemClock;
use lango_secrets::BindingTarget;
use lango_vault::{Entry, MethodKind, SealedVault, date_and_time};

/// Examines the vaults of the user and, if there is one, of `server.user`. Unlocks them if that needs no prompt.
pub(super) async fn examine(app: &App) -> Vec<Finding> {
    let mut findings = Vec::new();
    for user in app.users() {
        let is_own = user == app.user();
        let name = if is_own { "vault" } else { "server vault" };
        let access = app.vault.for_user(user);
        let (mark, detail) = match access.read(RecordSelection::All).await {
            Ok(Some(sealed)) => {
                let results = examine_vault(app, &access, &sealed).await;
                findings.extend(results.into_iter().map(|(mark, detail)| Finding {
                    name,
                    mark,
                    detail,
                }));
                continue;
            }
            Ok(None) if !is_own => continue,
            Ok(None) => {
                let detail = "none (made with the first `lango secrets set`)".to_owned();
                (Mark::Well, detail)
            }
            Err(failure) => {
                let failure = failure.with_command(OWN_COMMAND, access.command());
                (Mark::Faulty, failure.to_string())
            }
        };
        findings.push(Finding { name, mark, detail });
    }
    findings
}

async fn examine_vault(
    app: &App,
    access: &VaultAccess,
    sealed: &SealedVault,
) -> Vec<(Mark, String)> {
    let mut results = vec![examine_unlock(access, sealed).await];
    let (now, command) = (SystemClock.now(), access.command());
    for entry in sealed.entries() {
        let problems = expiry(entry, now, command).into_iter();
        let problems = problems.chain(bindings(app, entry, command));
        results.extend(problems.map(|problem| (Mark::Warning, problem)));
    }
    results
}

/// Opens the vault by the methods of this machine, and checks its records.
async fn examine_unlock(access: &VaultAccess, sealed: &SealedVault) -> (Mark, String) {
    let secrets = screen::count(sealed.entries().count() as u64, "secret");
    let summary = format!("{secrets}; can be unlocked by {}", describe_methods(sealed));
    let (mark, status, problems) = match access.try_open(Asking::Never).await {
        Ok(Opening::Open(open)) => match open.check().await {
            Ok(problems) => (Mark::Well, "; unlocked here".to_owned(), problems),
            Err(error) => (Mark::Faulty, format!("\n{error}"), Vec::new()),
        },
        Ok(Opening::Locked(locked)) => {
            let (mark, status) = describe_locked(access, sealed, &locked);
            (mark, status, sealed.record_problems())
        }
        Err(failure) => (Mark::Faulty, format!("\n{failure}"), Vec::new()),
    };
    let mark = if problems.is_empty() {
        mark
    } else {
        Mark::Faulty
    };
    let problems: String = problems
        .iter()
        .map(|problem| format!("\n{problem}"))
        .collect();
    (mark, format!("{summary}{status}{problems}"))
}

/// Lists the kinds of methods, with a number where there are several: `passphrase, 2 key files`.
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
            count => Some(screen::count(count as u64, name)),
        }
    });
    described.collect::<Vec<_>>().join(", ")
}

/// Describes a vault that nothing here unlocks. Commands ask for the passphrase of the user's vault; `lango serve`, which uses
/// the server's, asks nobody.
fn describe_locked(access: &VaultAccess, sealed: &SealedVault, locked: &Locked) -> (Mark, String) {
    let problems = locked.problems.iter();
    let problems: String = problems.map(|problem| format!("\n{problem}")).collect();
    if !locked.can_be_typed() {
        let next = locked.next_step();
        let text = format!("; nothing here unlocks it{problems}\nnext: {next}");
        return (Mark::Faulty, text);
    }
    if access.command() != OWN_COMMAND {
        let next = locked.next_step();
        let text = format!(
            "; locked, and `lango serve` asks for no passphrase: its agents go without these secrets{problems}\nnext: {next}"
        );
        return (Mark::Warning, text);
    }
    let has_token = sealed
        .entries()
        .any(|entry| entry.name.as_str() == SERVER_TOKEN);
    let token = if has_token {
        "; the token of `lango serve` is in it, so the server does not start before it is unlocked"
    } else {
        ""
    };
    let text = format!("; locked, commands ask for the passphrase at a terminal{token}{problems}");
    if locked.problems.is_empty() && !has_token {
        (Mark::Well, text)
    } else {
        let next = locked.next_step();
        (Mark::Warning, format!("{text}\nnext: {next}"))
    }
}

fn expiry(entry: &Entry, now: Timestamp, command: &str) -> Option<String> {
    let at = entry.expires.filter(|_| entry.is_expired(now))?;
    let name = &entry.name;
    Some(format!(
        "{name} expired on {}, so nothing can use it; `{command} rotate {name}` gives it a new value, `{command} rm {name}` \
         deletes it",
        date_and_time(at)
    ))
}

/// Describes the bindings of a secret that cannot work here.
fn bindings(app: &App, entry: &Entry, command: &str) -> Vec<String> {
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
