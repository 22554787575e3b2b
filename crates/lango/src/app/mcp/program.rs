//! The sandbox policy of an MCP server that lango starts.
//!
//! The program gets a private directory, the workspace if its configuration names it, and what its own settings open.
//! It does not get what is open to agents' commands.

use super::{McpContext, variable};
use crate::app::sandbox_setup;
use lango_config::{LoadedConfig, McpServer, NetworkAccess};
use lango_mcp::{EnvVariable, HiddenText, ProgramProxy, ProgramSettings, SecretVariable};
use lango_sandbox::{Network, Policy};
use lango_secrets::SecretName;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The prefix that marks the value of a variable as the name of a secret.
const SECRET_PREFIX: &str = "secret:";

/// Files and directories that configure lango, in the directory of its settings.
const SETTINGS: [&str; 3] = ["lango.toml", "agents", "skills"];
const SETTINGS_FOLDERS: [&str; 2] = ["agents", "skills"];

/// Creates the private directories of all servers. A missing directory could not be hidden from the other servers,
/// nor from agents whose workspace is the home directory.
pub(super) fn create_directories(loaded: &LoadedConfig) {
    let mut folders = std::fs::DirBuilder::new();
    folders.recursive(true).mode(0o700);
    for folder in program_ids(loaded).flat_map(|id| private_directories(loaded, id)) {
        // If this fails, the server does not start and reports why.
        let _ = folders.create(folder);
    }
}

/// Builds the program of a server. The error says what is wrong with its settings.
pub(super) fn program(
    id: &str,
    server: &McpServer,
    context: &McpContext<'_>,
) -> Result<ProgramSettings, String> {
    let argv = server.command.0.clone();
    let secrets = secret_variables(server)?;
    let is_secret = |variable: &str| secrets.iter().any(|secret| secret.variable == variable);
    let env = server.env.0.iter().filter(|(name, _)| !is_secret(name));
    let env = env.map(|(name, value)| EnvVariable {
        name: name.clone(),
        is_passed_on: value.is_none(),
        value: match value {
            Some(value) => Some(HiddenText::new(value.clone())),
            None => variable(context.env, name),
        },
    });
    let env: Vec<EnvVariable> = env.collect();
    let resolve_all = |paths: &[PathBuf]| -> Vec<PathBuf> {
        paths
            .iter()
            .map(|path| sandbox_setup::resolve_links(path))
            .collect()
    };
    let [private, copies] = private_directories(context.loaded, id);
    let mut write = resolve_all(&server.write);
    if ProgramSettings::names_workspace(&argv, &env) {
        write.push(context.policy.workspace.clone());
    }
    let mut policy = Policy {
        read_only: read_only_paths(&private, &write, context),
        unprotected: vec![private.clone()],
        workspace: private,
        read: resolve_all(&server.read),
        write,
        hidden: hidden(id, context),
        network: match server.network {
            NetworkAccess::Closed => Network::None,
            NetworkAccess::Hosts(_) => Network::Proxied,
            NetworkAccess::Open => Network::Host,
        },
        hide_dotfiles_in: context.policy.hide_dotfiles_in.clone(),
        allow_git_init: context.policy.allow_git_init,
    };
    policy.read.push(copies.clone());
    Ok(ProgramSettings {
        argv,
        env,
        proxy: proxy(server, secrets, context)?,
        data: server.data.clone(),
        policy,
        limits: sandbox_setup::limits(context.loaded),
        agents: context.policy.clone(),
        copies,
    })
}

/// Returns the variables whose values are secrets in the vault.
fn secret_variables(server: &McpServer) -> Result<Vec<SecretVariable>, String> {
    let values = server.env.0.iter();
    let secrets = values.filter_map(|(variable, value)| {
        let name = value.as_deref()?.strip_prefix(SECRET_PREFIX)?;
        Some((variable, name))
    });
    let secrets = secrets.map(|(variable, name)| {
        let name = SecretName::new(name).map_err(|error| format!("`env.{variable}`: {error}"))?;
        Ok(SecretVariable {
            variable: variable.clone(),
            name,
        })
    });
    secrets.collect()
}

/// Returns the proxy for a program that may contact only some hosts.
fn proxy(
    server: &McpServer,
    secrets: Vec<SecretVariable>,
    context: &McpContext<'_>,
) -> Result<Option<ProgramProxy>, String> {
    match &server.network {
        NetworkAccess::Hosts(hosts) => Ok(Some(ProgramProxy {
            egress: context.egress.clone(),
            hosts: hosts.clone(),
            user: context.loaded.settings.session.user.clone(),
            access: context.secrets.clone(),
            secrets,
        })),
        NetworkAccess::Closed | NetworkAccess::Open => match secrets.first() {
            None => Ok(None),
            Some(SecretVariable { variable, name }) => Err(format!(
                "`env.{variable}` is the secret `{name}`, which is replaced only by the proxy for a list of hosts; set \
                 `network = [\"HOST\"]` with the host that the secret is bound to"
            )),
        },
    }
}

/// Returns the paths that are hidden from a server: everything that is hidden from agents, except the server's own
/// private directories.
fn hidden(id: &str, context: &McpContext<'_>) -> Vec<PathBuf> {
    let all = sandbox_setup::resolve_links(&context.loaded.paths.mcp_servers());
    let own = private_directories(context.loaded, id);
    let hidden = context.policy.hidden.iter().filter(|path| **path != all);
    let configured =
        program_ids(context.loaded).flat_map(|id| private_directories(context.loaded, id));
    let found = all.read_dir().into_iter().flatten().flatten();
    let others = configured.chain(found.map(|entry| entry.path()));
    let others = others.filter(|path| !own.contains(path));
    let mut hidden: Vec<PathBuf> = hidden.cloned().chain(others).collect();
    hidden.sort();
    hidden.dedup();
    hidden
}

/// Returns the paths that a server must not write, which are the same as for agents. If lango uses a single
/// directory, the server's private directory is inside it; then all other entries are protected one by one.
fn read_only_paths(private: &Path, write: &[PathBuf], context: &McpContext<'_>) -> Vec<PathBuf> {
    let mut read_only = Vec::new();
    for path in &context.policy.read_only {
        if !private.starts_with(path) {
            read_only.push(path.clone());
            continue;
        }
        let settings = SETTINGS.map(|name| path.join(name));
        if write.iter().any(|folder| path.starts_with(folder)) {
            // A path that does not exist cannot be protected.
            let _ = SETTINGS_FOLDERS.map(|name| std::fs::create_dir(path.join(name)));
        }
        let entries = path.read_dir().into_iter().flatten().flatten();
        let entries = entries.map(|entry| entry.path());
        let entries = entries.filter(|entry| !private.starts_with(entry));
        read_only.extend(entries.chain(settings));
    }
    read_only.sort();
    read_only.dedup();
    read_only
}

/// Returns the private directory of a server, and the directory with copies of its code.
fn private_directories(loaded: &LoadedConfig, id: &str) -> [PathBuf; 2] {
    let paths = &loaded.paths;
    [paths.mcp_server(id), paths.mcp_copies(id)].map(|path| sandbox_setup::resolve_links(&path))
}

/// Returns the servers that lango starts as programs.
fn program_ids(loaded: &LoadedConfig) -> impl Iterator<Item = &str> {
    let servers = loaded.settings.mcp.servers.iter();
    let started = servers.filter(|(_, server)| !server.command.0.is_empty());
    started.map(|(id, _)| id.as_str())
}
