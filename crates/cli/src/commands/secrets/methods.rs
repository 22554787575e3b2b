//! Creates the vault, and manages its unlock methods.

use super::confirm;
use crate::args::{MethodArguments, MethodsCommand};
use crate::screen::{self, Layout, age};
use lango::app::Failure;
use lango::app::vault::methods::{
    add_keyring, add_passphrase, cache_unlock, first_passphrase, method_advice, name_variable,
    new_key_file, refuse_visible, working_methods,
};
use lango::app::vault::{PromptMode, VaultContext};
use lango_core::{Clock, RecordSelection};
use lango_engine::SystemClock;
use lango_vault::{MethodId, UnlockMethod, VaultError, list_methods};
use serde_json::json;

/// Creates the vault with the requested methods; a passphrase by default.
pub(super) async fn init(
    secrets: &VaultContext,
    arguments: &MethodArguments,
) -> Result<(), Failure> {
    let found = secrets.access.read(RecordSelection::None).await?;
    if found.is_some() {
        return Err(VaultError::Exists.into());
    }
    let is_default = !arguments.passphrase && arguments.key_file.is_none() && !arguments.keyring;
    let with_passphrase = arguments.passphrase || is_default;
    let is_typed = with_passphrase && secrets.access.environment_passphrase().is_none();
    let mut given = Vec::new();
    if with_passphrase {
        given.push(first_passphrase(secrets).await?);
    }
    if let Some(path) = &arguments.key_file {
        refuse_visible(secrets, path)?;
        given.push(new_key_file(path)?);
    }
    if given.is_empty() {
        let message =
            "a vault with only the keyring method could not be opened on any other machine";
        return Err(Failure::usage(message).next("lango secrets init --passphrase --keyring"));
    }
    let created = secrets.access.vault.create(given).await;
    let open = created.map_err(|error| name_variable(secrets, error))?;
    screen::say(&format!("created the {}", secrets.access.name()));
    if is_typed {
        cache_unlock(secrets, &open).await?;
    }
    if arguments.keyring {
        let id = add_keyring(secrets, &open).await?;
        screen::print(&format!("added unlock method {id} (keyring)"))?;
    }
    let advice = method_advice(secrets, arguments.key_file.as_deref(), with_passphrase);
    advice.iter().for_each(|line| screen::say(line));
    Ok(())
}

/// Lists, adds or removes methods.
pub(super) async fn methods(
    secrets: &VaultContext,
    command: Option<MethodsCommand>,
) -> Result<(), Failure> {
    match command.unwrap_or(MethodsCommand::List { json: false }) {
        MethodsCommand::List { json } => list(secrets, json).await,
        MethodsCommand::Add(arguments) => add(secrets, &arguments).await,
        MethodsCommand::Remove { id, yes } => remove(secrets, id, yes).await,
    }
}

/// Removes a method. The user has to confirm it if no other method is known to work on this machine.
async fn remove(secrets: &VaultContext, id: u16, is_confirmed: bool) -> Result<(), Failure> {
    let (access, command) = (&secrets.access, secrets.access.command());
    let open = access.open(PromptMode::Allowed).await?;
    let methods = open.methods().await?;
    let rest = methods.iter().filter(|method| method.id != id);
    let rest: Vec<MethodId> = rest.map(UnlockMethod::described_id).collect();
    let exists = rest.len() < methods.len();
    // An id that does not exist, and the last method, are refused below.
    if exists && !rest.is_empty() && !is_confirmed {
        let working = working_methods(secrets, &open).await?;
        if !rest.iter().any(|method| working.contains(&method.id)) {
            let left = list_methods(&rest);
            let message = format!(
                "without method {id} only {left} can unlock the {}, and that has not been shown to work on this machine",
                access.name()
            );
            let next = format!(
                "try it first: `{command} lock`, then `{command} unlock`; `{command} methods remove {id} --yes` removes it anyway"
            );
            let question = format!("{message}. Remove method {id}?");
            let refusal = Failure::usage(message).next(next);
            if !confirm(secrets, &question, refusal).await? {
                return Ok(());
            }
        }
    }
    open.remove_method(id).await?;
    screen::print(&format!(
        "removed unlock method {id}; remaining: {}. If others may know the removed secret, also run `{command} rotate --master`",
        list_methods(&rest)
    ))?;
    Ok(())
}

async fn list(secrets: &VaultContext, as_json: bool) -> Result<(), Failure> {
    let sealed = secrets.access.sealed().await?;
    let now = SystemClock.now();
    if as_json {
        let rows = sealed.methods().iter().map(|method| {
            let kind = method.kind().to_string();
            json!({ "id": method.id, "method": kind, "created": method.created.0 })
        });
        let rows: Vec<_> = rows.collect();
        return Ok(screen::print(&screen::json(&rows, Layout::Indented)?)?);
    }
    for method in sealed.methods() {
        let kind = method.kind().to_string();
        let age = age(method.created, now);
        screen::print(&format!("{:>3}  {kind:<10}  added {age}", method.id))?;
    }
    Ok(())
}

async fn add(secrets: &VaultContext, arguments: &MethodArguments) -> Result<(), Failure> {
    if !arguments.passphrase && arguments.key_file.is_none() && !arguments.keyring {
        let message = "no unlock method was given";
        return Err(Failure::usage(message)
            .next("lango secrets methods add --passphrase, --key-file PATH or --keyring"));
    }
    if let Some(path) = &arguments.key_file {
        refuse_visible(secrets, path)?;
    }
    let open = secrets.access.open(PromptMode::Allowed).await?;
    if arguments.passphrase {
        let id = add_passphrase(secrets, &open).await?;
        screen::print(&format!("added unlock method {id} (passphrase)"))?;
    }
    if let Some(path) = &arguments.key_file {
        let id = open.add_method(new_key_file(path)?).await?;
        screen::print(&format!("added unlock method {id} (key file)"))?;
    }
    if arguments.keyring {
        let id = add_keyring(secrets, &open).await?;
        screen::print(&format!("added unlock method {id} (keyring)"))?;
    }
    let advice = method_advice(secrets, arguments.key_file.as_deref(), false);
    advice.iter().for_each(|line| screen::say(line));
    Ok(())
}
