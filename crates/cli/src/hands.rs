//! What the agents can touch: the one policy for commands and file tools, the launcher behind it, and how well commands are
//! held on this machine.

use crate::config::{Loaded, NetworkAccess, Paths, StoreLocation, Topology};
use crate::exit::{Exit, Failure};
use lango_sandbox::{GitEntries, Helper, Launcher, Limits, Network, Policy, SelfTest, Strength};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The first argument of this program when it starts itself again inside the sandbox.
pub const SANDBOX_MARK: &str = "__sandbox";

/// Folders and files below the home that hold keys.
const KEYS: [&str; 24] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".password-store",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".mozilla",
    ".thunderbird",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/google-chrome",
    ".config/chromium",
    ".local/share/keyrings",
    ".bash_history",
];

/// Files below the home that programs run or obey by themselves.
const STARTUP_FILES: [&str; 14] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".gitconfig",
    ".config/git",
    ".config/fish",
    ".config/autostart",
    ".config/systemd",
];

/// The homes of the user: `HOME`, and the one that the system has on record, if that is another.
pub fn homes(variable: Option<&Path>) -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let records = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut homes: Vec<PathBuf> = variable.map(Path::to_path_buf).into_iter().collect();
    homes.extend(recorded_home(&records, user).filter(|home| Some(home.as_path()) != variable));
    homes
}

/// The home of a user in the lines of `/etc/passwd`.
fn recorded_home(records: &str, user: u32) -> Option<PathBuf> {
    let mut lines = records.lines().map(|line| line.split(':'));
    lines.find_map(|mut fields| {
        let number: u32 = fields.nth(2)?.parse().ok()?;
        let home = PathBuf::from(fields.nth(2)?);
        (number == user && home.is_absolute()).then_some(home)
    })
}

/// What may be touched here. Paths that lead over links are followed where they exist.
pub fn policy(loaded: &Loaded, workspace: &Path, homes: &[PathBuf]) -> Policy {
    let exec = &loaded.settings.tools.exec;
    let paths = &loaded.paths;
    let in_home = |names: &[&str]| -> Vec<PathBuf> {
        let homes = homes.iter();
        homes
            .flat_map(|home| names.iter().map(|name| home.join(name)))
            .collect()
    };
    let mut hidden = in_home(&KEYS);
    hidden.extend(paths.private());
    hidden.extend(loaded.settings.vault.key_file.clone());
    if let StoreLocation::Sqlite(database) = &loaded.settings.session.store {
        hidden.extend(["", "-wal", "-shm", "-journal"].map(|end| with_end(database, end)));
        hidden.push(database.with_extension("locks"));
    }
    let mut kept = in_home(&STARTUP_FILES);
    kept.extend(paths.user_file.parent().map(Path::to_path_buf));
    kept.extend(paths.project_file.clone());
    // What is said there is told to models as instructions.
    let agent = &loaded.settings.agent;
    kept.extend(agent.agents_dir.clone());
    if let Topology::File(path) = &agent.topology {
        kept.push(path.clone());
    }
    let workspace = real(workspace);
    Policy {
        hide_dotfiles_in: homes
            .iter()
            .any(|home| is_same_folder(home, &workspace))
            .then(|| workspace.clone()),
        workspace,
        read: exec.read.iter().map(|path| real(path)).collect(),
        write: exec.write.iter().map(|path| real(path)).collect(),
        unprotected: Vec::new(),
        kept: kept.iter().map(|path| real(path)).collect(),
        hidden: hidden.iter().map(|path| real(path)).collect(),
        network: match exec.network {
            NetworkAccess::Closed => Network::None,
            NetworkAccess::Hosts(_) => Network::Proxied,
            NetworkAccess::Open => Network::Host,
        },
        allow_git_init: exec.allow_git_init,
    }
}

/// Refuses a workspace that holds whole homes: the root of the disk, and the folders above the user's home.
pub fn check_workspace(workspace: &Path, homes: &[PathBuf]) -> Result<(), Failure> {
    let real_homes: Vec<PathBuf> = homes.iter().map(|home| real(home)).collect();
    let mut above_home = real_homes.iter().flat_map(|home| home.ancestors().skip(1));
    let is_root = is_same_folder(workspace, Path::new("/"));
    if !is_root && !above_home.any(|folder| is_same_folder(folder, workspace)) {
        return check_is_no_repository(workspace);
    }
    let message = format!(
        "`{}` cannot be a workspace: your home folder, and perhaps other users' homes, lie in it",
        workspace.display()
    );
    Err(Failure::new(Exit::Usage, message)
        .next("change to the folder of a project, such as `mkdir -p ~/project && cd ~/project`"))
}

/// Refuses the inside of a git repository: its hooks and settings run code, and could not be protected there.
fn check_is_no_repository(workspace: &Path) -> Result<(), Failure> {
    let mut entries = GitEntries::default();
    for entry in std::fs::read_dir(workspace).into_iter().flatten().flatten() {
        entries.add(&entry.file_name());
    }
    if !entries.is_repository() {
        return Ok(());
    }
    let message = format!(
        "`{}` cannot be a workspace: it is the inside of a git repository",
        workspace.display()
    );
    Err(Failure::new(Exit::Usage, message).next("change to a folder with checked-out files"))
}

/// Whether two paths lead to one folder, by whatever links or mounts.
fn is_same_folder(one: &Path, other: &Path) -> bool {
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => real(one) == real(other),
    }
}

/// What a command may use up.
pub fn limits(loaded: &Loaded) -> Limits {
    let exec = &loaded.settings.tools.exec;
    Limits {
        processes: exec.max_processes,
        memory_bytes: u64::from(exec.max_memory_mb) << 20,
        ..Limits::default()
    }
}

/// A launcher that starts this program again inside the sandbox.
pub fn launcher(paths: &Paths) -> Launcher {
    let program = std::env::current_exe().unwrap_or_default();
    let helper = Helper {
        program,
        arguments: vec![OsString::from(SANDBOX_MARK)],
    };
    Launcher::new(helper)
        .with_trash(paths.clean_up_trash())
        .with_records(paths.clean_up_records())
        .with_own_folder(paths.trust_folder())
}

/// How well commands are held here, and what to remember of it.
#[derive(Debug)]
pub struct Held {
    /// How well.
    pub strength: Strength,
    /// Where this was found, if it is worth remembering and not remembered yet.
    news: Option<Surrounding>,
    file: PathBuf,
}

impl Held {
    /// Tries it for real, unless all was well before and neither this machine's start, its kernel, bubblewrap nor this
    /// program has changed since. Whatever is remembered, a command only starts when all its layers are up.
    pub async fn find(launcher: &Launcher, state: &Path) -> Self {
        let file = state.join("sandbox.json");
        let here = Surrounding::look();
        let remembered = std::fs::read(&file).ok();
        let remembered: Option<Surrounding> =
            remembered.and_then(|text| serde_json::from_slice(&text).ok());
        if remembered.as_ref() == Some(&here) {
            return Self {
                strength: Strength::Full,
                news: None,
                file,
            };
        }
        let SelfTest { strength, .. } = launcher.self_test().await;
        let news = (strength == Strength::Full).then_some(here);
        Self {
            strength,
            news,
            file,
        }
    }

    /// Remembers it for the next start. Not being able to costs time then, and nothing else.
    pub fn remember(&self) {
        let Some(text) = self
            .news
            .as_ref()
            .and_then(|news| serde_json::to_vec(news).ok())
        else {
            return;
        };
        let write = || {
            let folder = self.file.parent().unwrap_or(Path::new("/"));
            let mut folders = std::fs::DirBuilder::new();
            folders.recursive(true).mode(0o700).create(folder)?;
            let mut options = std::fs::OpenOptions::new();
            options.create(true).truncate(true).write(true).mode(0o600);
            options.open(&self.file)?.write_all(&text)
        };
        let _: std::io::Result<()> = write();
    }
}

/// What the result of the self-test depends on.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Surrounding {
    boot: String,
    kernel: String,
    user: u32,
    programs: Vec<(PathBuf, u64, i64)>,
}

impl Surrounding {
    fn look() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let program = |path: PathBuf| {
            let metadata = path.metadata().ok()?;
            Some((
                path,
                metadata.len(),
                metadata.mtime_nsec() ^ metadata.mtime(),
            ))
        };
        let programs = ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"]
            .map(PathBuf::from)
            .into_iter()
            .chain(std::env::current_exe().ok());
        Self {
            boot: read("/proc/sys/kernel/random/boot_id"),
            kernel: read("/proc/sys/kernel/osrelease"),
            user: rustix::process::geteuid().as_raw(),
            programs: programs.filter_map(program).collect(),
        }
    }
}

/// A path without links, as far as it exists.
pub fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_path_buf(),
    }
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// How long commands may take and how much they may use.
pub fn command_limits(loaded: &Loaded) -> lango_tools::CommandLimits {
    // A little less than the call may take, so that the command is stopped in order and tells what it printed.
    let time = loaded.settings.agent.tool_timeout.mul_f64(0.95);
    lango_tools::CommandLimits {
        time,
        command: limits(loaded),
        ..lango_tools::CommandLimits::default()
    }
}

/// Marks skills as untrusted that lie in the workspace, where agents write, or in folders that the project's file names.
pub fn label_skills(
    skills: &mut lango_tools::Skills,
    loaded: &Loaded,
    workspace: &lango_tools::Workspace,
) {
    let named = loaded.settings.skill.dirs.iter();
    let named = named.filter(|_| loaded.is_the_projects("skill.dirs"));
    let named: Vec<PathBuf> = named.map(|path| real(path)).collect();
    for card in &mut skills.good {
        let is_in = |folder: &Path| card.folder.starts_with(folder);
        if is_in(workspace.path()) || named.iter().any(|folder| is_in(folder)) {
            card.trust = lango_core::Trust::Untrusted;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_on_record_is_found_by_the_number_of_the_user() {
        let records = "root:x:0:0:root:/root:/bin/sh\nbad line\nada:x:1000:1000:Ada,,,:/home/ada:/bin/sh\nx:x:7:7::relative:/bin/sh\n";
        let home = |user| recorded_home(records, user);
        assert_eq!(home(0), Some("/root".into()));
        assert_eq!(home(1000), Some("/home/ada".into()));
        assert_eq!((home(7), home(8)), (None, None));
    }

    #[test]
    fn a_folder_above_any_home_of_the_user_is_no_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("users/ada");
        std::fs::create_dir_all(&home).unwrap();
        let homes = ["/nonexistent/home".into(), home.clone()];
        let is_accepted = |workspace: &Path| check_workspace(workspace, &homes).is_ok();
        assert!(is_accepted(&home) && is_accepted(&home.join("project")));
        assert!(!is_accepted(folder.path()) && !is_accepted(&folder.path().join("users")));
        assert!(!is_accepted(Path::new("/")));
    }
}
