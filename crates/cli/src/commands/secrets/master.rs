//! `lango secrets rotate --master`: replaces the master key and wraps the new one for every remaining unlock method.

use crate::screen;
use lango::app::Failure;
use lango::app::vault::{self, PromptMode, VaultContext};
use lango_vault::{MethodKind, SealedVault, UnlockMethod, UnlockSecret, VaultError};

/// Runs the command. If the unlock was cached or a passphrase was typed, the unlock with the new key is cached too.
pub(super) async fn rotate(secrets: &VaultContext, without: &[u16]) -> Result<(), Failure> {
    let access = &secrets.access;
    let open = access.open(PromptMode::Allowed).await?;
    let sealed = access.sealed().await?;
    let mut problems = Vec::new();
    let mut given = access.stored_secrets(&sealed, &mut problems);
    let mut in_environment = None;
    if let Some(passphrase) = access.environment_passphrase() {
        in_environment = sealed.method_of(passphrase.duplicate()).await?;
        given.push(passphrase);
    }
    let is_asked = |method: &&UnlockMethod| {
        let is_left_out = without.contains(&method.id) || in_environment == Some(method.id);
        method.kind() == MethodKind::Passphrase && !is_left_out
    };
    let mut is_typed = false;
    for method in sealed.methods().iter().filter(is_asked) {
        if vault::can_ask() {
            given.push(ask(secrets, &sealed, method.id).await?);
            is_typed = true;
        }
    }
    problems.iter().for_each(|problem| screen::say(problem));
    let open = open.rotate_master(given, without).await?;
    let was_cached = access.clear_cached_unlock(&sealed);
    screen::print("the master key was replaced")?;
    if (was_cached || is_typed) && access.cache_unlock(&sealed, &open) {
        screen::say(&access.cache_notice());
    }
    Ok(())
}

/// Prompts for the passphrase of an unlock method, and again if it is wrong.
async fn ask(
    secrets: &VaultContext,
    sealed: &SealedVault,
    id: u16,
) -> Result<UnlockSecret, Failure> {
    let access = &secrets.access;
    let question = format!("passphrase of the {}, unlock method {id}: ", access.name());
    let mut tries = 1;
    loop {
        let typed = vault::read_hidden(&access.echo_guard(), &question).await?;
        let typed = UnlockSecret::Passphrase(typed);
        if sealed.unlocks_method(id, typed.duplicate()).await? {
            return Ok(typed);
        }
        if tries == vault::MAX_TRIES {
            let method = MethodKind::Passphrase;
            return Err(VaultError::WrongSecret { method }.into());
        }
        tries += 1;
        screen::say(&format!(
            "this is not the passphrase of unlock method {id}; try again"
        ));
    }
}
