//! The topology that `agent.topology` names: built in, a file, or a folder of agent files.

use super::files::{Problem, Problems, read_bytes};
use super::{AgentFolder, Whose, agents_dir};
use crate::config::{self, Loaded, Trust};
use crate::exit::{Exit, Failure};
use crate::text_file;
use lango_engine::{AgentFile, Topology, TopologyError};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The largest topology file that is read.
pub(super) const LARGEST_TOPOLOGY_KIB: usize = 1024;

/// What a folder's topology says besides its agents.
const HEAD: &str = "topology.toml";

/// Where a topology is.
pub(super) enum Named {
    /// In lango itself.
    BuiltIn(Topology),
    /// In a file.
    File(PathBuf),
    /// In a folder: a head, and a file for each agent.
    Folder(AgentFolder),
}

impl Named {
    /// A built-in topology, a path, or a name that stands for a file or a folder in the folder of agents.
    pub fn find(loaded: &Loaded) -> Result<Self, Failure> {
        let path = match &loaded.settings.agent.topology {
            config::Topology::File(path) => path.clone(),
            config::Topology::Named(name) if Topology::BUILT_IN.contains(&name.as_str()) => {
                return Ok(Self::BuiltIn(Topology::built_in(name)?));
            }
            config::Topology::Named(name) => {
                let folder = agents_dir(loaded);
                let places = [folder.join(format!("{name}.toml")), folder.join(name)];
                match places.into_iter().find(|path| path.exists()) {
                    Some(path) => path,
                    None => return Err(unknown_topology(name, &folder)),
                }
            }
        };
        let whose = whose(loaded);
        Ok(match path.is_dir() {
            true => Self::Folder(AgentFolder { path, whose }),
            false => Self::File(path),
        })
    }
}

/// Whose word the topology is.
pub(super) fn whose(loaded: &Loaded) -> Whose {
    let is_named = matches!(loaded.settings.agent.topology, config::Topology::Named(_));
    let is_in_folder = is_named && loaded.is_the_projects("agent.agentsDir");
    match loaded.is_the_projects("agent.topology") || is_in_folder {
        true => Whose::Project,
        false => Whose::Person,
    }
}

/// The files of a topology that is the project's.
pub(super) fn project_files(loaded: &Loaded) -> Vec<PathBuf> {
    match Named::find(loaded) {
        Ok(Named::File(path)) if whose(loaded) == Whose::Project => vec![path],
        Ok(Named::Folder(folder)) if folder.whose == Whose::Project => {
            let head = Some(folder.path.join(HEAD)).filter(|head| head.exists());
            head.into_iter().chain(folder.names()).collect()
        }
        _ => Vec::new(),
    }
}

pub(super) fn read_file(path: &Path, whose: Whose, trust: &Trust) -> Result<Topology, Failure> {
    let text = text_of(path, whose, trust)?;
    let mut topology = Topology::parse(&text, &path.display().to_string())?;
    topology.trust = whose.label();
    for spec in &mut topology.agents {
        spec.trust = whose.label();
    }
    Ok(topology)
}

/// A topology of the agents whose files are in this folder, and of no others.
pub(super) fn read_folder(
    folder: &AgentFolder,
    trust: &Trust,
) -> Result<(Topology, Vec<(PathBuf, AgentFile)>), Failure> {
    let path = folder.path.join(HEAD);
    let head = match path.exists() {
        true => Some(text_of(&path, folder.whose, trust)?),
        false => None,
    };
    let (mut unheard, mut problems) = (Vec::new(), Problems::default());
    let files = folder.read(trust, &mut unheard, &mut problems);
    if let Some(path) = unheard.first() {
        return Err(untrusted(path));
    }
    if folder.names().is_empty() {
        problems.push(Problem {
            path: folder.path.clone(),
            line: None,
            detail: "a topology in a folder has a file NAME.md for each of its agents, and there is none".to_owned(),
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
    topology.trust = folder.whose.label();
    Ok((topology, files))
}

fn text_of(path: &Path, whose: Whose, trust: &Trust) -> Result<String, Failure> {
    let unreadable = |error: std::io::Error| TopologyError::Malformed {
        origin: path.display().to_string(),
        detail: error.to_string(),
    };
    let most_kib = LARGEST_TOPOLOGY_KIB;
    let text = match whose {
        // Whatever the person names is read, be it a pipe.
        Whose::Person => File::open(path).and_then(|file| text_file::read(file, most_kib as u64)),
        Whose::Project => {
            let bytes = read_bytes(path, whose, most_kib).map_err(unreadable)?;
            if !trust.holds(path, &bytes) {
                return Err(untrusted(path));
            }
            text_file::read(bytes.as_slice(), most_kib as u64)
        }
    };
    Ok(text.map_err(unreadable)?)
}

/// Running other agents than the project's would not be what anybody asked for.
fn untrusted(path: &Path) -> Failure {
    let message = format!(
        "`{}` belongs to the topology that the project's file names, and nobody trusts it as it is now",
        path.display()
    );
    Failure::new(Exit::Config, message).next("read it, then `lango config trust`")
}

/// Says where the name was looked for, and which names are there.
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
