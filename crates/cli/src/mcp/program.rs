//! An MCP server that lango starts: what its program may touch.
//!
//! It gets its own private directory, the workspace if its configuration names it, and what its own settings open. What is
//! opened to the commands of agents is not opened to it.

use super::{Surrounding, variable};
use crate::config::{Loaded, McpServer};
use crate::hands;
use lango_mcp::{Program, Secret, Variable};
use lango_sandbox::{Network, Policy};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

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

/// The program of a server.
pub(super) fn program(id: &str, server: &McpServer, here: &Surrounding<'_>) -> Program {
    let argv = server.command.0.clone();
    let env = server.env.0.iter().map(|(name, value)| Variable {
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
    let mut policy = Policy {
        workspace: private,
        read: real(&server.read),
        write: real(&server.write),
        kept: here.policy.kept.clone(),
        hidden: hidden(id, here),
        network: if server.network {
            Network::Host
        } else {
            Network::None
        },
    };
    policy.read.push(copies.clone());
    if Program::names_workspace(&argv, &env) {
        policy.write.push(here.policy.workspace.clone());
    }
    Program {
        argv,
        env,
        data: server.data.clone(),
        policy,
        limits: hands::limits(here.loaded),
        agents: here.policy.clone(),
        copies,
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
