//! Creates the vault, and manages its unlock methods.

use super::{Secrets, confirm};
use crate::args::{MethodArguments, MethodsCommand};
use crate::screen::{self, Layout, age};
use lango::app::Failure;
use lango::app::vault::{self, PromptMode};
use lango_config::NEW_VAULT_PASSPHRASE;
use lango_core::{Clock, RecordSelection};
use lango_engine::SystemClock;
use lango_vault::{
    Key, MethodId, MethodKind, OpenVault, SecretValue, UnlockMethod, UnlockSecret, VaultError,
    key_file, list_methods,
};
use serde_json::json;
use std::path::Path;

/// Creates the vault with the requested methods; a passphrase by default.
pub async fn init(secrets: &Secrets, arguments: &MethodArguments) -> Result<(), Failure> {
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
        add_keyring(secrets, &open).await?;
    }
    print_method_advice(secrets, arguments.key_file.as_deref(), with_passphrase)?;
    Ok(())
}

/// Creates the vault for a command that needs one: with the passphrase in the environment, the configured key file,
/// or else a prompt.
pub async fn create_by_default(secrets: &Secrets) -> Result<OpenVault, Failure> {
    let access = &secrets.access;
    let (secret, what) = match (access.passphrase_variable(), &access.key_file) {
        (Some(variable), _) => (
            first_passphrase(secrets).await?,
            format!("the passphrase in {variable}"),
        ),
        (None, Some(path)) => {
            let secret = match path.try_exists() {
                Ok(true) => UnlockSecret::KeyFile(key_file::read(path)?),
                _ => new_key_file(path)?,
            };
            (secret, "its key file".to_owned())
        }
        (None, None) => (
            first_passphrase(secrets).await?,
            "its passphrase".to_owned(),
        ),
    };
    let has_passphrase = secret.kind() == MethodKind::Passphrase;
    let is_typed = has_passphrase && access.passphrase_variable().is_none();
    let created = access.vault.create(vec![secret]).await;
    if let Err(VaultError::Exists) = created {
        // Another process created it first.
        return access.open(PromptMode::Allowed).await;
    }
    let open = created.map_err(|error| name_variable(secrets, error))?;
    screen::say(&format!("created the {}; {what} unlocks it", access.name()));
    print_method_advice(secrets, None, has_passphrase)?;
    if is_typed {
        cache_unlock(secrets, &open).await?;
    }
    Ok(open)
}

/// Caches the unlock after a passphrase was typed.
async fn cache_unlock(secrets: &Secrets, open: &OpenVault) -> Result<(), Failure> {
    let sealed = secrets.access.sealed().await?;
    if secrets.access.cache_unlock(&sealed, open) {
        screen::say(&secrets.access.cache_notice());
    }
    Ok(())
}

/// Converts the error. If a passphrase from an environment variable is too short, the failure names the variable.
fn name_variable(secrets: &Secrets, error: VaultError) -> Failure {
    match (error, secrets.access.passphrase_variable()) {
        (error @ VaultError::ShortPassphrase { .. }, Some(variable)) => {
            let message = format!("{variable} cannot be used: {error}");
            Failure::usage(message).next(format!("set {variable} to a longer one"))
        }
        (error, _) => error.into(),
    }
}

/// Lists, adds or removes methods.
pub async fn methods(secrets: &Secrets, command: Option<MethodsCommand>) -> Result<(), Failure> {
    match command.unwrap_or(MethodsCommand::List { json: false }) {
        MethodsCommand::List { json } => list(secrets, json).await,
        MethodsCommand::Add(arguments) => add(secrets, &arguments).await,
        MethodsCommand::Remove { id, yes } => remove(secrets, id, yes).await,
    }
}

/// Removes a method. The user has to confirm it if no other method is known to work on this machine.
async fn remove(secrets: &Secrets, id: u16, is_confirmed: bool) -> Result<(), Failure> {
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

/// Returns the methods that work on this machine: the one that just unlocked the vault, and those whose secrets are
/// available.
async fn working_methods(secrets: &Secrets, open: &OpenVault) -> Result<Vec<u16>, Failure> {
    let access = &secrets.access;
    let sealed = access.sealed().await?;
    let mut given = access.stored_secrets(&sealed, &mut Vec::new());
    given.extend(access.environment_passphrase());
    let mut working: Vec<u16> = open.unlocked_by().into_iter().collect();
    for secret in given {
        working.extend(sealed.method_of(secret).await?);
    }
    Ok(working)
}

async fn list(secrets: &Secrets, as_json: bool) -> Result<(), Failure> {
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

async fn add(secrets: &Secrets, arguments: &MethodArguments) -> Result<(), Failure> {
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
        let passphrase = added_passphrase(secrets).await?;
        let sealed = secrets.access.sealed().await?;
        if let Some(id) = sealed.method_of(passphrase.duplicate()).await? {
            let message = format!("this passphrase already is unlock method {id}");
            return Err(Failure::usage(message).next("choose another one"));
        }
        let id = open.add_method(passphrase).await?;
        screen::print(&format!("added unlock method {id} (passphrase)"))?;
    }
    if let Some(path) = &arguments.key_file {
        let id = open.add_method(new_key_file(path)?).await?;
        screen::print(&format!("added unlock method {id} (key file)"))?;
    }
    if arguments.keyring {
        add_keyring(secrets, &open).await?;
    }
    print_method_advice(secrets, arguments.key_file.as_deref(), false)
}

/// Adds the keyring method. The key is stored in the keyring first, so that the method works once it is added.
async fn add_keyring(secrets: &Secrets, open: &OpenVault) -> Result<(), Failure> {
    let failed = |problem: String| {
        Failure::config(problem)
            .next("use a passphrase or a key file on machines without a desktop session")
    };
    let sealed = secrets.access.sealed().await?;
    let key = Key::random()?;
    let keyring = &secrets.access.keyring;
    keyring.store(sealed.id(), &key).map_err(failed)?;
    let id = open.add_method(UnlockSecret::Keyring(key)).await?;
    screen::print(&format!("added unlock method {id} (keyring)"))?;
    Ok(())
}

/// Returns the passphrase for a new vault: the one in the environment, or a typed one.
async fn first_passphrase(secrets: &Secrets) -> Result<UnlockSecret, Failure> {
    match secrets.access.environment_passphrase() {
        Some(passphrase) => Ok(passphrase),
        None => typed_passphrase(secrets, secrets.access.own_passphrase_variable()).await,
    }
}

/// Returns the passphrase to add to a vault. It has its own variable, because the usual one unlocks the vault.
async fn added_passphrase(secrets: &Secrets) -> Result<UnlockSecret, Failure> {
    match &secrets.process_env.new_vault_passphrase {
        Some(passphrase) => {
            let passphrase = SecretValue::new(passphrase.expose());
            Ok(UnlockSecret::Passphrase(passphrase))
        }
        None => typed_passphrase(secrets, NEW_VAULT_PASSPHRASE).await,
    }
}

async fn typed_passphrase(secrets: &Secrets, variable: &str) -> Result<UnlockSecret, Failure> {
    if vault::can_ask() {
        return vault::new_passphrase(&secrets.access).await;
    }
    let message = "there is no terminal to ask for a new passphrase";
    Err(Failure::config(message).next(format!(
        "set {variable}, or use a key file with `--key-file PATH`"
    )))
}

/// Refuses a key file in the working directory, where agents could read it. The file that `vault.keyFile` names is
/// accepted, because it is hidden from them.
fn refuse_visible(secrets: &Secrets, path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new(".")).canonicalize();
    let workspace = secrets.process_env.cwd.canonicalize();
    let (Ok(folder), Ok(workspace)) = (folder, workspace) else {
        return Ok(());
    };
    let is_configured = secrets.access.key_file.as_deref() == Some(path);
    if is_configured || !folder.starts_with(workspace) {
        return Ok(());
    }
    let path = path.display();
    let message = format!("agents that work in this folder could read the key file {path}");
    let next = "choose a path outside of the working folder, such as ~/.config/lango/vault.key";
    Err(Failure::usage(message).next(next))
}

fn new_key_file(path: &Path) -> Result<UnlockSecret, Failure> {
    let key = key_file::create(path).map_err(|error| match error {
        VaultError::System(message) => {
            Failure::config(message).next("name a path in an existing, writable folder")
        }
        error => error.into(),
    })?;
    Ok(UnlockSecret::KeyFile(key))
}

/// Prints how to use the new methods safely.
fn print_method_advice(
    secrets: &Secrets,
    path: Option<&Path>,
    has_passphrase: bool,
) -> Result<(), Failure> {
    if let Some(path) = path {
        let path = std::path::absolute(path).unwrap_or(path.to_owned());
        let configured = secrets.access.key_file.as_ref();
        if configured != Some(&path) {
            let file = secrets.loaded.paths.user_file.display();
            screen::say(&format!(
                "to use it, set vault.keyFile = {} in {file}",
                toml::Value::from(path.display().to_string())
            ));
        }
        screen::say(
            "keep the key file out of backups of the database, and out of folders that agents work in",
        );
    }
    if has_passphrase {
        screen::say("a passphrase that is lost cannot be recovered");
    }
    Ok(())
}
