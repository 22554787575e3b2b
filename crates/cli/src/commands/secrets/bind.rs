//! `lango secrets bind`, `unbind` and `describe`: the places where the value of a secret may be used.

use super::Secrets;
use crate::args::BindArguments;
use crate::config::NetworkAccess;
use crate::exit::{Exit, Failure};
use crate::screen;
use crate::vault::Asking;
use lango_net::Host;
use lango_secrets::{Binding, BindingTarget, Origin, SecretName};
use lango_vault::{BindingDraft, OpenVault, VaultError};
use serde::Deserialize;

/// The services of `--for`.
#[derive(Deserialize)]
struct Services {
    service: Vec<Service>,
}

/// A service with the places where its clients send a token.
#[derive(Deserialize)]
struct Service {
    name: String,
    bindings: Vec<BindingDraft>,
    /// How common clients are told to use the variable.
    note: String,
}

/// Binds a secret.
pub async fn bind(secrets: &Secrets, arguments: &BindArguments) -> Result<(), Failure> {
    let name = SecretName::new(&arguments.name)?;
    let (drafts, note) = drafts(arguments)?;
    let mut bindings = Vec::new();
    for draft in &drafts {
        let binding = draft.build(&name).map_err(|error| {
            Failure::new(Exit::Usage, error.to_string())
                .next(format!("lango secrets bind {name} --host api.example.com"))
        })?;
        bindings.push(binding);
    }
    let open = secrets.access.open(Asking::Allowed).await?;
    for binding in &bindings {
        match open.bind(&name, binding).await {
            Ok(_) => screen::print(&format!("bound {name}: {binding}"))?,
            Err(VaultError::AlreadyBound { .. }) => {
                screen::print(&format!("{name} has this binding already: {binding}"))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    note.iter().for_each(|note| screen::say(note));
    warn_about_network(secrets, &bindings);
    Ok(())
}

/// Returns the bindings that the arguments ask for, and a note for the user.
fn drafts(arguments: &BindArguments) -> Result<(Vec<BindingDraft>, Option<String>), Failure> {
    let Some(wanted) = &arguments.service else {
        let draft = BindingDraft {
            tool: arguments.tool.clone(),
            host: arguments.host.clone(),
            header: arguments.header.clone(),
            variable: arguments.env.clone(),
            program: arguments.program.clone(),
            field: arguments.field.clone(),
        };
        return Ok((vec![draft], None));
    };
    let services: Services = toml::from_str(include_str!("services.toml"))
        .map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    let names: Vec<&str> = services
        .service
        .iter()
        .map(|own| own.name.as_str())
        .collect();
    let unknown = || {
        let message = format!(
            "`{wanted}` is no service that lango knows: {}",
            names.join(", ")
        );
        Failure::new(Exit::Usage, message).next("name its host with --host")
    };
    let service = services.service.iter().find(|own| own.name == *wanted);
    let service = service.ok_or_else(unknown)?;
    let drafts = service.bindings.iter().map(|draft| BindingDraft {
        tool: arguments.tool.clone(),
        ..draft.clone()
    });
    Ok((drafts.collect(), Some(service.note.clone())))
}

/// Removes one binding, or all.
pub async fn unbind(secrets: &Secrets, name: &str, number: Option<usize>) -> Result<(), Failure> {
    let name = SecretName::new(name)?;
    let open = secrets.access.open(Asking::Allowed).await?;
    let bindings = bindings(&open, &name).await?;
    let chosen = match number {
        None => bindings,
        Some(number) => {
            let chosen = number.checked_sub(1).and_then(|at| bindings.get(at));
            let chosen = chosen.ok_or_else(|| {
                let message = format!("{name} has no binding {number}");
                Failure::new(Exit::Usage, message).next(format!("lango secrets describe {name}"))
            })?;
            vec![chosen.clone()]
        }
    };
    if chosen.is_empty() {
        screen::print(&format!("{name} has no bindings"))?;
    }
    for binding in chosen {
        open.unbind(&name, &binding).await?;
        screen::print(&format!("removed from {name}: {binding}"))?;
    }
    Ok(())
}

async fn bindings(open: &OpenVault, name: &SecretName) -> Result<Vec<Binding>, Failure> {
    let entries = open.entries().await?;
    let entry = entries.into_iter().find(|entry| entry.name == *name);
    let entry = entry.ok_or_else(|| VaultError::NotFound {
        name: name.to_string(),
    })?;
    Ok(entry.bindings)
}

/// Says which bound hosts commands cannot reach, with the setting to add.
fn warn_about_network(secrets: &Secrets, bindings: &[Binding]) {
    let access = &secrets.loaded.settings.tools.exec.network;
    let unreachable: Vec<String> = bindings
        .iter()
        .filter(|binding| *binding.tool == *Binding::COMMANDS)
        .filter_map(|binding| match &binding.target {
            BindingTarget::Header { origin, .. } => Some(origin),
            _ => None,
        })
        .filter(|origin| !is_listed(access, origin))
        .map(entry_for)
        .collect();
    if unreachable.is_empty() {
        return;
    }
    let reason = match access {
        NetworkAccess::Closed => "commands have no network",
        NetworkAccess::Hosts(_) => "commands do not reach this host",
        NetworkAccess::Open => {
            "with an open network nothing puts values in the place of placeholders"
        }
    };
    let mut hosts = match access {
        NetworkAccess::Hosts(hosts) => hosts.iter().map(ToString::to_string).collect(),
        NetworkAccess::Closed | NetworkAccess::Open => Vec::new(),
    };
    hosts.extend(unreachable);
    hosts.dedup();
    screen::say(&format!(
        "{reason}: set tools.exec.network = {} in {}",
        toml::Value::from(hosts),
        secrets.loaded.paths.user_file.display()
    ));
}

/// Returns whether commands reach an origin through the proxy.
fn is_listed(access: &NetworkAccess, origin: &Origin) -> bool {
    let NetworkAccess::Hosts(hosts) = access else {
        return false;
    };
    let name = origin.host().trim_matches(['[', ']']);
    let host = match name.parse() {
        Ok(address) => Host::Address(address),
        Err(_) => Host::Name(name.to_owned()),
    };
    hosts.iter().any(|own| own.matches(&host, origin.port()))
}

/// Returns the entry of a host list for an origin.
fn entry_for(origin: &Origin) -> String {
    let default = if origin.is_https() { 443 } else { 80 };
    if origin.port() == default {
        origin.host().to_owned()
    } else {
        format!("{}:{}", origin.host(), origin.port())
    }
}
