//! `lango secrets bind`, `unbind` and `describe`: the places where the value of a secret may be used.

use super::programs::warn_about_program;
use super::{Secrets, read_answer, refuse_value};
use crate::app::App;
use crate::args::BindArguments;
use crate::config::{NetworkAccess, Settings};
use crate::egress;
use crate::exit::{Exit, Failure};
use crate::screen;
use crate::vault::{Asking, Places, no_server};
use lango_core::Clock;
use lango_engine::SystemClock;
use lango_secrets::{Binding, BindingTarget, SecretName};
use lango_vault::{BindingDraft, OpenVault, SecretField, VaultError, date_and_time};
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
            Failure::new(Exit::Usage, error.to_string())
                .next("`lango secrets bind --help` shows the parts of a binding, with examples")
        })?;
        bindings.push(binding);
    }
    let open = secrets.access.open(Asking::Allowed).await?;
    let hints = check_places(secrets, app.as_ref(), &bindings)?;
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
    warn_if_expired(secrets, &open, &name).await?;
    for binding in &bindings {
        warn_about_program(&secrets.surroundings.env, binding);
    }
    warn_about_network(secrets, &bindings);
    hints.iter().for_each(|hint| screen::say(hint));
    Ok(())
}

/// Fails if a binding names a tool, a field or an MCP server that does not exist. Returns the settings that bindings lack,
/// except `tools.exec.network`.
fn check_places(
    secrets: &Secrets,
    app: Option<&App>,
    bindings: &[Binding],
) -> Result<Vec<String>, Failure> {
    let settings = &secrets.loaded.settings;
    let places = Places::new(settings, &egress::guard(&settings.egress), Vec::new());
    let mut hints = Vec::new();
    for binding in bindings {
        let checked = match app {
            Some(app) => app.vaults.check_place(binding),
            None => places.check(binding),
        };
        let hint = checked.map_err(|problem| refuse_place(settings, &binding.tool, problem))?;
        let hint = match &binding.target {
            // What the network of commands lacks is said by `warn_about_network`, with all hosts at once.
            BindingTarget::Header { origin, .. } if *binding.tool == *Binding::COMMANDS => {
                places.refusal(origin)
            }
            _ => hint,
        };
        hints.extend(hint.map(|hint| format!("it cannot be used yet: {hint}")));
    }
    Ok(hints)
}

/// Fails for a tool of an MCP server that the configuration does not have.
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
        "`lango doctor` shows whether there is a browser".to_owned()
    } else if let Some(id) = settings.mcp.servers.keys().find(is_own) {
        format!("`lango mcp test {id}` connects the server and shows its tools")
    } else {
        "`lango mcp list` shows the MCP servers with their tools".to_owned()
    };
    Failure::new(Exit::Usage, problem).next(next)
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

/// Removes one binding, or all of them; asks which if there are several.
pub async fn unbind(
    secrets: &Secrets,
    name: &str,
    number: Option<usize>,
    all: bool,
) -> Result<(), Failure> {
    let name = SecretName::new(name)?;
    let open = secrets.access.open(Asking::Allowed).await?;
    let bindings = bindings(&open, &name).await?;
    let number = match number {
        None if all || bindings.len() < 2 => None,
        None => match ask_which(secrets, &name, &bindings).await? {
            Chosen::All => None,
            Chosen::Number(number) => Some(number),
            Chosen::Nothing => {
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

/// The answer to which bindings to remove.
enum Chosen {
    Number(usize),
    All,
    Nothing,
}

fn no_binding(name: &SecretName, answer: &str) -> Failure {
    let message = format!("{name} has no binding {answer}; nothing was changed");
    Failure::new(Exit::Usage, message).next(format!("lango secrets describe {name}"))
}

/// Asks which bindings to remove; without a terminal fails with their numbers.
async fn ask_which(
    secrets: &Secrets,
    name: &SecretName,
    bindings: &[Binding],
) -> Result<Chosen, Failure> {
    let numbered = bindings.iter().enumerate();
    let numbered = numbered.map(|(at, binding)| format!("\n  {}. {binding}", at + 1));
    let numbered: String = numbered.collect();
    let (count, command) = (bindings.len(), secrets.access.command());
    let message = format!("{name} has {count} bindings:{numbered}");
    let question = format!("{message}\nremove which one? [1-{count}, all, N] ");
    let refusal = Failure::new(Exit::Usage, message).next(format!(
        "`{command} unbind {name} NUMBER` removes one, `{command} unbind {name} --all` all of them"
    ));
    let answer = read_answer(secrets, &question, refusal).await?;
    match answer.as_str() {
        "" | "n" | "no" => Ok(Chosen::Nothing),
        "all" => Ok(Chosen::All),
        number => match number.parse() {
            Ok(number) => Ok(Chosen::Number(number)),
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
            "warning: {name} expired on {at}, so nothing can use it; `{command} rotate {name}` gives it a new value"
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
        .filter_map(|origin| egress::missing_entry(access, origin))
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
