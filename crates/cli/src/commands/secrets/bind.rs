//! `lango secrets bind` and `unbind`: where the value of a secret may be used.

use super::{Secrets, read_answer, refuse_value};
use crate::args::BindArguments;
use crate::screen;
use lango::app::App;
use lango::app::Failure;
use lango::app::egress;
use lango::app::vault::{BindingPlaces, PromptMode, no_server, program_warnings};
use lango_config::{NetworkAccess, Settings};
use lango_core::Clock;
use lango_engine::SystemClock;
use lango_secrets::{Binding, BindingTarget, SecretName};
use lango_vault::{BindingDraft, OpenVault, SecretField, VaultError, date_and_time};
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

pub async fn bind(secrets: &Secrets, arguments: &BindArguments) -> Result<(), Failure> {
    refuse_value(&arguments.name, &[], "secrets set")?;
    let name = SecretName::new(&arguments.name)?;
    let (drafts, note) = drafts(arguments)?;
    let settings = &secrets.loaded.settings;
    let app = if drafts.iter().any(|draft| draft.field.is_some()) {
        Some(App::load(secrets.flags.clone()).await?)
    } else {
        None
    };
    let mut bindings = Vec::new();
    for draft in drafts {
        let tool = draft.tool.clone().unwrap_or_default();
        refuse_unknown_server(settings, &tool)?;
        let completed = match &app {
            Some(app) => SecretField::complete(&app.vaults.fields(), &draft),
            None => Ok(draft),
        };
        let draft = completed.map_err(|problem| refuse_place(settings, &tool, problem))?;
        let binding = draft.build(&name).map_err(|error| {
            Failure::usage(error.to_string())
                .next("run `lango secrets bind --help` for the parts of a binding, with examples")
        })?;
        bindings.push(binding);
    }
    let open = secrets.access.open(PromptMode::Allowed).await?;
    let hints = check_places(secrets, app.as_ref(), &bindings)?;
    for binding in &bindings {
        match open.bind(&name, binding).await {
            Ok(_) => screen::print(&format!("bound {name}: {binding}"))?,
            Err(VaultError::AlreadyBound { .. }) => {
                screen::print(&format!("{name} already has this binding: {binding}"))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    note.iter().for_each(|note| screen::say(note));
    warn_if_expired(secrets, &open, &name).await?;
    for binding in &bindings {
        let warnings = program_warnings(&secrets.process_env.env, binding);
        warnings.iter().for_each(|warning| screen::say(warning));
    }
    warn_about_network(secrets, &bindings);
    hints.iter().for_each(|hint| screen::say(hint));
    Ok(())
}

/// Fails if a binding names a tool, a field or an MCP server that does not exist. Returns hints about missing
/// settings, except about `tools.exec.network`.
fn check_places(
    secrets: &Secrets,
    app: Option<&App>,
    bindings: &[Binding],
) -> Result<Vec<String>, Failure> {
    let settings = &secrets.loaded.settings;
    let places = BindingPlaces::new(settings, &egress::guard(&settings.egress), Vec::new());
    let mut hints = Vec::new();
    for binding in bindings {
        let checked = match app {
            Some(app) => app.vaults.check_place(binding),
            None => places.check(binding),
        };
        let hint = checked.map_err(|problem| refuse_place(settings, &binding.tool, problem))?;
        let hint = match &binding.target {
            // `warn_about_network` reports what the network of commands lacks, for all hosts together.
            BindingTarget::Header { origin, .. } if *binding.tool == *Binding::COMMANDS => {
                places.refusal(origin)
            }
            _ => hint,
        };
        hints.extend(hint.map(|hint| format!("it cannot be used yet: {hint}")));
    }
    Ok(hints)
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

/// Returns the requested bindings, and a note for the user.
fn drafts(arguments: &BindArguments) -> Result<(Vec<BindingDraft>, Option<String>), Failure> {
    let Some(service_name) = &arguments.service else {
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
    let service = services
        .service
        .iter()
        .find(|own| own.name == *service_name);
    let service = service.ok_or_else(unknown)?;
    let drafts = service.bindings.iter().map(|draft| BindingDraft {
        tool: arguments.tool.clone(),
        ..draft.clone()
    });
    Ok((drafts.collect(), Some(service.note.clone())))
}

/// Removes one binding or all of them; asks which if there are several.
pub async fn unbind(
    secrets: &Secrets,
    name: &str,
    number: Option<usize>,
    all: bool,
) -> Result<(), Failure> {
    let name = SecretName::new(name)?;
    let open = secrets.access.open(PromptMode::Allowed).await?;
    let bindings = bindings(&open, &name).await?;
    let number = match number {
        None if all || bindings.len() < 2 => None,
        None => match ask_which(secrets, &name, &bindings).await? {
            BindingSelection::All => None,
            BindingSelection::Number(number) => Some(number),
            BindingSelection::Nothing => {
                screen::say("nothing was changed");
                return Ok(());
            }
        },
        number => number,
    };
    let chosen = match number {
        None => bindings,
        Some(number) => {
            let chosen = number.checked_sub(1).and_then(|at| bindings.get(at));
            vec![
                chosen
                    .ok_or_else(|| no_binding(&name, &number.to_string()))?
                    .clone(),
            ]
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

/// Which bindings to remove.
enum BindingSelection {
    Number(usize),
    All,
    Nothing,
}

fn no_binding(name: &SecretName, answer: &str) -> Failure {
    let message = format!("{name} has no binding {answer}; nothing was changed");
    Failure::usage(message).next(format!("lango secrets describe {name}"))
}

/// Asks which bindings to remove; without a terminal, fails and lists them with their numbers.
async fn ask_which(
    secrets: &Secrets,
    name: &SecretName,
    bindings: &[Binding],
) -> Result<BindingSelection, Failure> {
    let numbered = bindings.iter().enumerate();
    let numbered = numbered.map(|(at, binding)| format!("\n  {}. {binding}", at + 1));
    let numbered: String = numbered.collect();
    let (count, command) = (bindings.len(), secrets.access.command());
    let message = format!("{name} has {count} bindings:{numbered}");
    let question = format!("{message}\nremove which one? [1-{count}, all, N] ");
    let refusal = Failure::usage(message).next(format!(
        "`{command} unbind {name} NUMBER` removes one, `{command} unbind {name} --all` all of them"
    ));
    let answer = read_answer(secrets, &question, refusal).await?;
    match answer.as_str() {
        "" | "n" | "no" => Ok(BindingSelection::Nothing),
        "all" => Ok(BindingSelection::All),
        number => match number.parse() {
            Ok(number) => Ok(BindingSelection::Number(number)),
            Err(_) => Err(no_binding(name, number)),
        },
    }
}

async fn warn_if_expired(
    secrets: &Secrets,
    open: &OpenVault,
    name: &SecretName,
) -> Result<(), Failure> {
    let entries = open.entries().await?;
    let entry = entries.iter().find(|entry| entry.name == *name);
    let expired = entry.filter(|entry| entry.is_expired(SystemClock.now()));
    if let Some(at) = expired.and_then(|entry| entry.expires) {
        let (at, command) = (date_and_time(at), secrets.access.command());
        screen::say(&format!(
            "warning: {name} expired on {at} and cannot be used; `{command} rotate {name}` sets a new value"
        ));
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

/// Prints which bound hosts commands cannot reach, and the setting to add.
fn warn_about_network(secrets: &Secrets, bindings: &[Binding]) {
    let access = &secrets.loaded.settings.tools.exec.network;
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
        return;
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
    screen::say(&format!(
        "{reason}: set tools.exec.network = {} in {}",
        toml::Value::from(hosts),
        secrets.loaded.paths.user_file.display()
    ));
}
