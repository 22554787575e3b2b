//! What `lango doctor` says about the vault: whether it can be unlocked here, records that were changed, and secrets and
//! bindings that cannot be used.

use super::{Finding, Mark};
use crate::app::App;
use crate::screen;
use crate::vault::{Asking, Locked, Opening};
use lango_core::{Clock, RecordSelection, Timestamp};
use lango_engine::SystemClock;
use lango_secrets::BindingTarget;
use lango_vault::{Entry, SealedVault, date};

/// Examines the vault of the user. Unlocks it if that needs no prompt.
pub(super) async fn examine(app: &App) -> Vec<Finding> {
    let sealed = match app.vault.read(RecordSelection::All).await {
        Ok(Some(sealed)) => sealed,
        Ok(None) => {
            let detail = "none (made with the first `lango secrets set`)".to_owned();
            return vec![finding(Mark::Well, detail)];
        }
        Err(failure) => return vec![finding(Mark::Faulty, failure.to_string())],
    };
    let mut findings = vec![examine_unlock(app, &sealed).await];
    let now = SystemClock.now();
    for entry in sealed.entries() {
        let problems = expiry(entry, now).into_iter().chain(bindings(app, entry));
        findings.extend(problems.map(|problem| finding(Mark::Warning, problem)));
    }
    findings
}

fn finding(mark: Mark, detail: String) -> Finding {
    Finding {
        name: "vault",
        mark,
        detail,
    }
}

/// Opens the vault by the methods of this machine, and checks its records.
async fn examine_unlock(app: &App, sealed: &SealedVault) -> Finding {
    let methods = sealed.methods().iter();
    let methods: Vec<String> = methods.map(|method| method.kind().to_string()).collect();
    let secrets = screen::count(sealed.entries().count() as u64, "secret");
    let summary = format!("{secrets}; can be unlocked by {}", methods.join(", "));
    let (mark, status, problems) = match app.vault.try_open(Asking::Never).await {
        Ok(Opening::Open(open)) => match open.check().await {
            Ok(problems) => (Mark::Well, "; unlocked here".to_owned(), problems),
            Err(error) => (Mark::Faulty, format!("\n{error}"), Vec::new()),
        },
        Ok(Opening::Locked(locked)) => {
            let (mark, status) = describe_locked(&locked);
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
    finding(mark, format!("{summary}{status}{problems}"))
}

fn describe_locked(locked: &Locked) -> (Mark, String) {
    let problems = locked.problems.iter();
    let problems: String = problems.map(|problem| format!("\n{problem}")).collect();
    if !locked.can_be_typed() {
        let next = locked.next_step();
        let text = format!("; nothing here unlocks it{problems}\nnext: {next}");
        return (Mark::Faulty, text);
    }
    let text = format!("; locked, asks for the passphrase at a terminal{problems}");
    if locked.problems.is_empty() {
        (Mark::Well, text)
    } else {
        let next = locked.next_step();
        (Mark::Warning, format!("{text}\nnext: {next}"))
    }
}

fn expiry(entry: &Entry, now: Timestamp) -> Option<String> {
    let at = entry.expires.filter(|_| entry.is_expired(now))?;
    let name = &entry.name;
    Some(format!(
        "{name} expired on {}, so nothing can use it; `lango secrets rotate {name}` gives it a new value, `lango secrets rm \
         {name}` deletes it",
        date(at)
    ))
}

/// Describes the bindings of a secret that cannot work here.
fn bindings(app: &App, entry: &Entry) -> Vec<String> {
    let name = &entry.name;
    let numbered = entry.bindings.iter().enumerate();
    let broken = numbered.filter_map(|(at, binding)| {
        let origin = match &binding.target {
            BindingTarget::Header { origin, .. } => Some(origin),
            BindingTarget::Field { origin, .. } => origin.as_ref(),
            BindingTarget::Program { .. } => None,
        };
        let place = match origin {
            Some(origin) => format!("at {origin}"),
            None => format!("by {}", binding.tool),
        };
        match app.vaults.check_place(binding) {
            Ok(None) => None,
            Ok(Some(missing)) => Some(format!("{name} cannot be used {place}: {missing}")),
            Err(problem) => Some(format!(
                "{name} cannot be used {place}: {problem}; `lango secrets unbind {name} {}` removes the binding",
                at + 1
            )),
        }
    });
    broken.collect()
}
