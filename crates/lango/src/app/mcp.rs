//! Builds the MCP servers from the configuration: their tools, the agents that get them, and the approval rules for
//! changed tools.

mod capability;
mod program;
mod status;

use crate::app::Persistence;
use crate::app::failure::Failure;
use crate::app::notice::notice;
use crate::app::vault::Credentials;
use capability::ReservedNames;
use lango_config::{LoadedConfig, McpServer};
use lango_core::{AgentName, Tool};
use lango_engine::{ApprovalRule, DELEGATE, RuleAction, ToolAssignment, ToolAssignments};
use lango_mcp::{
    Backoff, EnvCredential, FileSeal, HiddenText, HttpSettings, OauthClientSettings,
    ServerOverview, ServerSettings, ServerTarget, Servers, ServersSetup, StartMode, StartProgress,
    ToolState, is_confidential_url,
};
use lango_net::{Egress, SecretAccess};
use lango_sandbox::{Launcher, Policy, SandboxStrength};
pub use status::status;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

/// The configured MCP servers.
pub struct Mcp {
    pub servers: Servers,
    /// Which agent gets which tool.
    pub assignments: ToolAssignments,
    strength: SandboxStrength,
}

/// What the servers are built from.
pub struct McpContext<'a> {
    pub loaded: &'a LoadedConfig,
    /// lango's own environment variables.
    pub env: &'a BTreeMap<OsString, OsString>,
    pub credentials: &'a Arc<Credentials>,
    /// The sandbox policy of commands.
    pub policy: &'a Policy,
    /// The launcher that starts programs in the sandbox.
    pub launcher: &'a Launcher,
    /// How well the sandbox isolates programs.
    pub strength: &'a SandboxStrength,
    /// The other tools, whose names are taken.
    pub tools: &'a [Arc<dyn Tool>],
    /// The names of the agents in this topology.
    pub agents: Vec<AgentName>,
    /// The egress guard for programs that may contact only some hosts.
    pub egress: &'a Egress,
    pub secrets: &'a SecretAccess,
    /// The encryption of the file with logins, if it is encrypted.
    pub grants_seal: Option<Arc<dyn FileSeal>>,
}

impl Mcp {
    /// Stops the servers and prints their warnings.
    pub async fn close(&self) {
        for warning in self.servers.close().await {
            notice(&format!("warning: {warning}"));
        }
    }

    /// Builds the tools. `start` says whether to connect to servers without pins; only commands that use tools and may
    /// persist something do that.
    pub async fn open(context: McpContext<'_>, start: StartMode) -> Result<Self, Failure> {
        let settings = &context.loaded.settings.mcp;
        program::create_directories(context.loaded);
        let servers = settings.servers.iter();
        let servers = servers.map(|(id, server)| server_settings(id, server, &context));
        let names = context
            .tools
            .iter()
            .map(|tool| tool.spec().name.to_string());
        let setup = ServersSetup {
            servers: servers.collect::<Result<_, _>>()?,
            launcher: context.launcher.clone(),
            strength: context.strength.clone(),
            pins: context.loaded.paths.mcp_pins(),
            grants: context.loaded.paths.mcp_grants(),
            grants_seal: context.grants_seal.clone(),
            masks: context.credentials.masks().clone(),
            secrets: Arc::clone(context.secrets.source()),
            attachments: context.loaded.paths.attachments(),
            start_timeout: settings.start_timeout,
            backoff: Backoff::default(),
            progress: StartProgress::new(notice),
            reserved_names: names.chain([DELEGATE.to_owned()]).collect(),
        };
        let servers = Servers::open(setup, start).await;
        let reserved = ReservedNames::new(&context, servers.overview());
        let assignments = servers.overview().iter().map(|server| {
            let configured = settings.servers.get(&server.id);
            assignments_of(server, configured, &reserved)
        });
        let assignments: Vec<_> = assignments.collect::<Result<_, _>>()?;
        let assignments = assignments.into_iter().flatten().collect();
        Ok(Self {
            servers,
            assignments,
            strength: context.strength.clone(),
        })
    }

    /// Returns the rules for tools that always need approval: changed and new tools and, if the sandbox is degraded,
    /// all tools of local servers.
    pub fn rules(&self) -> Vec<ApprovalRule> {
        let servers = self.servers.overview().iter();
        let tools = servers.flat_map(|server| server.tools.iter().map(move |tool| (server, tool)));
        let rules = tools.filter_map(|(server, tool)| {
            let origin = match (&self.strength, tool.state, server.transport) {
                (_, ToolState::Changed, _) => format!(
                    "the MCP server `{id}` has changed this tool since it was pinned; accept the change with `lango mcp trust {id}`",
                    id = server.id
                ),
                (_, ToolState::New, _) => format!(
                    "the MCP server `{id}` did not have this tool when it was pinned; accept it with `lango mcp trust {id}`",
                    id = server.id
                ),
                (SandboxStrength::Degraded { missing }, _, "stdio") => {
                    format!("the sandbox is degraded ({missing}), so every call to a local MCP server needs approval")
                }
                _ => return None,
            };
            Some(ApprovalRule {
                action: RuleAction::AskEachTime,
                agent: None,
                tool: Some(tool.name.to_string()),
                matching: None,
                origin: origin.into(),
            })
        });
        rules.collect()
    }

    /// Describes the servers whose tools are unavailable, and why.
    pub fn absent(&self) -> impl Iterator<Item = String> {
        let servers = self.servers.overview().iter();
        let absent = servers.filter(|server| !server.is_pinned || server.problem.is_some());
        absent.map(|server| {
            let unknown = || format!("not known yet, run `lango mcp test {}`", server.id);
            let why = server.problem.clone().unwrap_or_else(unknown);
            format!("all of the MCP server `{}` ({why})", server.id)
        })
    }

    /// Returns warnings for the user.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.servers.warnings().to_vec();
        for server in self.servers.overview() {
            let id = &server.id;
            if !server.is_pinned && server.problem.is_none() {
                warnings.push(format!(
                    "the tools of the MCP server `{id}` are not known yet; run `lango mcp test {id}` to connect to it"
                ));
            }
            let is_open = |state| server.tools.iter().any(|tool| tool.state == state);
            if is_open(ToolState::Changed) || is_open(ToolState::New) {
                warnings.push(format!(
                    "tools of the MCP server `{id}` have changed since they were pinned, so each call needs approval; \
                     `lango mcp list` shows them, `lango mcp trust {id}` accepts them"
                ));
            }
        }
        warnings
    }
}

/// Returns the start mode of a command that uses tools: whether it connects to servers that have no pins yet.
pub fn start_for(persistence: Persistence) -> StartMode {
    match persistence {
        Persistence::Everything => StartMode::ConnectUnpinned,
        // The pins could not be stored.
        Persistence::Nothing => StartMode::PinsOnly,
    }
}

/// Assigns a server's tools to its agent, if it has one.
fn assignments_of(
    server: &ServerOverview,
    configured: Option<&McpServer>,
    reserved: &ReservedNames,
) -> Result<Vec<(lango_core::ToolName, ToolAssignment)>, Failure> {
    let capability = configured.and_then(|server| server.capability.0.as_deref());
    let capability = reserved
        .capability(server, capability)
        .map_err(|what| invalid_settings(&server.id, format!("`capability` {what}")))?;
    let Some(agent) = &server.agent else {
        return Ok(Vec::new());
    };
    let home = ToolAssignment {
        agent: agent.clone(),
        capability: capability.into(),
    };
    let tools = server.tools.iter();
    Ok(tools
        .map(|tool| (tool.name.clone(), home.clone()))
        .collect())
}

/// Creates the error for an MCP server with invalid settings.
fn invalid_settings(id: &str, what: String) -> Failure {
    Failure::config(format!("mcp.servers.{id}: {what}"))
        .next("run `lango config show --origin` to see where it is set; docs/mcp.md has examples")
}

fn server_settings(
    id: &str,
    server: &McpServer,
    context: &McpContext<'_>,
) -> Result<ServerSettings, Failure> {
    let invalid = |what: String| invalid_settings(id, what);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if id.is_empty() || id.len() > 32 || !id.chars().all(plain) {
        return Err(invalid(
            "the name of a server must have 1 to 32 letters, digits, `-` and `_`".to_owned(),
        ));
    }
    let target = match (server.command.0.is_empty(), &server.url) {
        (false, None) => {
            let program = program::program(id, server, context).map_err(invalid)?;
            ServerTarget::Program(Box::new(program))
        }
        (true, Some(url)) => {
            ServerTarget::Http(address(url, server, context.credentials).map_err(invalid)?)
        }
        (true, None) => {
            return Err(invalid("`command` or `url` must be set".to_owned()));
        }
        (false, Some(_)) => {
            return Err(invalid(
                "`command` and `url` exclude each other; set only one".to_owned(),
            ));
        }
    };
    if server.capability.0.is_some() && server.agent.is_none() {
        return Err(invalid(
            "`capability` needs `agent`: it describes what that agent can do with the tools"
                .to_owned(),
        ));
    }
    Ok(ServerSettings {
        id: id.to_owned(),
        target,
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
) -> Result<HttpSettings, String> {
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return Err(format!(
            "`{url}` is not an address that starts with https:// or http://"
        ));
    }
    if server.token_env.is_some() && url.starts_with("http://") && !is_confidential_url(url) {
        return Err(
            "lango does not send a token over http:// to another machine; use https://".to_owned(),
        );
    }
    let env_credential = |name: &String| EnvCredential {
        variable: name.clone(),
        value: credentials.find(name),
    };
    let token = server.token_env.as_ref().map(env_credential);
    let client = server.client_id.as_ref().map(|id| OauthClientSettings {
        id: id.clone(),
        secret: server.client_secret_env.as_ref().map(env_credential),
    });
    Ok(HttpSettings {
        url: url.to_owned(),
        token,
        client,
    })
}

fn variable(env: &BTreeMap<OsString, OsString>, name: &str) -> Option<HiddenText> {
    let value = env
        .get(OsStr::new(name))
        .filter(|value| !value.is_empty())?;
    value.to_str().map(HiddenText::new)
}
