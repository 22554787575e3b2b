//! `lango secrets`: manages the vault. Values are typed without echo or piped in; they are never arguments and never
//! printed.

mod bind;
mod import;
mod master;
mod methods;
mod show;

use crate::args::SecretsCommand;
use crate::exit::Exit;
use crate::screen;
use lango::app::Failure;
use lango::app::signals::StopSignals;
use lango::app::vault::{self, Expiry, PromptMode, VaultContext, VaultOwner};
use lango_core::RecordSelection;
use lango_core::text::sanitize;
use lango_vault::{
    MethodKind, NewSecret, OpenVault, SecretEntry, SecretName, SecretValue, date_and_time,
};
use std::ffi::OsString;
use std::io::{BufRead, IsTerminal, Write};

/// Runs the command.
pub(super) async fn secrets(
    config: Vec<String>,
    owner: VaultOwner,
    command: Option<SecretsCommand>,
) -> Result<Exit, Failure> {
    let secrets = VaultContext::load(config, owner)?;
    let done = run(&secrets, command.unwrap_or_default()).await;
    let (name, command) = (secrets.access.name(), secrets.access.command());
    done.map_err(|failure| {
        failure
            .with_vault_name(&name)
            .with_command(vault::OWN_COMMAND, command)
    })
}

async fn run(secrets: &VaultContext, command: SecretsCommand) -> Result<Exit, Failure> {
    match command {
        SecretsCommand::Init(arguments) => methods::init(secrets, &arguments).await?,
        SecretsCommand::Set {
            name,
            expires,
            extra,
        } => {
            refuse_value(&name, &extra, "secrets set")?;
            set(secrets, &name, expires.as_deref()).await?;
        }
        SecretsCommand::List { json } => show::list(secrets, json).await?,
        SecretsCommand::Describe { name, json } => show::describe(secrets, &name, json).await?,
        SecretsCommand::Bind(arguments) => bind::bind(secrets, &arguments).await?,
        SecretsCommand::Unbind { name, number, all } => {
            bind::unbind(secrets, &name, number, all).await?;
        }
        SecretsCommand::Rotate {
            name: Some(name),
            expires,
            extra,
            ..
        } => {
            refuse_value(&name, &extra, "secrets rotate")?;
            rotate(secrets, &name, expires.as_deref()).await?;
        }
        SecretsCommand::Rotate {
            master: true,
            without,
            ..
        } => master::rotate(secrets, &without).await?,
        SecretsCommand::Rotate { .. } => {
            let message = "name the secret that gets a new value, or use `--master` to replace the vault's master key";
            return Err(Failure::usage(message).next(
                "`lango secrets rotate NAME` or `lango secrets rotate --master`; run `lango secrets list` to see the names",
            ));
        }
        SecretsCommand::Rm { name, yes } => remove(secrets, &name, yes).await?,
        SecretsCommand::Unlock => unlock(secrets).await?,
        SecretsCommand::Lock => lock(secrets).await?,
        SecretsCommand::ImportEnv { names } => import::import(secrets, &names).await?,
        SecretsCommand::Methods { command } => methods::methods(secrets, command).await?,
        SecretsCommand::Log { limit, json } => show::log(secrets, limit, json).await?,
        SecretsCommand::Destroy { yes } => destroy(secrets, yes).await?,
    }
    Ok(Exit::Ok)
}

/// Refuses a value given on the command line, even in place of the name. The error does not repeat the value.
pub(super) fn refuse_value(name: &str, extra: &[OsString], command: &str) -> Result<(), Failure> {
    let is_value = SecretName::looks_like_value(name);
    if extra.is_empty() && !is_value {
        return Ok(());
    }
    let message = "the value of a secret is never an argument: other users of this machine can read command lines, and \
                   your shell stores them";
    let next = match SecretName::new(name) {
        Ok(name) if !is_value => format!("lango {command} {name}"),
        _ => format!("lango {command} NAME"),
    };
    Err(Failure::usage(message).next(format!(
        "run `{next}` and type the value, or pipe it in; if it was a real secret, replace it at the service that issued it"
    )))
}

async fn set(secrets: &VaultContext, name: &str, expires: Option<&str>) -> Result<(), Failure> {
    let name = SecretName::new(name)?;
    let expiry = expires
        .map(Expiry::parse)
        .transpose()?
        .unwrap_or(Expiry::Never);
    let piped = piped_value("secrets set", &name)?;
    let open = secrets.open_or_create().await?;
    let old = vault::find_entry(&open, &name).await?;
    let entry = store(secrets, &open, &name, piped, expiry).await?;
    let warning = vault::lost_expiry_warning(&secrets.access, old.as_ref(), &entry);
    warning.iter().for_each(|warning| screen::say(warning));
    Ok(())
}

async fn remove(secrets: &VaultContext, name: &str, is_confirmed: bool) -> Result<(), Failure> {
    let name = SecretName::new(name)?;
    let open = secrets.access.open(PromptMode::Allowed).await?;
    vault::remove_secret(&open, &name, is_confirmed).await?;
    screen::print(&format!("deleted {name}"))?;
    Ok(())
}

async fn rotate(secrets: &VaultContext, name: &str, expires: Option<&str>) -> Result<(), Failure> {
    let name = SecretName::new(name)?;
    let expiry = expires.map(Expiry::parse).transpose()?;
    // Fail early if there is no vault, whatever the value is.
    secrets.access.sealed().await?;
    let piped = piped_value("secrets rotate", &name)?;
    let open = secrets.access.open(PromptMode::Allowed).await?;
    let old = vault::existing_entry(&open, &name).await?;
    let keeps_lifetime = expiry.is_none() && old.expires.is_some();
    let expiry = expiry.unwrap_or_else(|| Expiry::same_lifetime_as(&old));
    let entry = store(secrets, &open, &name, piped, expiry).await?;
    if let Some(at) = entry.expires.filter(|_| keeps_lifetime) {
        screen::say(&format!(
            "it expires on {}, with the same lifetime as the previous value; use `--expires` to set another one, or `--expires never`",
            date_and_time(at)
        ));
    }
    Ok(())
}

async fn store(
    secrets: &VaultContext,
    open: &OpenVault,
    name: &SecretName,
    piped: Option<SecretValue>,
    expiry: Expiry,
) -> Result<SecretEntry, Failure> {
    let value = match piped {
        Some(value) => {
            vault::warn_if_short(name, &value);
            value
        }
        None => vault::read_secret_value(&secrets.access.echo_guard(), name).await?,
    };
    vault::check_token(name, &value)?;
    let secret = NewSecret {
        expires: expiry.time(),
        ..NewSecret::new(value)
    };
    let entry = open.set(name, secret).await?;
    screen::print(&vault::describe_stored(&entry))?;
    Ok(entry)
}

/// Returns the value from standard input, unless that is a terminal. It is read before the vault is touched, so that
/// an empty value creates nothing.
pub(super) fn piped_value(
    command: &str,
    name: &SecretName,
) -> Result<Option<SecretValue>, Failure> {
    if std::io::stdin().is_terminal() {
        return Ok(None);
    }
    let value = vault::read_piped()?;
    if value.is_empty() {
        let message = "standard input is empty, so there is no value to store";
        return Err(Failure::usage(message).next(format!(
            "for example: `pass show {name} | lango {command} {name}`"
        )));
    }
    vault::check_token(name, &value)?;
    Ok(Some(value))
}

/// Asks a yes-or-no question at the terminal, and prints a note if the answer is no. Fails with `refusal` if there is
/// no terminal.
pub(super) async fn confirm(
    secrets: &VaultContext,
    question: &str,
    refusal: Failure,
) -> Result<bool, Failure> {
    let answer = read_answer(secrets, &format!("{question} [y/N] "), refusal).await?;
    let is_confirmed = matches!(answer.as_str(), "y" | "yes");
    if !is_confirmed {
        screen::say("nothing was changed");
    }
    Ok(is_confirmed)
}

/// Reads the answer to a question at the terminal, in lower case. Fails with `refusal` if there is no terminal.
pub(super) async fn read_answer(
    secrets: &VaultContext,
    question: &str,
    refusal: Failure,
) -> Result<String, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(refusal);
    }
    // A passphrase prompt may have turned the echo off.
    secrets.access.echo_guard().end();
    let mut out = std::io::stderr();
    write!(out, "{}", sanitize(question))?;
    out.flush()?;
    let reading = tokio::task::spawn_blocking(|| {
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        read.map(|_| answer)
    });
    let mut signals = StopSignals::listen()?;
    let answer = signals.guard(async { Ok(reading.await.map_err(std::io::Error::other)??) });
    Ok(answer.await?.trim().to_lowercase())
}

async fn unlock(secrets: &VaultContext) -> Result<(), Failure> {
    let access = &secrets.access;
    let sealed = access.sealed().await?;
    let open = access.open(PromptMode::AllowedForUnlock).await?;
    screen::print(&if access.cache_unlock(&sealed, &open) {
        access.cache_notice()
    } else {
        format!(
            "the {} can be unlocked; this system has no kernel keyring, so each command asks for the passphrase again",
            access.name()
        )
    })?;
    Ok(())
}

async fn lock(secrets: &VaultContext) -> Result<(), Failure> {
    let access = &secrets.access;
    let sealed = access.sealed().await?;
    let name = access.name();
    screen::print(&if access.clear_cached_unlock(&sealed) {
        format!("locked the {name}")
    } else {
        format!("the {name} was already locked")
    })?;
    let has = |kind| sealed.methods().iter().any(|method| method.kind() == kind);
    let variable = access.passphrase_variable();
    if let Some(variable) = variable.filter(|_| has(MethodKind::Passphrase)) {
        screen::say(&format!(
            "{variable} is set, so every command unlocks it again; to prevent that, `unset {variable}`"
        ));
    } else if access.key_file.is_some() && has(MethodKind::KeyFile) {
        screen::say("the key file in `vault.keyFile` still unlocks it for every command");
    } else if has(MethodKind::Keyring) {
        screen::say("the keyring of your desktop still unlocks it for every command");
    }
    Ok(())
}

async fn destroy(secrets: &VaultContext, yes: bool) -> Result<(), Failure> {
    let access = &secrets.access;
    // A damaged vault can be deleted too.
    let sealed = access.read(RecordSelection::None).await.ok().flatten();
    let contents = sealed
        .as_ref()
        .map_or_else(String::new, vault::describe_contents);
    let user = access.vault.user();
    if !yes {
        let message = format!("this permanently deletes the vault of `{user}`{contents}");
        let command = access.command();
        return Err(Failure::usage(message).next(format!("{command} destroy --yes")));
    }
    if let Some(sealed) = &sealed {
        access.clear_cached_unlock(sealed);
    }
    access.vault.delete().await?;
    screen::print(&format!("deleted the vault of `{user}`{contents}"))?;
    Ok(())
}
