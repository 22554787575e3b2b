//! Unlock methods: creates a vault with them, adds them, and finds out which of them work on this machine.

use super::{PromptMode, VaultContext, can_ask, new_passphrase};
use crate::app::Failure;
use crate::app::notice::notice;
use lango_config::NEW_VAULT_PASSPHRASE;
use lango_vault::{Key, MethodKind, OpenVault, SecretValue, UnlockSecret, VaultError, key_file};
use std::path::Path;

/// Creates the vault for a command that needs one: with the passphrase in the environment, the configured key file,
/// or else a prompt.
pub(super) async fn create_by_default(context: &VaultContext) -> Result<OpenVault, Failure> {
    let access = &context.access;
    let (secret, what) = match (access.passphrase_variable(), &access.key_file) {
        (Some(variable), _) => (
            first_passphrase(context).await?,
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
            first_passphrase(context).await?,
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
    let open = created.map_err(|error| name_variable(context, error))?;
    notice(&format!("created the {}; {what} unlocks it", access.name()));
    let advice = method_advice(context, None, has_passphrase);
    advice.iter().for_each(|line| notice(line));
    if is_typed {
        cache_unlock(context, &open).await?;
    }
    Ok(open)
}

/// Caches the unlock after a passphrase was typed.
pub async fn cache_unlock(context: &VaultContext, open: &OpenVault) -> Result<(), Failure> {
    let sealed = context.access.sealed().await?;
    if context.access.cache_unlock(&sealed, open) {
        notice(&context.access.cache_notice());
    }
    Ok(())
}

/// Converts the error. If a passphrase from an environment variable is too short, the failure names the variable.
pub fn name_variable(context: &VaultContext, error: VaultError) -> Failure {
    match (error, context.access.passphrase_variable()) {
        (error @ VaultError::ShortPassphrase { .. }, Some(variable)) => {
            let message = format!("{variable} cannot be used: {error}");
            Failure::usage(message).next(format!("set {variable} to a longer one"))
        }
        (error, _) => error.into(),
    }
}

/// Returns the methods that work on this machine: the one that just unlocked the vault, and those whose secrets are
/// available.
pub async fn working_methods(
    context: &VaultContext,
    open: &OpenVault,
) -> Result<Vec<u16>, Failure> {
    let access = &context.access;
    let sealed = access.sealed().await?;
    let mut given = access.stored_secrets(&sealed, &mut Vec::new());
    given.extend(access.environment_passphrase());
    let mut working: Vec<u16> = open.unlocked_by().into_iter().collect();
    for secret in given {
        working.extend(sealed.method_of(secret).await?);
    }
    Ok(working)
}

/// Adds the keyring method and returns its id. The key is stored in the keyring first, so that the method works once it is added.
pub async fn add_keyring(context: &VaultContext, open: &OpenVault) -> Result<u16, Failure> {
    let failed = |problem: String| {
        Failure::config(problem)
            .next("use a passphrase or a key file on machines without a desktop session")
    };
    let sealed = context.access.sealed().await?;
    let key = Key::random()?;
    let keyring = &context.access.keyring;
    keyring.store(sealed.id(), &key).map_err(failed)?;
    Ok(open.add_method(UnlockSecret::Keyring(key)).await?)
}

/// Returns the passphrase for a new vault: the one in the environment, or a typed one.
pub async fn first_passphrase(context: &VaultContext) -> Result<UnlockSecret, Failure> {
    match context.access.environment_passphrase() {
        Some(passphrase) => Ok(passphrase),
        None => typed_passphrase(context, context.access.own_passphrase_variable()).await,
    }
}

/// Adds a passphrase and returns the id of the method. Fails if the passphrase already is a method.
pub async fn add_passphrase(context: &VaultContext, open: &OpenVault) -> Result<u16, Failure> {
    let passphrase = added_passphrase(context).await?;
    let sealed = context.access.sealed().await?;
    if let Some(id) = sealed.method_of(passphrase.duplicate()).await? {
        let message = format!("this passphrase already is unlock method {id}");
        return Err(Failure::usage(message).next("choose another one"));
    }
    Ok(open.add_method(passphrase).await?)
}

/// Returns the passphrase to add to a vault. It has its own variable, because the usual one unlocks the vault.
async fn added_passphrase(context: &VaultContext) -> Result<UnlockSecret, Failure> {
    match &context.process_env.new_vault_passphrase {
        Some(passphrase) => {
            let passphrase = SecretValue::new(passphrase.expose());
            Ok(UnlockSecret::Passphrase(passphrase))
        }
        None => typed_passphrase(context, NEW_VAULT_PASSPHRASE).await,
    }
}

async fn typed_passphrase(context: &VaultContext, variable: &str) -> Result<UnlockSecret, Failure> {
    if can_ask() {
        return new_passphrase(&context.access).await;
    }
    let message = "there is no terminal to ask for a new passphrase";
    Err(Failure::config(message).next(format!(
        "set {variable}, or use a key file with `--key-file PATH`"
    )))
}

/// Refuses a key file in the working directory, where agents could read it. The file that `vault.keyFile` names is
/// accepted, because it is hidden from them.
pub fn refuse_visible(context: &VaultContext, path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new(".")).canonicalize();
    let workspace = context.process_env.cwd.canonicalize();
    let (Ok(folder), Ok(workspace)) = (folder, workspace) else {
        return Ok(());
    };
    let is_configured = context.access.key_file.as_deref() == Some(path);
    if is_configured || !folder.starts_with(workspace) {
        return Ok(());
    }
    let path = path.display();
    let message = format!("agents that work in this folder could read the key file {path}");
    let next = "choose a path outside of the working folder, such as ~/.config/lango/vault.key";
    Err(Failure::usage(message).next(next))
}

/// Creates a key file.
pub fn new_key_file(path: &Path) -> Result<UnlockSecret, Failure> {
    let key = key_file::create(path).map_err(|error| match error {
        VaultError::System(message) => {
            Failure::config(message).next("name a path in an existing, writable folder")
        }
        error => error.into(),
    })?;
    Ok(UnlockSecret::KeyFile(key))
}

/// Returns advice on how to use new methods safely. `path` is the key file of a new method.
pub fn method_advice(
    context: &VaultContext,
    path: Option<&Path>,
    has_passphrase: bool,
) -> Vec<String> {
    let mut advice = Vec::new();
    if let Some(path) = path {
        let path = std::path::absolute(path).unwrap_or(path.to_owned());
        let configured = context.access.key_file.as_ref();
        if configured != Some(&path) {
            let file = context.loaded.paths.user_file.display();
            advice.push(format!(
                "to use it, set vault.keyFile = {} in {file}",
                toml::Value::from(path.display().to_string())
            ));
        }
        let place = "keep the key file out of backups of the database, and out of folders that agents work in";
        advice.push(place.to_owned());
    }
    if has_passphrase {
        advice.push("a passphrase that is lost cannot be recovered".to_owned());
    }
    advice
}
