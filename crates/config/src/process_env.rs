//! The process environment that the configuration depends on, and the files and directories that follow from it.
//!
//! Only [`ProcessEnv::from_process`] looks at the real process; tests build their own value.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lango_tools::{SkillFolder, SkillOwner};
use lango_vault::SecretValue;

use super::overlay;
use super::ownership::{ForeignPath, Owner};
use super::problem::{ConfigProblem, ConfigProblems};
use super::trusted_files::TrustedFiles;

/// The file name of both the project's and the user's configuration.
const FILE_NAME: &str = "lango.toml";

/// Directories and files in the data directory.
const CLEAN_UP_FOLDER: &str = "clean-up";
const TRUST_FOLDER: &str = "trust";
const TRUST_FILE: &str = "trusted.json";

/// The directory of the file with the keys of model providers.
const CREDENTIALS: &str = "credentials";

/// Where a project may have skills, relative to its directory.
const PROJECT_SKILLS: [&str; 2] = [".lango/skills", ".agents/skills"];

/// The directory that caches the providers' model lists.
const MODEL_LISTS: &str = "model-lists";

/// The directory that records which remote agents' cards did not arrive in time.
const SLOW_CARDS: &str = "slow-cards";

/// The directory with the private directories of MCP servers.
const MCP_SERVERS: &str = "mcp-servers";

/// The environment variable with the vault's passphrase, for scripts and servers.
pub const VAULT_PASSPHRASE: &str = "LANGO_VAULT_PASSPHRASE";

/// The environment variable with the passphrase of the server's vault; [`VAULT_PASSPHRASE`] applies if it is not set.
pub const SERVER_VAULT_PASSPHRASE: &str = "LANGO_SERVER_VAULT_PASSPHRASE";

/// The environment variable with the passphrase that `lango secrets methods add --passphrase` adds.
pub const NEW_VAULT_PASSPHRASE: &str = "LANGO_NEW_VAULT_PASSPHRASE";

/// Everything besides files that influences the configuration.
#[derive(Debug, Clone)]
pub struct ProcessEnv {
    /// The environment variables; an empty one counts as not set.
    pub env: BTreeMap<OsString, OsString>,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// The values of the `-c` flags in order, each `key=value`; the last one wins.
    pub flags: Vec<String>,
    /// The vault's passphrase. It is removed from `env`, so that no child process inherits it.
    pub vault_passphrase: Option<Arc<SecretValue>>,
    /// The passphrase of the server's vault, if that has a different one. Removed from `env` too.
    pub server_vault_passphrase: Option<Arc<SecretValue>>,
    /// The passphrase to add to a vault. Removed from `env` too.
    pub new_vault_passphrase: Option<Arc<SecretValue>>,
}

impl ProcessEnv {
    /// Reads the environment of this process; `flags` are its `-c` flags.
    ///
    /// # Errors
    /// The working directory no longer exists or cannot be read.
    pub fn from_process(flags: Vec<String>) -> Result<Self, ConfigProblems> {
        let cwd = env::current_dir().map_err(ConfigProblem::NoWorkingFolder)?;
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

    /// Returns the user's home directory, if `HOME` is an absolute path.
    pub fn home(&self) -> Option<&Path> {
        self.folder("HOME")
    }

    /// Returns the value of an environment variable if it is an absolute path. Relative paths are ignored, as the XDG
    /// rules say.
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

/// The files and directories of a run. None of them has to exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    pub user_file: PathBuf,
    /// The project's configuration file, if there is one besides the user's.
    pub project_file: Option<PathBuf>,
    /// Files and directories of the project that are ignored because other users own them or can change them.
    pub foreign: Vec<ForeignPath>,
    /// The directory for data that must not be lost, such as the database.
    pub data: PathBuf,
    /// The directory for data that can be recreated, such as caches and history.
    pub state: PathBuf,
}

impl Paths {
    pub fn database(&self) -> PathBuf {
        self.data.join("lango.db")
    }

    pub fn trash(&self) -> PathBuf {
        self.data.join("trash")
    }

    /// Returns where the originals of files that agents changed are stored.
    pub fn undo(&self) -> PathBuf {
        self.data.join("undo")
    }

    /// Returns where clean-up moves protected files that a command created.
    pub fn clean_up_trash(&self) -> PathBuf {
        self.trash().join("after-commands")
    }

    /// Returns where pending clean-ups after commands are recorded.
    pub fn clean_up_records(&self) -> PathBuf {
        self.data.join(CLEAN_UP_FOLDER)
    }

    /// Returns the file with the keys of model providers that `lango setup` stores outside of the vault. It has a
    /// directory of its own for the same reason as the list of [trusted files](Self::trust_folder).
    pub fn credentials(&self) -> PathBuf {
        self.data.join(CREDENTIALS).join("keys.toml")
    }

    /// Returns where the full output of commands is stored.
    pub fn outputs(&self) -> PathBuf {
        self.data.join("outputs")
    }

    /// Returns where browsers have their private directories.
    pub fn browsers(&self) -> PathBuf {
        self.data.join("browsers")
    }

    /// Returns where images, audio and files from MCP servers are stored.
    pub fn attachments(&self) -> PathBuf {
        self.data.join("attachments")
    }

    /// Returns the file with the tool definitions of MCP servers that the user last agreed to.
    pub fn mcp_pins(&self) -> PathBuf {
        self.state.join("mcp").join("pins.json")
    }

    /// Returns the file with the tokens from logins to MCP servers.
    pub fn mcp_grants(&self) -> PathBuf {
        self.state.join("mcp").join("grants.json")
    }

    /// Returns the directory that contains a private directory for each MCP server that lango starts. Unless all of
    /// lango's files are in one directory, it lies beside the state directory. It cannot lie inside, because the state
    /// directory is hidden from servers, and nothing inside a hidden directory can be made visible to one of them.
    pub fn mcp_servers(&self) -> PathBuf {
        if self.has_one_folder() {
            self.state.join(MCP_SERVERS)
        } else {
            self.state.with_file_name(format!("lango-{MCP_SERVERS}"))
        }
    }

    /// Returns the private directory in which an MCP server is started.
    pub fn mcp_server(&self, id: &str) -> PathBuf {
        self.mcp_servers().join(id)
    }

    /// Returns the directory with trusted copies of a server's code that agents could otherwise change. The server
    /// reads them, and only lango writes them.
    pub fn mcp_copies(&self, id: &str) -> PathBuf {
        // Ids contain no dot, so this cannot clash with another server's directory.
        self.mcp_servers().join(format!("{id}.trusted"))
    }

    /// Returns whether configuration, data and state share one directory (`LANGO_HOME`).
    fn has_one_folder(&self) -> bool {
        self.user_file.parent() == Some(&self.data)
    }

    /// Returns the paths that are hidden from agents. If lango uses a single directory, these are all entries that
    /// lango creates in it, except the settings, the agents and the skills, which agents may read.
    pub fn private(&self) -> Vec<PathBuf> {
        if !self.has_one_folder() {
            return vec![self.data.clone(), self.state.clone(), self.mcp_servers()];
        }
        const OWN_ENTRIES: [&str; 20] = [
            "lango.db",
            "lango.db-wal",
            "lango.db-shm",
            "lango.locks",
            "outputs",
            "trash",
            "undo",
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
            CREDENTIALS,
        ];
        OWN_ENTRIES
            .iter()
            .map(|name| self.data.join(name))
            .collect()
    }

    /// Returns where lango records which remote agents' cards did not arrive in time.
    pub fn slow_cards(&self) -> PathBuf {
        self.state.join(SLOW_CARDS)
    }

    pub fn model_lists(&self) -> PathBuf {
        self.state.join(MODEL_LISTS)
    }

    /// Returns the file with the token that callers of the server must send.
    pub fn server_token(&self) -> PathBuf {
        self.state.join("server-token")
    }

    /// Returns the file that lists the trusted project files.
    pub fn trust_file(&self) -> PathBuf {
        self.trust_folder().join(TRUST_FILE)
    }

    /// Returns the directory of that list. The list has a directory of its own, because replacing a hidden file undoes
    /// its mount, so commands that are already running could see it. Everything inside a hidden directory stays
    /// hidden.
    pub fn trust_folder(&self) -> PathBuf {
        self.data.join(TRUST_FOLDER)
    }

    /// Returns where older versions stored that list.
    pub fn former_trust_file(&self) -> PathBuf {
        self.data.join(TRUST_FILE)
    }

    /// Returns the directories with skills: the user's own and the project's.
    pub fn skills(&self, workspace: &Path) -> Vec<SkillFolder> {
        let own = self.user_file.with_file_name("skills");
        let project = self.project(workspace);
        let of_project = PROJECT_SKILLS.iter().map(|name| project.join(name));
        let of_project = of_project
            .filter(|path| self.foreign.iter().all(|foreign| foreign.path != *path))
            .map(|path| SkillFolder {
                path,
                owner: SkillOwner::Project,
            });
        let own = SkillFolder {
            path: own,
            owner: SkillOwner::User,
        };
        std::iter::once(own).chain(of_project).collect()
    }

    /// Returns the project's directory of agent files.
    pub fn project_agents(&self, workspace: &Path) -> PathBuf {
        self.project(workspace).join(".lango/agents")
    }

    /// Returns the project's directory: that of its configuration file, or else the workspace.
    pub fn project<'a>(&'a self, workspace: &'a Path) -> &'a Path {
        let project = self.project_file.as_deref().and_then(Path::parent);
        project.unwrap_or(workspace)
    }

    /// Returns the file with the input history of the chat.
    pub fn chat_history(&self) -> PathBuf {
        self.state.join("chat-history")
    }

    /// Locates everything: all in `LANGO_HOME`, or else each in its XDG directory.
    ///
    /// # Errors
    /// Neither `LANGO_HOME` nor a home directory is set.
    pub fn locate(process_env: &ProcessEnv) -> Result<Self, ConfigProblems> {
        let mut paths = Self::without_project(process_env)?;
        let trust = TrustedFiles::read(&paths);
        paths.find_project(process_env, &trust);
        Ok(paths)
    }

    /// Locates everything as [`locate`](Self::locate) does, but with other trusted files than the stored ones.
    pub(super) fn locate_with_trust(
        process_env: &ProcessEnv,
        trust: &TrustedFiles,
    ) -> Result<Self, ConfigProblems> {
        let mut paths = Self::without_project(process_env)?;
        paths.find_project(process_env, trust);
        Ok(paths)
    }

    fn without_project(process_env: &ProcessEnv) -> Result<Self, ConfigProblems> {
        let all = process_env
            .variable("LANGO_HOME")
            .map(|folder| process_env.cwd.join(folder));
        let locate = |variable: &str, below_home: &str| {
            let own = || process_env.folder(variable).map(Path::to_path_buf);
            let usual = || process_env.home().map(|home| home.join(below_home));
            let xdg = || own().or_else(usual).map(|folder| folder.join("lango"));
            all.clone()
                .or_else(xdg)
                .ok_or_else(|| ConfigProblems::from(ConfigProblem::NoHome))
        };
        Ok(Self {
            project_file: None,
            foreign: Vec::new(),
            user_file: locate("XDG_CONFIG_HOME", ".config")?.join(FILE_NAME),
            data: locate("XDG_DATA_HOME", ".local/share")?,
            state: locate("XDG_STATE_HOME", ".local/state")?,
        })
    }

    /// Returns the project's configuration file if it is ignored because other users own it or can change it.
    pub fn foreign_project_file(&self) -> Option<&ForeignPath> {
        let mut foreign = self.foreign.iter();
        foreign.find(|foreign| foreign.path.file_name() == Some(OsStr::new(FILE_NAME)))
    }

    /// Finds the project's file, and records which paths of the project other users own or can change. A file whose
    /// current content the user trusts may have any owner.
    fn find_project(&mut self, process_env: &ProcessEnv, trust: &TrustedFiles) {
        let owner = Owner::of_process(process_env);
        let file = project_file(process_env).filter(|file| *file != self.user_file);
        if let Some(path) = file {
            let is_trusted = || {
                let content = overlay::read_config_text(&path).ok().flatten();
                content.is_some_and(|content| trust.is_trusted(&path, content))
            };
            match owner.foreign_reason(&path) {
                Some(reason) if !is_trusted() => self.foreign.push(ForeignPath { path, reason }),
                _ => self.project_file = Some(path),
            }
        }
        let project = self.project(&process_env.cwd).to_path_buf();
        for name in PROJECT_SKILLS {
            let path = project.join(name);
            if !path.exists() {
                continue;
            }
            let above = path.parent().unwrap_or(&project);
            let foreign_reason = owner
                .foreign_reason(above)
                .or_else(|| owner.foreign_reason(&path));
            let foreign = foreign_reason.map(|reason| ForeignPath { path, reason });
            self.foreign.extend(foreign);
        }
    }
}

/// Finds the nearest configuration file from the working directory upward. The root of a repository, the home
/// directory and the end of the file system stop the search: anything above belongs to other projects or other users.
fn project_file(process_env: &ProcessEnv) -> Option<PathBuf> {
    let home = process_env.home();
    let real_home = home.and_then(|home| home.canonicalize().ok());
    let device = |folder: &Path| folder.metadata().map(|metadata| metadata.dev()).ok();
    let own_device = device(&process_env.cwd);
    for folder in process_env.cwd.ancestors() {
        // A directory that does not exist has no device.
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
