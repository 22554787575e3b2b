//! An MCP server that lango starts: what its program may touch.
//!
//! It gets its own private directory, the workspace if its configuration names it, and what its own settings open. What is
//! opened to the commands of agents is not opened to it.

use super::{Surrounding, variable};
use crate::config::{Loaded, McpServer, NetworkAccess};
use crate::hands;
use lango_mcp::{Program, ProgramProxy, Secret, SecretVariable, Variable};
use lango_sandbox::{Network, Policy};
use lango_secrets::SecretName;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// What precedes the name of a secret in the value of a variable.
const SECRET_PREFIX: &str = "secret:";

/// What decides over lango in the folder of its settings.
const SETTINGS: [&str; 3] = ["lango.toml", "agents", "skills"];
const SETTINGS_FOLDERS: [&str; 2] = ["agents", "skills"];

/// Makes the private directories of all servers. One that does not exist could not be hidden from the others, nor from
/// agents whose workspace is the home.
pub(super) fn make_folders(loaded: &Loaded) {
    let mut folders = std::fs::DirBuilder::new();
    folders.recursive(true).mode(0o700);
    for folder in program_ids(loaded).flat_map(|id| own_folders(loaded, id)) {
        // Where it cannot be made the server does not start, and says why.
        let _ = folders.create(folder);
    }
}

/// The program of a server. The error says what is wrong with its settings.
pub(super) fn program(
    id: &str,
    server: &McpServer,
    here: &Surrounding<'_>,
) -> Result<Program, String> {
    let argv = server.command.0.clone();
    let secrets = secret_variables(server)?;
    let is_secret = |variable: &str| secrets.iter().any(|secret| secret.variable == variable);
    let env = server.env.0.iter().filter(|(name, _)| !is_secret(name));
    let env = env.map(|(name, value)| Variable {
        name: name.clone(),
        is_passed_on: value.is_none(),
        value: match value {
            Some(value) => Some(Secret::new(value.clone())),
            None => variable(here.env, name),
        },
    });
    let env: Vec<Variable> = env.collect();
    let real = |paths: &[PathBuf]| -> Vec<PathBuf> {
        paths.iter().map(|path| hands::real(path)).collect()
    };
    let [private, copies] = own_folders(here.loaded, id);
    let mut write = real(&server.write);
    if Program::names_workspace(&argv, &env) {
        write.push(here.policy.workspace.clone());
    }
    let mut policy = Policy {
        kept: kept(&private, &write, here),
        unprotected: vec![private.clone()],
        workspace: private,
        read: real(&server.read),
        write,
        hidden: hidden(id, here),
        network: match server.network {
            NetworkAccess::Closed => Network::None,
            NetworkAccess::Hosts(_) => Network::Proxied,
            NetworkAccess::Open => Network::Host,
        },
        hide_dotfiles_in: here.policy.hide_dotfiles_in.clone(),
        allow_git_init: here.policy.allow_git_init,
    };
    policy.read.push(copies.clone());
    Ok(Program {
        argv,
        env,
        proxy: proxy(server, secrets, here)?,
        data: server.data.clone(),
        policy,
        limits: hands::limits(here.loaded),
        agents: here.policy.clone(),
        copies,
    })
}

/// Returns the variables that are secrets of the vault.
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

/// Returns the proxy of a program that may contact some hosts and not all.
fn proxy(
    server: &McpServer,
    secrets: Vec<SecretVariable>,
    here: &Surrounding<'_>,
) -> Result<Option<ProgramProxy>, String> {
    match &server.network {
        NetworkAccess::Hosts(hosts) => Ok(Some(ProgramProxy {
            egress: here.egress.clone(),
            hosts: hosts.clone(),
            user: here.loaded.settings.session.user.clone(),
            access: here.secrets.clone(),
            secrets,
        })),
        NetworkAccess::Closed | NetworkAccess::Open => match secrets.first() {
            None => Ok(None),
            Some(SecretVariable { variable, name }) => Err(format!(
                "`env.{variable}` is the secret `{name}`, which only the proxy of a list of hosts can replace; set \
                 `network = [\"HOST\"]` with the host that the secret is bound to"
            )),
        },
    }
}

/// What is hidden from a server: all that is hidden from agents, but of the servers' private directories only those of
/// others.
fn hidden(id: &str, here: &Surrounding<'_>) -> Vec<PathBuf> {
    let all = hands::real(&here.loaded.paths.mcp_servers());
    let own = own_folders(here.loaded, id);
    let hidden = here.policy.hidden.iter().filter(|path| **path != all);
    let configured = program_ids(here.loaded).flat_map(|id| own_folders(here.loaded, id));
    let found = all.read_dir().into_iter().flatten().flatten();
    let others = configured.chain(found.map(|entry| entry.path()));
    let others = others.filter(|path| !own.contains(path));
    let mut hidden: Vec<PathBuf> = hidden.cloned().chain(others).collect();
    hidden.sort();
    hidden.dedup();
    hidden
}

/// What a server must not write: what agents must not. Where everything is in one folder, that folder holds the server's
/// private directory too; it is then kept entry by entry.
fn kept(private: &Path, write: &[PathBuf], here: &Surrounding<'_>) -> Vec<PathBuf> {
    let mut kept = Vec::new();
    for path in &here.policy.kept {
        if !private.starts_with(path) {
            kept.push(path.clone());
            continue;
        }
        let settings = SETTINGS.map(|name| path.join(name));
        if write.iter().any(|folder| path.starts_with(folder)) {
            // What does not exist cannot be covered.
            let _ = SETTINGS_FOLDERS.map(|name| std::fs::create_dir(path.join(name)));
        }
        let entries = path.read_dir().into_iter().flatten().flatten();
        let entries = entries.map(|entry| entry.path());
        let entries = entries.filter(|entry| !private.starts_with(entry));
        kept.extend(entries.chain(settings));
    }
    kept.sort();
    kept.dedup();
    kept
}

/// The private directory of a server, and that of the copies of its code.
fn own_folders(loaded: &Loaded, id: &str) -> [PathBuf; 2] {
    let paths = &loaded.paths;
    [paths.mcp_server(id), paths.mcp_copies(id)].map(|path| hands::real(&path))
}

/// The servers that are started here.
fn program_ids(loaded: &Loaded) -> impl Iterator<Item = &str> {
    let servers = loaded.settings.mcp.servers.iter();
    let started = servers.filter(|(_, server)| !server.command.0.is_empty());
    started.map(|(id, _)| id.as_str())
}
