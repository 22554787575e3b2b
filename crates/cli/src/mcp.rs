//! MCP servers: from the configuration to their tools, to the agents that are given them, and to the rules that follow
//! from what changed.

mod capability;
mod program;

use crate::app::Keeping;
use crate::config::{Loaded, McpServer};
use crate::exit::{Exit, Failure};
use crate::screen;
use crate::vault::Credentials;
use capability::ReservedWords;
use lango_core::{AgentName, Tool};
use lango_engine::{Action, DELEGATE, Home, Homes, Rule};
use lango_mcp::{
    Address, ClientSettings, FileSeal, Overview, Pauses, Progress, Reach, Secret, ServerSettings,
    Servers, Setup, Start, Token, ToolState, is_private_way,
};
use lango_net::{Egress, SecretAccess};
use lango_sandbox::{Launcher, Policy, Strength};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

/// The servers of this configuration.
pub struct Mcp {
    /// The servers themselves.
    pub servers: Servers,
    /// To whom their tools are given.
    pub homes: Homes,
    strength: Strength,
}

/// What servers depend on.
pub struct Surrounding<'a> {
    /// The configuration.
    pub loaded: &'a Loaded,
    /// lango's own environment.
    pub env: &'a BTreeMap<OsString, OsString>,
    /// The tokens.
    pub credentials: &'a Arc<Credentials>,
    /// What commands may touch.
    pub policy: &'a Policy,
    /// What starts commands.
    pub launcher: &'a Launcher,
    /// How well they are held.
    pub strength: &'a Strength,
    /// The tools that there are already.
    pub tools: &'a [Arc<dyn Tool>],
    /// The names of the agents of this topology.
    pub agents: Vec<AgentName>,
    /// What decides which hosts programs with a list of hosts may contact.
    pub egress: &'a Egress,
    /// The secrets that programs may use.
    pub secrets: &'a SecretAccess,
    /// What encrypts the file with logins, if something does.
    pub grants_seal: Option<Arc<dyn FileSeal>>,
}

impl Mcp {
    /// Ends the servers that were started, and says what a person should hear of.
    pub async fn close(&self) {
        for said in self.servers.close().await {
            screen::say(&format!("warning: {said}"));
        }
    }

    /// Builds the tools. Servers of which nothing is pinned are connected only by whoever is about to use them, and where
    /// something may be kept.
    pub async fn open(here: Surrounding<'_>, start: Start) -> Result<Self, Failure> {
        let settings = &here.loaded.settings.mcp;
        program::make_folders(here.loaded);
        let servers = settings.servers.iter();
        let servers = servers.map(|(id, server)| server_settings(id, server, &here));
        let names = here.tools.iter().map(|tool| tool.spec().name.to_string());
        let setup = Setup {
            servers: servers.collect::<Result<_, _>>()?,
            launcher: here.launcher.clone(),
            strength: here.strength.clone(),
            pins: here.loaded.paths.mcp_pins(),
            grants: here.loaded.paths.mcp_grants(),
            grants_seal: here.grants_seal.clone(),
            masks: here.credentials.masks().clone(),
            secrets: Arc::clone(here.secrets.source()),
            attachments: here.loaded.paths.attachments(),
            patience: settings.start_timeout,
            pauses: Pauses::default(),
            progress: Progress::new(screen::say),
            taken: names.chain([DELEGATE.to_owned()]).collect(),
        };
        let servers = Servers::open(setup, start).await;
        let words = ReservedWords::new(&here, servers.overview());
        let homes = servers.overview().iter().map(|server| {
            let configured = settings.servers.get(&server.id);
            homes_of(server, configured, &words)
        });
        let homes: Vec<_> = homes.collect::<Result<_, _>>()?;
        let homes = homes.into_iter().flatten().collect();
        Ok(Self {
            servers,
            homes,
            strength: here.strength.clone(),
        })
    }

    /// What is asked for whatever was allowed before.
    pub fn rules(&self) -> Vec<Rule> {
        let servers = self.servers.overview().iter();
        let tools = servers.flat_map(|server| server.tools.iter().map(move |tool| (server, tool)));
        let rules = tools.filter_map(|(server, tool)| {
            let origin = match (&self.strength, tool.state, server.transport) {
                (_, ToolState::Changed, _) => format!(
                    "the MCP server `{id}` changed this tool since it was pinned; `lango mcp trust {id}` accepts it as it is now",
                    id = server.id
                ),
                (_, ToolState::New, _) => format!(
                    "the MCP server `{id}` did not have this tool when it was pinned; `lango mcp trust {id}` accepts it",
                    id = server.id
                ),
                (Strength::Degraded { missing }, _, "stdio") => {
                    format!("the sandbox is degraded ({missing}), so every call of a server in it is asked for")
                }
                _ => return None,
            };
            Some(Rule {
                action: Action::AskEachTime,
                agent: None,
                tool: Some(tool.name.to_string()),
                matching: None,
                origin: origin.into(),
            })
        });
        rules.collect()
    }

    /// The servers whose tools are not here, and why.
    pub fn absent(&self) -> impl Iterator<Item = String> {
        let servers = self.servers.overview().iter();
        let absent = servers.filter(|server| !server.is_pinned || server.problem.is_some());
        absent.map(|server| {
            let unknown = || format!("they are not known yet, see `lango mcp test {}`", server.id);
            let why = server.problem.clone().unwrap_or_else(unknown);
            format!("those of the MCP server `{}` ({why})", server.id)
        })
    }

    /// What a person should know.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.servers.warnings().to_vec();
        for server in self.servers.overview() {
            let id = &server.id;
            if !server.is_pinned && server.problem.is_none() {
                warnings.push(format!(
                    "the tools of the MCP server `{id}` are not known yet; `lango mcp test {id}` connects to it"
                ));
            }
            let is_open = |state| server.tools.iter().any(|tool| tool.state == state);
            if is_open(ToolState::Changed) || is_open(ToolState::New) {
                warnings.push(format!(
                    "tools of the MCP server `{id}` changed since they were pinned, so each call of them is asked for; \
                     `lango mcp list` shows which, `lango mcp trust {id}` accepts them"
                ));
            }
        }
        warnings
    }
}

/// Whether servers that nobody connected to before are connected by somebody who is about to use them.
pub fn start_for(keeping: Keeping) -> Start {
    match keeping {
        Keeping::Everything => Start::ConnectUnpinned,
        // What they say would have to be kept.
        Keeping::Nothing => Start::PinsOnly,
    }
}

/// The tools that a server's agent is given.
fn homes_of(
    server: &Overview,
    configured: Option<&McpServer>,
    words: &ReservedWords,
) -> Result<Vec<(lango_core::ToolName, Home)>, Failure> {
    let capability = configured.and_then(|server| server.capability.0.as_deref());
    let capability = words
        .capability(server, capability)
        .map_err(|what| wrong(&server.id, format!("`capability` {what}")))?;
    let Some(agent) = &server.agent else {
        return Ok(Vec::new());
    };
    let home = Home {
        agent: agent.clone(),
        capability: capability.into(),
    };
    let tools = server.tools.iter();
    Ok(tools
        .map(|tool| (tool.name.clone(), home.clone()))
        .collect())
}

/// The settings of a server make no sense.
fn wrong(id: &str, what: String) -> Failure {
    Failure::new(Exit::Config, format!("mcp.servers.{id}: {what}"))
        .next("`lango config show --origin` tells where it is set; docs/mcp.md shows how")
}

fn server_settings(
    id: &str,
    server: &McpServer,
    here: &Surrounding<'_>,
) -> Result<ServerSettings, Failure> {
    let wrong = |what: String| wrong(id, what);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if id.is_empty() || id.len() > 32 || !id.chars().all(plain) {
        return Err(wrong(
            "the name of a server has up to 32 letters, digits, `-` and `_`".to_owned(),
        ));
    }
    let reach = match (server.command.0.is_empty(), &server.url) {
        (false, None) => {
            let program = program::program(id, server, here).map_err(wrong)?;
            Reach::Program(Box::new(program))
        }
        (true, Some(url)) => Reach::Address(address(url, server, here.credentials).map_err(wrong)?),
        (true, None) => {
            return Err(wrong("it needs `command`, or `url`".to_owned()));
        }
        (false, Some(_)) => {
            return Err(wrong(
                "`command` starts a program and `url` does not; set one of them".to_owned(),
            ));
        }
    };
    if server.capability.0.is_some() && server.agent.is_none() {
        return Err(wrong(
            "`capability` says what an agent can do with its tools; set `agent` too".to_owned(),
        ));
    }
    Ok(ServerSettings {
        id: id.to_owned(),
        reach,
        agent: server.agent.as_deref().map(AgentName::from),
        prefix: server.prefix.0.clone().unwrap_or_else(|| format!("{id}_")),
        tools: (!server.tools.is_empty()).then(|| server.tools.clone()),
        form_defaults: server.form_defaults,
    })
}

fn address(
    url: &str,
    server: &McpServer,
    credentials: &Arc<Credentials>,
) -> Result<Address, String> {
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return Err(format!(
            "`{url}` is no address; it begins with https:// or http://"
        ));
    }
    if server.token_env.is_some() && url.starts_with("http://") && !is_private_way(url) {
        return Err("a token is not sent over http:// to another machine; use https://".to_owned());
    }
    let held = |name: &String| Token {
        variable: name.clone(),
        value: credentials.find(name),
    };
    let token = server.token_env.as_ref().map(held);
    let client = server.client_id.as_ref().map(|id| ClientSettings {
        id: id.clone(),
        secret: server.client_secret_env.as_ref().map(held),
    });
    Ok(Address {
        url: url.to_owned(),
        token,
        client,
    })
}

fn variable(env: &BTreeMap<OsString, OsString>, name: &str) -> Option<Secret> {
    let value = env
        .get(OsStr::new(name))
        .filter(|value| !value.is_empty())?;
    value.to_str().map(Secret::new)
}
