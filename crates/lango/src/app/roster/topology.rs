//! Reads the topology that `agent.topology` names: built in, a file, or a directory of agent files.

use super::files::{AgentFileProblem, AgentFileProblems, read_bytes};
use super::{AgentFolder, FileOwner, agents_dir};
use crate::app::failure::Failure;
use lango_config::text_file;
use lango_config::{LoadedConfig, TrustedFiles};
use lango_engine::{AgentFile, Topology, TopologyError};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The largest accepted topology file.
pub(super) const MAX_TOPOLOGY_KIB: usize = 1024;

/// The file in a topology's directory with everything besides its agents.
const HEAD: &str = "topology.toml";

/// The source of a topology.
pub(super) enum TopologySource {
    BuiltIn(Topology),
    File(PathBuf),
    /// A directory: a head file, and a file for each agent.
    Folder(AgentFolder),
}

impl TopologySource {
    /// Finds the configured topology: a built-in one, a path, or the name of a file or directory in the directory of
    /// agents.
    pub(super) fn find(loaded: &LoadedConfig) -> Result<Self, Failure> {
        let path = match &loaded.settings.agent.topology {
            lango_config::TopologyChoice::File(path) => path.clone(),
            lango_config::TopologyChoice::Named(name)
                if Topology::BUILT_IN.contains(&name.as_str()) =>
            {
                return Ok(Self::BuiltIn(Topology::built_in(name)?));
            }
            lango_config::TopologyChoice::Named(name) => {
                let folder = agents_dir(loaded);
                let places = [folder.join(format!("{name}.toml")), folder.join(name)];
                match places.into_iter().find(|path| path.exists()) {
                    Some(path) => path,
                    None => return Err(unknown_topology(name, &folder)),
                }
            }
        };
        let owner = owner(loaded);
        Ok(if path.is_dir() {
            Self::Folder(AgentFolder { path, owner })
        } else {
            Self::File(path)
        })
    }
}

/// Returns whether the user or the project chose the topology.
pub(super) fn owner(loaded: &LoadedConfig) -> FileOwner {
    let is_named = matches!(
        loaded.settings.agent.topology,
        lango_config::TopologyChoice::Named(_)
    );
    let is_in_folder = is_named && loaded.is_set_by_project("agent.agentsDir");
    if loaded.is_set_by_project("agent.topology") || is_in_folder {
        FileOwner::Project
    } else {
        FileOwner::User
    }
}

/// Returns the files of a topology that the project chose.
pub(super) fn project_files(loaded: &LoadedConfig) -> Vec<PathBuf> {
    match TopologySource::find(loaded) {
        Ok(TopologySource::File(path)) if owner(loaded) == FileOwner::Project => vec![path],
        Ok(TopologySource::Folder(folder)) if folder.owner == FileOwner::Project => {
            let head = Some(folder.path.join(HEAD)).filter(|head| head.exists());
            head.into_iter().chain(folder.names()).collect()
        }
        _ => Vec::new(),
    }
}

pub(super) fn read_file(
    path: &Path,
    owner: FileOwner,
    trust: &TrustedFiles,
) -> Result<Topology, Failure> {
    let text = text_of(path, owner, trust)?;
    let mut topology = Topology::parse(&text, &path.display().to_string())?;
    topology.trust = owner.trust_label();
    for spec in &mut topology.agents {
        spec.trust = owner.trust_label();
    }
    Ok(topology)
}

/// Reads a topology with exactly the agents whose files are in this directory.
pub(super) fn read_folder(
    folder: &AgentFolder,
    trust: &TrustedFiles,
) -> Result<(Topology, Vec<(PathBuf, AgentFile)>), Failure> {
    let path = folder.path.join(HEAD);
    let head = if path.exists() {
        Some(text_of(&path, folder.owner, trust)?)
    } else {
        None
    };
    let (mut untrusted_files, mut problems) = (Vec::new(), AgentFileProblems::default());
    let files = folder.read(trust, &mut untrusted_files, &mut problems);
    if let Some(path) = untrusted_files.first() {
        return Err(untrusted(path));
    }
    if folder.names().is_empty() {
        problems.push(AgentFileProblem {
            path: folder.path.clone(),
            line: None,
            detail: "a topology in a folder needs a file NAME.md for each of its agents, but there is none".to_owned(),
        });
    }
    problems.refuse_if_any()?;
    let name = folder
        .path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let specs = files.iter().map(|(_, file)| file.spec.clone()).collect();
    let origin = match head {
        Some(_) => path,
        None => folder.path.clone(),
    };
    let mut topology =
        Topology::of_agents(head.as_deref(), &origin.display().to_string(), &name, specs)?;
    topology.trust = folder.owner.trust_label();
    Ok((topology, files))
}

fn text_of(path: &Path, owner: FileOwner, trust: &TrustedFiles) -> Result<String, Failure> {
    let unreadable = |error: std::io::Error| TopologyError::Malformed {
        origin: path.display().to_string(),
        detail: error.to_string(),
    };
    let max_kib = MAX_TOPOLOGY_KIB;
    let text = match owner {
        // The user's own file may be anything, even a pipe.
        FileOwner::User => File::open(path).and_then(|file| text_file::read(file, max_kib as u64)),
        FileOwner::Project => {
            let bytes = read_bytes(path, owner, max_kib).map_err(unreadable)?;
            if !trust.is_trusted(path, &bytes) {
                return Err(untrusted(path));
            }
            text_file::read(bytes.as_slice(), max_kib as u64)
        }
    };
    Ok(text.map_err(unreadable)?)
}

/// Returns the failure for an untrusted file: running other agents instead would not be what the user wants.
fn untrusted(path: &Path) -> Failure {
    let message = format!(
        "`{}` belongs to the topology that the project's file names, and its current content is not trusted",
        path.display()
    );
    Failure::config(message).next("read it, then run `lango config trust`")
}

/// Returns the failure for an unknown topology, with the directory that was searched and the names in it.
fn unknown_topology(name: &str, folder: &Path) -> Failure {
    let files = folder.read_dir().into_iter().flatten().flatten();
    let paths = files.map(|file| file.path());
    let mut names: Vec<String> = paths
        .filter(|path| {
            let is_toml = path
                .extension()
                .is_some_and(|extension| extension == "toml");
            is_toml || path.is_dir()
        })
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    let found = if names.is_empty() {
        "no topologies".to_owned()
    } else {
        format!("it has {}", names.join(", "))
    };
    let error = TopologyError::Unknown { name: name.into() };
    Failure::config(format!(
        "{error}\n  searched: `{}` ({found})",
        folder.display()
    ))
    .next("run `lango config show --origin` to see where agent.topology is set")
}
