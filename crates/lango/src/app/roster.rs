//! The agent definitions: the configured topology, and the agent files that extend a built-in one.
//!
//! A custom topology, in a file or a directory, defines all of its agents; agent files extend only built-in ones.
//! A file in a project's directory with text for models, such as `AGENTS.md`, is used only if the user trusts its
//! current content.

mod files;
mod instructions;
mod topology;

use crate::app::failure::Failure;
use files::{AgentFileProblem, AgentFileProblems};
pub use files::{AgentFolder, FileOwner};
pub use instructions::path as instructions_file;
use lango_config::{LoadedConfig, TrustedFiles};
use lango_core::AgentName;
use lango_engine::{AgentFile, AgentSpec, ProjectInstructions, Topology, Tree};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use topology::TopologySource;

/// The agent definitions, and where each one comes from.
#[derive(Debug)]
pub struct Roster {
    /// `None` for a single agent.
    pub topology: Option<Topology>,
    /// The project's `AGENTS.md`, if its current content is trusted.
    pub instructions: Option<ProjectInstructions>,
    /// Files of the project that are ignored because their current content is not trusted.
    pub untrusted_files: Vec<PathBuf>,
    /// Agent files that are not used.
    pub unused: Vec<PathBuf>,
    sources: BTreeMap<AgentName, AgentSource>,
}

/// The origin of an agent that is not built in.
#[derive(Debug)]
struct AgentSource {
    path: PathBuf,
    model_line: Option<usize>,
}

impl Roster {
    /// Reads the configured topology and agent files.
    ///
    /// # Errors
    /// All problems of all agent files, or a problem of the topology.
    pub fn read(loaded: &LoadedConfig, workspace: &Path) -> Result<Self, Failure> {
        Self::read_with_trust(loaded, workspace, &TrustedFiles::read(&loaded.paths))
    }

    /// Reads the configured topology and agent files as if these were the trusted files, instead of the stored ones.
    pub(crate) fn read_with_trust(
        loaded: &LoadedConfig,
        workspace: &Path,
        trust: &TrustedFiles,
    ) -> Result<Self, Failure> {
        let folders = folders(loaded, workspace);
        let mut roster = Self {
            topology: None,
            instructions: None,
            untrusted_files: Vec::new(),
            unused: Vec::new(),
            sources: BTreeMap::new(),
        };
        if loaded.settings.agent.multi_agent {
            roster.read_topology(loaded, &folders, trust)?;
        } else {
            roster.unused = folders.iter().flat_map(AgentFolder::names).collect();
        }
        if !roster.instructed_agents().is_empty() {
            roster.instructions = instructions::read(workspace, trust, &mut roster.untrusted_files);
        }
        Ok(roster)
    }

    fn read_topology(
        &mut self,
        loaded: &LoadedConfig,
        folders: &[AgentFolder],
        trust: &TrustedFiles,
    ) -> Result<(), Failure> {
        let topology = match TopologySource::find(loaded)? {
            TopologySource::BuiltIn(topology) => self.join(topology, folders, trust)?,
            TopologySource::File(path) => {
                self.unused = folders.iter().flat_map(AgentFolder::names).collect();
                let topology = topology::read_file(&path, topology::owner(loaded), trust)?;
                for spec in &topology.agents {
                    self.add_source(&path, &spec.name, None);
                }
                topology
            }
            TopologySource::Folder(folder) => {
                self.unused = folders.iter().flat_map(AgentFolder::names).collect();
                let (topology, files) = topology::read_folder(&folder, trust)?;
                for (path, file) in &files {
                    self.add_source(path, &file.spec.name, file.model_line);
                }
                topology
            }
        };
        self.topology = Some(topology);
        Ok(())
    }

    /// Returns the file that defines this agent; `None` if it is built in.
    pub fn file_of(&self, agent: &AgentName) -> Option<&Path> {
        self.sources.get(agent).map(|source| source.path.as_path())
    }

    /// Returns the name of the root agent.
    pub fn root(&self) -> AgentName {
        match &self.topology {
            Some(topology) => topology.root.clone(),
            None => AgentName::from(Tree::SINGLE),
        }
    }

    /// Returns the names of all agents, including the orchestrator.
    pub fn names(&self) -> Vec<AgentName> {
        let topologies = self.topology.iter();
        let names = topologies.flat_map(|topology| {
            let agents = topology.agents.iter().map(|spec| spec.name.clone());
            agents.chain([topology.root.clone()])
        });
        names.collect()
    }

    /// Returns the agents that get the project's instructions.
    pub fn instructed_agents(&self) -> Vec<AgentName> {
        match &self.topology {
            None => vec![AgentName::from(Tree::SINGLE)],
            Some(topology) => {
                let agents = topology.agents.iter();
                let instructed = agents.filter(|spec| spec.project_instructions);
                instructed.map(|spec| spec.name.clone()).collect()
            }
        }
    }

    /// Returns the definition of an agent.
    pub fn spec_of(&self, agent: &AgentName) -> Option<&AgentSpec> {
        let mut agents = self.topology.iter().flat_map(|topology| &topology.agents);
        agents.find(|spec| spec.name == *agent)
    }

    /// Returns the agent that this file defines.
    pub fn agent_of(&self, file: &Path) -> Option<&AgentSpec> {
        let mut sources = self.sources.iter();
        let (agent, _) = sources.find(|(_, source)| source.path == file)?;
        let is_alone = file.extension().is_some_and(|extension| extension == "md");
        self.spec_of(agent).filter(|_| is_alone)
    }

    /// Returns where an agent's model is set: file and line, as far as they are known.
    pub fn model_location(&self, agent: &AgentName) -> String {
        match self.sources.get(agent) {
            None => "built-in".to_owned(),
            Some(AgentSource { path, model_line }) => match model_line {
                Some(line) => format!("{}:{line}", path.display()),
                None => path.display().to_string(),
            },
        }
    }

    /// Extends a built-in topology with the agents from files.
    fn join(
        &mut self,
        topology: Topology,
        folders: &[AgentFolder],
        trust: &TrustedFiles,
    ) -> Result<Topology, Failure> {
        let mut problems = AgentFileProblems::default();
        let mut found: Vec<(PathBuf, AgentFile)> = Vec::new();
        for folder in folders {
            for (path, file) in folder.read(trust, &mut self.untrusted_files, &mut problems) {
                // The project's file comes later, and replaces the user's if it is trusted.
                match found
                    .iter_mut()
                    .find(|(_, own)| own.spec.name == file.spec.name)
                {
                    Some(own) => *own = (path, file),
                    None => found.push((path, file)),
                }
            }
        }
        check_names(&topology, &found, &mut problems);
        problems.refuse_if_any()?;
        for (path, file) in &found {
            self.add_source(path, &file.spec.name, file.model_line);
        }
        let specs = found.into_iter().map(|(_, file)| file.spec);
        Ok(topology.with_agents(specs.collect())?)
    }

    fn add_source(&mut self, path: &Path, agent: &AgentName, model_line: Option<usize>) {
        let source = AgentSource {
            path: path.to_owned(),
            model_line,
        };
        self.sources.insert(agent.clone(), source);
    }
}

/// Returns the directories with agent files, in order of increasing precedence.
pub fn folders(loaded: &LoadedConfig, workspace: &Path) -> Vec<AgentFolder> {
    let owner = if loaded.is_set_by_project("agent.agentsDir") {
        FileOwner::Project
    } else {
        FileOwner::User
    };
    vec![
        AgentFolder {
            path: agents_dir(loaded),
            owner,
        },
        AgentFolder {
            path: loaded.paths.project_agents(workspace),
            owner: FileOwner::Project,
        },
    ]
}

/// A project file that the user must trust before models get its text.
#[derive(Debug)]
pub struct ProjectFile {
    pub path: PathBuf,
    /// The most KiB to read.
    max_kib: usize,
}

impl ProjectFile {
    /// Returns the content of the file up to the limit, so that the user can trust it.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        files::read_bytes(&self.path, FileOwner::Project, self.max_kib)
    }
}

/// Returns the project files that the user must trust before models get their text.
pub fn project_files(loaded: &LoadedConfig, workspace: &Path) -> Vec<ProjectFile> {
    let folders = folders(loaded, workspace);
    let of_project = folders
        .iter()
        .filter(|folder| folder.owner == FileOwner::Project);
    let agents = of_project.flat_map(AgentFolder::names);
    let topology = topology::project_files(loaded);
    let instructions = instructions_file(workspace);
    let instructions = instructions
        .symlink_metadata()
        .is_ok()
        .then_some(ProjectFile {
            path: instructions,
            max_kib: instructions::MAX_KIB,
        });
    let described = agents.chain(topology).map(|path| ProjectFile {
        max_kib: if path.extension().is_some_and(|extension| extension == "md") {
            AgentFile::MAX_KIB
        } else {
            topology::MAX_TOPOLOGY_KIB
        },
        path,
    });
    described.chain(instructions).collect()
}

/// Returns the user's directory of agents and topologies.
pub fn agents_dir(loaded: &LoadedConfig) -> PathBuf {
    let own = || loaded.paths.user_file.with_file_name("agents");
    loaded.settings.agent.agents_dir.clone().unwrap_or_else(own)
}

/// Checks for names that are taken, or that differ from others only in case.
fn check_names(
    topology: &Topology,
    found: &[(PathBuf, AgentFile)],
    problems: &mut AgentFileProblems,
) {
    for (at, (path, file)) in found.iter().enumerate() {
        let name = &file.spec.name;
        let others = topology.agents.iter().map(|spec| &spec.name);
        let others = others.chain(found[..at].iter().map(|(_, file)| &file.spec.name));
        let is_alike = |other: &&AgentName| {
            *other != name && other.as_str().eq_ignore_ascii_case(name.as_str())
        };
        let detail = match others.into_iter().find(is_alike) {
            _ if topology.root == *name => {
                format!("`{name}` is the name of the orchestrator; rename the file")
            }
            Some(other) => format!(
                "`{name}` and `{other}` differ only in case; use the same spelling, or rename the file"
            ),
            None => continue,
        };
        problems.push(AgentFileProblem {
            path: path.clone(),
            line: Some(file.name_line),
            detail,
        });
    }
}
