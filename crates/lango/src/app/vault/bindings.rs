//! New bindings of secrets: builds them from drafts and well-known services, checks that their places exist, and
//! describes what keeps them from working.

use super::{BindingPlaces, VaultAccess, find_entry, no_server};
use crate::app::{App, Failure, egress};
use lango_config::{LoadedConfig, NetworkAccess, Settings};
use lango_core::Clock;
use lango_engine::SystemClock;
use lango_secrets::{Binding, BindingTarget, SecretName};
use lango_vault::{BindingDraft, OpenVault, SecretField, date_and_time};
use serde::Deserialize;

/// The services that `--for` knows.
#[derive(Deserialize)]
struct Services {
    service: Vec<Service>,
}

/// A service, with the hosts to which its clients send a token.
#[derive(Deserialize)]
struct Service {
    name: String,
    bindings: Vec<BindingDraft>,
    /// How to make common clients use the variable.
    note: String,
}

/// Returns the bindings of a well-known service for a tool, and a note for the user.
pub fn service_drafts(
    service_name: &str,
    tool: Option<&str>,
) -> Result<(Vec<BindingDraft>, String), Failure> {
    let services: Services = toml::from_str(include_str!("services.toml"))
        .map_err(|error| Failure::failed(error.to_string()))?;
    let names: Vec<&str> = services
        .service
        .iter()
        .map(|own| own.name.as_str())
        .collect();
    let unknown = || {
        let message = format!(
            "lango does not know the service `{service_name}`; it knows {}",
            names.join(", ")
        );
        Failure::usage(message).next("name its host with --host")
    };
    let service = services.service.iter().find(|own| own.name == service_name);
    let service = service.ok_or_else(unknown)?;
    let drafts = service.bindings.iter().map(|draft| BindingDraft {
        tool: tool.map(str::to_owned),
        ..draft.clone()
    });
    Ok((drafts.collect(), service.note.clone()))
}

/// Builds the bindings of a secret from their drafts. `app` completes drafts that name the field of a tool.
pub fn build_bindings(
    settings: &Settings,
    app: Option<&App>,
    name: &SecretName,
    drafts: Vec<BindingDraft>,
) -> Result<Vec<Binding>, Failure> {
    let mut bindings = Vec::new();
    for draft in drafts {
        let tool = draft.tool.clone().unwrap_or_default();
        refuse_unknown_server(settings, &tool)?;
        let completed = match app {
            Some(app) => SecretField::complete(&app.vaults.fields(), &draft),
            None => Ok(draft),
        };
        let draft = completed.map_err(|problem| refuse_place(settings, &tool, problem))?;
        let binding = draft.build(name).map_err(|error| {
            Failure::usage(error.to_string())
                .next("run `lango secrets bind --help` for the parts of a binding, with examples")
        })?;
        bindings.push(binding);
    }
    Ok(bindings)
}

/// Fails if a binding names a tool, a field or an MCP server that does not exist. Returns hints about missing
/// settings, except about `tools.exec.network`.
pub fn place_hints(
    settings: &Settings,
    app: Option<&App>,
    bindings: &[Binding],
) -> Result<Vec<String>, Failure> {
    let places = BindingPlaces::new(settings, &egress::guard(&settings.egress), Vec::new());
    let mut hints = Vec::new();
    for binding in bindings {
        let checked = match app {
            Some(app) => app.vaults.check_place(binding),
            None => places.check(binding),
        };
        let hint = checked.map_err(|problem| refuse_place(settings, &binding.tool, problem))?;
        let hint = match &binding.target {
            // [`network_hint`] reports what the network of commands lacks, for all hosts together.
            BindingTarget::Header { origin, .. } if *binding.tool == *Binding::COMMANDS => {
                places.refusal(origin)
            }
            _ => hint,
        };
        hints.extend(hint.map(|hint| format!("it cannot be used yet: {hint}")));
    }
    Ok(hints)
}

/// Returns a warning if the secret has expired.
pub async fn expiry_warning(
    access: &VaultAccess,
    open: &OpenVault,
    name: &SecretName,
) -> Result<Vec<String>, Failure> {
    let entry = find_entry(open, name).await?;
    let expired = entry.filter(|entry| entry.is_expired(SystemClock.now()));
    let warning = expired.and_then(|entry| entry.expires).map(|at| {
        let (at, command) = (date_and_time(at), access.command());
        format!(
            "warning: {name} expired on {at} and cannot be used; `{command} rotate {name}` sets a new value"
        )
    });
    Ok(warning.into_iter().collect())
}

/// Describes which bound hosts commands cannot reach, and the setting to add; `None` if they reach all of them.
pub fn network_hint(loaded: &LoadedConfig, bindings: &[Binding]) -> Option<String> {
    let access = &loaded.settings.tools.exec.network;
    let unreachable: Vec<String> = bindings
        .iter()
        .filter(|binding| *binding.tool == *Binding::COMMANDS)
        .filter_map(|binding| match &binding.target {
            BindingTarget::Header { origin, .. } => Some(origin),
            _ => None,
        })
        .filter_map(|origin| egress::missing_entry(access, origin))
        .collect();
    if unreachable.is_empty() {
        return None;
    }
    let reason = match access {
        NetworkAccess::Closed => "commands have no network",
        NetworkAccess::Hosts(_) => "commands cannot reach this host",
        NetworkAccess::Open => "with an open network, placeholders are not replaced by values",
    };
    let mut hosts = match access {
        NetworkAccess::Hosts(hosts) => hosts.iter().map(ToString::to_string).collect(),
        NetworkAccess::Closed | NetworkAccess::Open => Vec::new(),
    };
    hosts.extend(unreachable);
    hosts.dedup();
    Some(format!(
        "{reason}: set tools.exec.network = {} in {}",
        toml::Value::from(hosts),
        loaded.paths.user_file.display()
    ))
}

/// Fails for a tool of an MCP server that is not configured.
fn refuse_unknown_server(settings: &Settings, tool: &str) -> Result<(), Failure> {
    let id = tool.strip_prefix("mcp:");
    let id = id.map(|id| id.split('/').next().unwrap_or_default());
    let servers = &settings.mcp.servers;
    match id.filter(|id| !servers.contains_key(*id)) {
        None => Ok(()),
        Some(id) => Err(refuse_place(settings, tool, no_server(id, servers.keys()))),
    }
}

fn refuse_place(settings: &Settings, tool: &str, problem: String) -> Failure {
    let own = tool.strip_prefix("mcp:").unwrap_or(tool);
    let is_own = |id: &&String| {
        let rest = own.strip_prefix(id.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '/']))
    };
    let next = if tool == lango_browser::TYPING_TOOL {
        "run `lango doctor` to see whether a browser is available".to_owned()
    } else if let Some(id) = settings.mcp.servers.keys().find(is_own) {
        format!("run `lango mcp test {id}` to connect to the server and see its tools")
    } else {
        "run `lango mcp list` to see the MCP servers with their tools".to_owned()
    };
    Failure::usage(problem).next(next)
}
