//! Who is there: the topology that the configuration names, and the agent files that join a built-in one.
//!
//! A topology of the person's own has all of its agents, be it a file or a folder; agent files join the built-in ones
//! only. What a project's folder says to a model is heard when the person trusts that very file, and not before; that holds
//! for its `AGENTS.md` as well.

mod files;
mod instructions;
mod topology;

use crate::config::{Loaded, Trust};
use crate::exit::Failure;
pub use files::{AgentFolder, Whose};
use files::{Problem, Problems};
pub use instructions::path as instructions_file;
use lango_core::AgentName;
use lango_engine::{AgentFile, AgentSpec, ProjectInstructions, Topology, Tree};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use topology::Named;

/// The agents that there are to be, and where each comes from.
#[derive(Debug)]
pub struct Roster {
    /// None for a single agent.
    pub topology: Option<Topology>,
    /// What the project's `AGENTS.md` tells its agents, if the file is trusted as it is.
    pub instructions: Option<ProjectInstructions>,
    /// Files of the project that are not heard, because nobody trusts them as they are.
    pub unheard: Vec<PathBuf>,
    /// Agent files that have no say here.
    pub unused: Vec<PathBuf>,
    sources: BTreeMap<AgentName, Source>,
}

/// Where an agent that is not built in comes from.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    model_line: Option<usize>,
}

impl Roster {
    /// Reads what the configuration names.
    ///
    /// # Errors
    /// All that is wrong with all agent files, or with the topology.
    pub fn read(loaded: &Loaded, workspace: &Path) -> Result<Self, Failure> {
        let folders = folders(loaded, workspace);
        let mut roster = Self {
            topology: None,
            instructions: None,
            unheard: Vec::new(),
            unused: Vec::new(),
            sources: BTreeMap::new(),
        };
        let trust = Trust::read(&loaded.paths);
        if loaded.settings.agent.multi_agent {
            roster.read_topology(loaded, &folders, &trust)?;
        } else {
            roster.unused = folders.iter().flat_map(AgentFolder::names).collect();
        }
        if !roster.instructed().is_empty() {
            roster.instructions = instructions::read(workspace, &trust, &mut roster.unheard);
        }
        Ok(roster)
    }

    fn read_topology(
        &mut self,
        loaded: &Loaded,
        folders: &[AgentFolder],
        trust: &Trust,
    ) -> Result<(), Failure> {
        let topology = match Named::find(loaded)? {
            Named::BuiltIn(topology) => self.join(topology, folders, trust)?,
            Named::File(path) => {
                self.unused = folders.iter().flat_map(AgentFolder::names).collect();
                let topology = topology::read_file(&path, topology::whose(loaded), trust)?;
                for spec in &topology.agents {
                    self.come_from(&path, &spec.name, None);
                }
                topology
            }
            Named::Folder(folder) => {
                self.unused = folders.iter().flat_map(AgentFolder::names).collect();
                let (topology, files) = topology::read_folder(&folder, trust)?;
                for (path, file) in &files {
                    self.come_from(path, &file.spec.name, file.model_line);
                }
                topology
            }
        };
        self.topology = Some(topology);
        Ok(())
    }

    /// The file that describes this agent; none if it is built in.
    pub fn file_of(&self, agent: &AgentName) -> Option<&Path> {
        self.sources.get(agent).map(|source| source.path.as_path())
    }

    /// The names of all agents, the orchestrator's included.
    pub fn names(&self) -> Vec<AgentName> {
        let topologies = self.topology.iter();
        let names = topologies.flat_map(|topology| {
            let agents = topology.agents.iter().map(|spec| spec.name.clone());
            agents.chain([topology.root.clone()])
        });
        names.collect()
    }

    /// The agents that are told the project's instructions.
    pub fn instructed(&self) -> Vec<AgentName> {
        match &self.topology {
            None => vec![AgentName::from(Tree::SINGLE)],
            Some(topology) => {
                let agents = topology.agents.iter();
                let told = agents.filter(|spec| spec.project_instructions);
                told.map(|spec| spec.name.clone()).collect()
            }
        }
    }

    /// The agent as it was described.
    pub fn spec_of(&self, agent: &AgentName) -> Option<&AgentSpec> {
        let mut agents = self.topology.iter().flat_map(|topology| &topology.agents);
        agents.find(|spec| spec.name == *agent)
    }

    /// The agent that this file describes.
    pub fn agent_of(&self, file: &Path) -> Option<&AgentSpec> {
        let mut sources = self.sources.iter();
        let (agent, _) = sources.find(|(_, source)| source.path == file)?;
        let is_alone = file.extension().is_some_and(|extension| extension == "md");
        self.spec_of(agent).filter(|_| is_alone)
    }

    /// Where an agent's model is named: file and line, as far as they are known.
    pub fn place_of_model(&self, agent: &AgentName) -> String {
        match self.sources.get(agent) {
            None => "built-in".to_owned(),
            Some(Source { path, model_line }) => match model_line {
                Some(line) => format!("{}:{line}", path.display()),
                None => path.display().to_string(),
            },
        }
    }

    /// The agents of a built-in topology, and those of the files.
    fn join(
        &mut self,
        topology: Topology,
        folders: &[AgentFolder],
        trust: &Trust,
    ) -> Result<Topology, Failure> {
        let mut problems = Problems::default();
        let mut found: Vec<(PathBuf, AgentFile)> = Vec::new();
        for folder in folders {
            for (path, file) in folder.read(trust, &mut self.unheard, &mut problems) {
                // The project's comes after the person's, and is in its place if it is trusted.
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
            self.come_from(path, &file.spec.name, file.model_line);
        }
        let specs = found.into_iter().map(|(_, file)| file.spec);
        Ok(topology.with_agents(specs.collect())?)
    }

    fn come_from(&mut self, path: &Path, agent: &AgentName, model_line: Option<usize>) {
        let source = Source {
            path: path.to_owned(),
            model_line,
        };
        self.sources.insert(agent.clone(), source);
    }
}

/// Where agent files are looked for, in the order in which they count.
pub fn folders(loaded: &Loaded, workspace: &Path) -> Vec<AgentFolder> {
    let whose = match loaded.is_the_projects("agent.agentsDir") {
        true => Whose::Project,
        false => Whose::Person,
    };
    vec![
        AgentFolder {
            path: agents_dir(loaded),
            whose,
        },
        AgentFolder {
            path: loaded.paths.project_agents(workspace),
            whose: Whose::Project,
        },
    ]
}

/// A file of the project that has to be trusted before a model is told what it says.
#[derive(Debug)]
pub struct ProjectFile {
    /// The file.
    pub path: PathBuf,
    /// The most KiB that are read of it.
    most_kib: usize,
}

impl ProjectFile {
    /// What it holds, as far as it is read, to be trusted as it is.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        files::read_bytes(&self.path, Whose::Project, self.most_kib)
    }
}

/// The files of the project that have to be trusted before a model is told what they say.
pub fn project_files(loaded: &Loaded, workspace: &Path) -> Vec<ProjectFile> {
    let folders = folders(loaded, workspace);
    let of_project = folders
        .iter()
        .filter(|folder| folder.whose == Whose::Project);
    let agents = of_project.flat_map(AgentFolder::names);
    let topology = topology::project_files(loaded);
    let instructions = instructions_file(workspace);
    let instructions = instructions
        .symlink_metadata()
        .is_ok()
        .then_some(ProjectFile {
            path: instructions,
            most_kib: instructions::LARGEST_KIB,
        });
    let described = agents.chain(topology).map(|path| ProjectFile {
        most_kib: match path.extension().is_some_and(|extension| extension == "md") {
            true => AgentFile::LARGEST_KIB,
            false => topology::LARGEST_TOPOLOGY_KIB,
        },
        path,
    });
    described.chain(instructions).collect()
}

/// The person's folder of agents and topologies.
pub fn agents_dir(loaded: &Loaded) -> PathBuf {
    let own = || loaded.paths.user_file.with_file_name("agents");
    loaded.settings.agent.agents_dir.clone().unwrap_or_else(own)
}

/// Names that are taken, or that nobody could tell from others.
fn check_names(topology: &Topology, found: &[(PathBuf, AgentFile)], problems: &mut Problems) {
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
                "`{name}` and `{other}` differ in capitals only; write it in the same way, or rename the file"
            ),
            None => continue,
        };
        problems.push(Problem {
            path: path.clone(),
            line: Some(file.name_line),
            detail,
        });
    }
}
