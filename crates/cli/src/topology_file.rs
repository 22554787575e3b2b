//! Finding and reading the topology that the configuration names.

use crate::config::{self, AgentSettings};
use crate::exit::{Exit, Failure};
use crate::text_file;
use lango_engine::{Topology, TopologyError};
use std::fs::File;
use std::path::Path;

/// The largest topology file that is read.
const LARGEST_TOPOLOGY_KIB: u64 = 1024;

/// A built-in topology, a file, or a name that stands for a file in the folder of agents.
pub(crate) fn read_topology(agent: &AgentSettings, user_file: &Path) -> Result<Topology, Failure> {
    let path = match &agent.topology {
        config::Topology::File(path) => path.clone(),
        config::Topology::Named(name) if Topology::BUILT_IN.contains(&name.as_str()) => {
            return Ok(Topology::built_in(name)?);
        }
        config::Topology::Named(name) => {
            let folder = agent
                .agents_dir
                .clone()
                .or_else(|| Some(user_file.parent()?.join("agents")))
                .unwrap_or_default();
            let file = folder.join(format!("{name}.toml"));
            if !file.exists() {
                return Err(unknown_topology(name, &folder));
            }
            file
        }
    };
    let text = File::open(&path)
        .and_then(|file| text_file::read(file, LARGEST_TOPOLOGY_KIB))
        .map_err(|error| unreadable(&path, &error))?;
    Ok(Topology::parse(&text, &path.display().to_string())?)
}

/// Says where the name was looked for, and which names are there.
fn unknown_topology(name: &str, folder: &Path) -> Failure {
    let files = folder.read_dir().into_iter().flatten().flatten();
    let paths = files.map(|file| file.path());
    let mut names: Vec<String> = paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    let found = match names.is_empty() {
        true => "no topology file there".to_owned(),
        false => format!("there are {}", names.join(", ")),
    };
    let error = TopologyError::Unknown { name: name.into() };
    Failure::new(
        Exit::Config,
        format!("{error}\n  looked in: `{}` ({found})", folder.display()),
    )
    .next("`lango config show --origin` tells where agent.topology is set")
}

fn unreadable(path: &Path, error: &std::io::Error) -> TopologyError {
    TopologyError::Malformed {
        origin: path.display().to_string(),
        detail: error.to_string(),
    }
}
