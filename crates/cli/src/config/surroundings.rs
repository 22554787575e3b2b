//! What the configuration depends on, and the files and folders that follow from it.
//!
//! The only place that looks at the process is [`Surroundings::from_process`]; a test makes its own.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lango_tools::{SkillFolder, Whose};
use lango_vault::SecretValue;

use super::overlay;
use super::ownership::{ForeignPath, Owner};
use super::problem::{Problem, Problems};
use super::trust::Trust;

/// The name of a configuration file, the project's and the user's.
const FILE_NAME: &str = "lango.toml";

/// The folder of the list of trusted files, and its name there.
const CLEAN_UP_FOLDER: &str = "clean-up";
const TRUST_FOLDER: &str = "trust";
const TRUST_FILE: &str = "trusted.json";

/// The folders of a project's skills.
const PROJECT_SKILLS: [&str; 2] = [".lango/skills", ".agents/skills"];

/// The directory with the lists of models that providers offer.
const MODEL_LISTS: &str = "model-lists";

/// The folder that remembers cards of remote agents which did not come in time.
const SLOW_CARDS: &str = "slow-cards";

/// The directory with what MCP servers store.
const MCP_SERVERS: &str = "mcp-servers";

/// The variable with the passphrase of the vault, for scripts and servers.
pub const VAULT_PASSPHRASE: &str = "LANGO_VAULT_PASSPHRASE";

/// The variable with the passphrase of the server's vault; [`VAULT_PASSPHRASE`] if it is not set.
pub const SERVER_VAULT_PASSPHRASE: &str = "LANGO_SERVER_VAULT_PASSPHRASE";

/// The variable with a passphrase that `lango secrets methods add --passphrase` adds.
pub const NEW_VAULT_PASSPHRASE: &str = "LANGO_NEW_VAULT_PASSPHRASE";

/// Everything outside of files that has a say.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The environment variables; an empty one counts as not set.
    pub env: BTreeMap<OsString, OsString>,
    /// The working folder, absolute.
    pub cwd: PathBuf,
    /// The values of the `-c` flags in their order: `key=value`, the last one wins.
    pub flags: Vec<String>,
    /// The passphrase of the vault. It is not in `env`, so that nothing that lango starts is given it.
    pub vault_passphrase: Option<Arc<SecretValue>>,
    /// The passphrase of the server's vault, if it has one of its own. It is not in `env` either.
    pub server_vault_passphrase: Option<Arc<SecretValue>>,
    /// The passphrase to add to a vault. It is not in `env` either.
    pub new_vault_passphrase: Option<Arc<SecretValue>>,
}

impl Surroundings {
    /// Those of this process, with the `-c` flags it was given.
    ///
    /// # Errors
    /// The working folder does not exist any more, or may not be read.
    pub fn from_process(flags: Vec<String>) -> Result<Self, Problems> {
        let cwd = env::current_dir().map_err(Problem::NoWorkingFolder)?;
        let mut env: BTreeMap<OsString, OsString> = env::vars_os().collect();
        let mut take = |variable: &str| {
            let value = env.remove(OsStr::new(variable))?;
            (!value.is_empty()).then(|| Arc::new(SecretValue::new(value.into_vec())))
        };
        let vault_passphrase = take(VAULT_PASSPHRASE);
        let server_vault_passphrase = take(SERVER_VAULT_PASSPHRASE);
        let new_vault_passphrase = take(NEW_VAULT_PASSPHRASE);
        Ok(Self {
            env,
            cwd,
            flags,
            vault_passphrase,
            server_vault_passphrase,
            new_vault_passphrase,
        })
    }

    /// The home of the user, if there is one.
    pub fn home(&self) -> Option<&Path> {
        self.folder("HOME")
    }

    /// A variable that holds an absolute path. The XDG rules say to ignore a relative one.
    fn folder(&self, variable: &str) -> Option<&Path> {
        self.variable(variable)
            .map(Path::new)
            .filter(|path| path.is_absolute())
    }

    fn variable(&self, name: &str) -> Option<&OsStr> {
        self.env
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
            .filter(|value| !value.is_empty())
    }
}

/// The files and folders of a run. None of them has to exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The user's configuration file.
    pub user_file: PathBuf,
    /// The project's configuration file, where there is one besides the user's.
    pub project_file: Option<PathBuf>,
    /// Files and folders of the project that are ignored, because they are not the user's alone.
    pub foreign: Vec<ForeignPath>,
    /// The folder for what must not be lost.
    pub data: PathBuf,
    /// The folder for what would only be missed.
    pub state: PathBuf,
}

impl Paths {
    /// The database of the default store.
    pub fn database(&self) -> PathBuf {
        self.data.join("lango.db")
    }

    /// Where deleted files go.
    pub fn trash(&self) -> PathBuf {
        self.data.join("trash")
    }

    /// Where files go that commands may not create.
    pub fn clean_up_trash(&self) -> PathBuf {
        self.trash().join("after-commands")
    }

    /// Where clean-ups after commands are recorded until they are done.
    pub fn clean_up_records(&self) -> PathBuf {
        self.data.join(CLEAN_UP_FOLDER)
    }

    /// Where the whole output of commands is kept.
    pub fn outputs(&self) -> PathBuf {
        self.data.join("outputs")
    }

    /// Where browsers have their private directories.
    pub fn browsers(&self) -> PathBuf {
        self.data.join("browsers")
    }

    /// Where MCP servers' pictures, sounds and files are kept.
    pub fn attachments(&self) -> PathBuf {
        self.data.join("attachments")
    }

    /// What MCP servers said of their tools when the person last agreed to it.
    pub fn mcp_pins(&self) -> PathBuf {
        self.state.join("mcp").join("pins.json")
    }

    /// What was granted at logins to MCP servers.
    pub fn mcp_grants(&self) -> PathBuf {
        self.state.join("mcp").join("grants.json")
    }

    /// The directory with a private directory for each MCP server that lango starts. It stands beside lango's state, not
    /// in it, where each has a folder of its own: all of lango's state is hidden from servers, and nothing in a hidden
    /// folder can be opened to one of them.
    pub fn mcp_servers(&self) -> PathBuf {
        if self.has_one_folder() {
            self.state.join(MCP_SERVERS)
        } else {
            self.state.with_file_name(format!("lango-{MCP_SERVERS}"))
        }
    }

    /// The private directory of an MCP server, in which it is started.
    pub fn mcp_server(&self, id: &str) -> PathBuf {
        self.mcp_servers().join(id)
    }

    /// Copies of the code of an MCP server that agents can write. The server reads them, and only lango writes them.
    pub fn mcp_copies(&self, id: &str) -> PathBuf {
        // No id has a dot.
        self.mcp_servers().join(format!("{id}.trusted"))
    }

    /// Whether everything is in one folder.
    fn has_one_folder(&self) -> bool {
        self.user_file.parent() == Some(&self.data)
    }

    /// What agents must not even see. Where everything is in one folder, that is all of ours in it but the settings, the
    /// agents and the skills, which are there to be used.
    pub fn private(&self) -> Vec<PathBuf> {
        if !self.has_one_folder() {
            return vec![self.data.clone(), self.state.clone(), self.mcp_servers()];
        }
        const OURS: [&str; 18] = [
            "lango.db",
            "lango.db-wal",
            "lango.db-shm",
            "lango.locks",
            "outputs",
            "trash",
            CLEAN_UP_FOLDER,
            "chat-history",
            "sandbox.json",
            "replica-id",
            "server-token",
            "attachments",
            "mcp",
            MCP_SERVERS,
            MODEL_LISTS,
            SLOW_CARDS,
            TRUST_FOLDER,
            TRUST_FILE,
        ];
        OURS.iter().map(|name| self.data.join(name)).collect()
    }

    /// Where cards of remote agents that did not come in time are remembered.
    pub fn slow_cards(&self) -> PathBuf {
        self.state.join(SLOW_CARDS)
    }

    /// Where the lists of models that providers offer are stored.
    pub fn model_lists(&self) -> PathBuf {
        self.state.join(MODEL_LISTS)
    }

    /// The token that callers of the server have to know.
    pub fn server_token(&self) -> PathBuf {
        self.state.join("server-token")
    }

    /// The list of projects' files that are trusted.
    pub fn trust_file(&self) -> PathBuf {
        self.trust_folder().join(TRUST_FILE)
    }

    /// The folder of that list. It has one of its own, because a file that is replaced comes out from under its cover in a
    /// command that runs already, and what is in a hidden folder does not.
    pub fn trust_folder(&self) -> PathBuf {
        self.data.join(TRUST_FOLDER)
    }

    /// Where that list was before.
    pub fn former_trust_file(&self) -> PathBuf {
        self.data.join(TRUST_FILE)
    }

    /// The folders with skills: the person's own, and the project's.
    pub fn skills(&self, workspace: &Path) -> Vec<SkillFolder> {
        let own = self.user_file.with_file_name("skills");
        let project = self.project(workspace);
        let of_project = PROJECT_SKILLS.iter().map(|name| project.join(name));
        let of_project = of_project
            .filter(|path| self.foreign.iter().all(|foreign| foreign.path != *path))
            .map(|path| SkillFolder {
                path,
                whose: Whose::Project,
            });
        let own = SkillFolder {
            path: own,
            whose: Whose::User,
        };
        std::iter::once(own).chain(of_project).collect()
    }

    /// The project's folder of agents.
    pub fn project_agents(&self, workspace: &Path) -> PathBuf {
        self.project(workspace).join(".lango/agents")
    }

    /// The folder that the project is: that of its configuration file, else the one that lango was started in.
    pub fn project<'a>(&'a self, workspace: &'a Path) -> &'a Path {
        let project = self.project_file.as_deref().and_then(Path::parent);
        project.unwrap_or(workspace)
    }

    /// The lines typed into the chat.
    pub fn chat_history(&self) -> PathBuf {
        self.state.join("chat-history")
    }

    /// Finds them: all in `LANGO_HOME`, or else each where XDG wants it.
    ///
    /// # Errors
    /// Nothing says where files belong.
    pub fn locate(surroundings: &Surroundings) -> Result<Self, Problems> {
        let all = surroundings
            .variable("LANGO_HOME")
            .map(|folder| surroundings.cwd.join(folder));
        let place = |variable: &str, below_home: &str| {
            let own = || surroundings.folder(variable).map(Path::to_path_buf);
            let usual = || surroundings.home().map(|home| home.join(below_home));
            let xdg = || own().or_else(usual).map(|folder| folder.join("lango"));
            let found = all.clone().or_else(xdg);
            found.ok_or_else(|| Problems::from(Problem::NoHome))
        };
        let mut paths = Self {
            project_file: None,
            foreign: Vec::new(),
            user_file: place("XDG_CONFIG_HOME", ".config")?.join(FILE_NAME),
            data: place("XDG_DATA_HOME", ".local/share")?,
            state: place("XDG_STATE_HOME", ".local/state")?,
        };
        paths.find_project(surroundings);
        Ok(paths)
    }

    /// The project's file that is ignored, because it is not the user's alone.
    pub fn foreign_project_file(&self) -> Option<&ForeignPath> {
        let mut foreign = self.foreign.iter();
        foreign.find(|foreign| foreign.path.file_name() == Some(OsStr::new(FILE_NAME)))
    }

    /// Finds the project's file and notes what of the project is not the user's alone. A file that the user trusted as
    /// it is needs no owner.
    fn find_project(&mut self, surroundings: &Surroundings) {
        let owner = Owner::of_process(surroundings);
        let file = project_file(surroundings).filter(|file| *file != self.user_file);
        if let Some(path) = file {
            let is_trusted = || {
                let content = overlay::contents(&path).ok().flatten();
                content.is_some_and(|content| Trust::read(self).holds(&path, content))
            };
            match owner.objection(&path) {
                Some(reason) if !is_trusted() => self.foreign.push(ForeignPath { path, reason }),
                _ => self.project_file = Some(path),
            }
        }
        let project = self.project(&surroundings.cwd).to_path_buf();
        for name in PROJECT_SKILLS {
            let path = project.join(name);
            if !path.exists() {
                continue;
            }
            let above = path.parent().unwrap_or(&project);
            let objection = owner.objection(above).or_else(|| owner.objection(&path));
            let foreign = objection.map(|reason| ForeignPath { path, reason });
            self.foreign.extend(foreign);
        }
    }
}

/// The nearest file from the working folder upward. A repository's root, the home and the end of the file system stop the
/// search: what lies above them belongs to other projects or other people.
fn project_file(surroundings: &Surroundings) -> Option<PathBuf> {
    let home = surroundings.home();
    let real_home = home.and_then(|home| home.canonicalize().ok());
    let device = |folder: &Path| folder.metadata().map(|metadata| metadata.dev()).ok();
    let own_device = device(&surroundings.cwd);
    for folder in surroundings.cwd.ancestors() {
        // A folder that does not exist has no device.
        let is_other =
            device(folder).is_some_and(|found| own_device.is_some_and(|own| own != found));
        if is_other {
            return None;
        }
        let file = folder.join(FILE_NAME);
        if file.exists() {
            return Some(file);
        }
        let is_home = home == Some(folder) || real_home.as_deref() == Some(folder);
        if is_home || folder.join(".git").exists() {
            return None;
        }
    }
    None
}
