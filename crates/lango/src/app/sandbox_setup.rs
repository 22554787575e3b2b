//! The sandbox policy that commands and file tools share, the launcher that enforces it, and the self-test that finds
//! out how well this machine isolates commands.

use crate::app::failure::Failure;
use lango_config::{LoadedConfig, NetworkAccess, Paths, StoreLocation, TopologyChoice};
use lango_sandbox::{
    GitEntries, HelperCommand, Launcher, Network, Policy, ResourceLimits, SandboxStrength, SelfTest,
};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The first argument with which lango starts itself again inside the sandbox.
pub const SANDBOX_ARGUMENT: &str = "__sandbox";

/// Directories and files below the home that contain credentials.
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

/// Files below the home that programs execute or obey automatically.
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

/// Returns the home directories of the user: `HOME`, and the one in `/etc/passwd` if that is different.
pub fn homes(variable: Option<&Path>) -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let records = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut homes: Vec<PathBuf> = variable.map(Path::to_path_buf).into_iter().collect();
    homes.extend(recorded_home(&records, user).filter(|home| Some(home.as_path()) != variable));
    homes
}

/// Finds a user's home directory in the lines of `/etc/passwd`.
fn recorded_home(records: &str, user: u32) -> Option<PathBuf> {
    let mut lines = records.lines().map(|line| line.split(':'));
    lines.find_map(|mut fields| {
        let number: u32 = fields.nth(2)?.parse().ok()?;
        let home = PathBuf::from(fields.nth(2)?);
        (number == user && home.is_absolute()).then_some(home)
    })
}

/// Builds the policy for this workspace. Paths are resolved through links as far as they exist.
pub fn policy(loaded: &LoadedConfig, workspace: &Path, homes: &[PathBuf]) -> Policy {
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
        hidden.extend(["", "-wal", "-shm", "-journal"].map(|suffix| with_suffix(database, suffix)));
        hidden.push(database.with_extension("locks"));
    }
    let mut read_only = in_home(&STARTUP_FILES);
    read_only.extend(paths.user_file.parent().map(Path::to_path_buf));
    read_only.extend(paths.project_file.clone());
    // Models receive the content of these files as instructions.
    let agent = &loaded.settings.agent;
    read_only.extend(agent.agents_dir.clone());
    if let TopologyChoice::File(path) = &agent.topology {
        read_only.push(path.clone());
    }
    let workspace = resolve_links(workspace);
    Policy {
        hide_dotfiles_in: homes
            .iter()
            .any(|home| is_same_directory(home, &workspace))
            .then(|| workspace.clone()),
        workspace,
        read: exec.read.iter().map(|path| resolve_links(path)).collect(),
        write: exec.write.iter().map(|path| resolve_links(path)).collect(),
        unprotected: Vec::new(),
        read_only: read_only.iter().map(|path| resolve_links(path)).collect(),
        hidden: hidden.iter().map(|path| resolve_links(path)).collect(),
        network: match exec.network {
            NetworkAccess::Closed => Network::None,
            NetworkAccess::Hosts(_) => Network::Proxied,
            NetworkAccess::Open => Network::Host,
        },
        allow_git_init: exec.allow_git_init,
    }
}

/// Refuses a workspace that contains whole home directories: the root of the disk, and any directory above the user's
/// home.
pub fn check_workspace(workspace: &Path, homes: &[PathBuf]) -> Result<(), Failure> {
    let real_homes: Vec<PathBuf> = homes.iter().map(|home| resolve_links(home)).collect();
    let mut above_home = real_homes.iter().flat_map(|home| home.ancestors().skip(1));
    let is_root = is_same_directory(workspace, Path::new("/"));
    if !is_root && !above_home.any(|folder| is_same_directory(folder, workspace)) {
        return check_is_no_repository(workspace);
    }
    let message = format!(
        "`{}` cannot be a workspace: it contains your home folder, and perhaps those of other users",
        workspace.display()
    );
    Err(Failure::usage(message)
        .next("change to the folder of a project, such as `mkdir -p ~/project && cd ~/project`"))
}

/// Refuses the inside of a git directory: its hooks and settings execute code, and could not be protected there.
fn check_is_no_repository(workspace: &Path) -> Result<(), Failure> {
    let mut entries = GitEntries::default();
    for entry in std::fs::read_dir(workspace).into_iter().flatten().flatten() {
        entries.add(&entry.file_name());
    }
    if !entries.is_repository() {
        return Ok(());
    }
    let message = format!(
        "`{}` cannot be a workspace: it is the folder of a git repository itself (bare, or `.git`)",
        workspace.display()
    );
    Err(Failure::usage(message).next("change to a folder with checked-out files"))
}

/// Returns whether two paths lead to the same directory, through any links or mounts.
fn is_same_directory(one: &Path, other: &Path) -> bool {
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => resolve_links(one) == resolve_links(other),
    }
}

/// Returns the resource limits of a command.
pub fn limits(loaded: &LoadedConfig) -> ResourceLimits {
    let exec = &loaded.settings.tools.exec;
    ResourceLimits {
        processes: exec.max_processes,
        memory_bytes: u64::from(exec.max_memory_mb) << 20,
        ..ResourceLimits::default()
    }
}

/// Returns a launcher that starts this program again inside the sandbox.
pub fn launcher(paths: &Paths) -> Launcher {
    let program = std::env::current_exe().unwrap_or_default();
    let helper = HelperCommand {
        program,
        arguments: vec![OsString::from(SANDBOX_ARGUMENT)],
    };
    Launcher::new(helper)
        .with_trash(paths.clean_up_trash())
        .with_records(paths.clean_up_records())
        .with_private_folder(paths.trust_folder())
}

/// How well the sandbox isolates commands on this machine, and whether that result is still to be cached.
#[derive(Debug)]
pub struct SandboxStatus {
    pub strength: SandboxStrength,
    /// The key under which to cache a full result that is not cached yet.
    uncached: Option<SelfTestKey>,
    file: PathBuf,
}

impl SandboxStatus {
    /// Runs the self-test, unless a full result is cached and the boot, the kernel, bubblewrap and this program are
    /// unchanged since. The cache does not weaken anything: a command starts only if all its layers can be set up.
    pub async fn detect(launcher: &Launcher, state: &Path) -> Self {
        let file = state.join("sandbox.json");
        let current = SelfTestKey::current();
        let cached = std::fs::read(&file).ok();
        let cached: Option<SelfTestKey> =
            cached.and_then(|text| serde_json::from_slice(&text).ok());
        if cached.as_ref() == Some(&current) {
            return Self {
                strength: SandboxStrength::Full,
                uncached: None,
                file,
            };
        }
        let SelfTest { strength, .. } = launcher.self_test().await;
        let uncached = (strength == SandboxStrength::Full).then_some(current);
        Self {
            strength,
            uncached,
            file,
        }
    }

    /// Caches the result for the next start. A failure is ignored: the next start only repeats the self-test.
    pub fn store_result(&self) {
        let Some(text) = self
            .uncached
            .as_ref()
            .and_then(|uncached| serde_json::to_vec(uncached).ok())
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

/// Everything that the result of the self-test depends on.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SelfTestKey {
    boot: String,
    kernel: String,
    user: u32,
    programs: Vec<(PathBuf, u64, i64)>,
}

impl SelfTestKey {
    fn current() -> Self {
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

/// Resolves the links of a path, as far as it exists.
pub fn resolve_links(path: &Path) -> PathBuf {
    if let Ok(resolved) = path.canonicalize() {
        return resolved;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => resolve_links(parent).join(name),
        _ => path.to_path_buf(),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Returns the time and resource limits of commands.
pub fn command_limits(loaded: &LoadedConfig) -> lango_tools::CommandLimits {
    // Slightly less than the call's own limit, so that the command is stopped in order and its output is returned.
    let time = loaded.settings.agent.tool_timeout.mul_f64(0.95);
    lango_tools::CommandLimits {
        time,
        command: limits(loaded),
        ..lango_tools::CommandLimits::default()
    }
}

/// Marks skills as untrusted if they lie in the workspace, where agents can write, or in directories that the
/// project's file names.
pub fn label_skills(
    skills: &mut lango_tools::Skills,
    loaded: &LoadedConfig,
    workspace: &lango_tools::Workspace,
) {
    let named = loaded.settings.skill.dirs.iter();
    let named = named.filter(|_| loaded.is_set_by_project("skill.dirs"));
    let named: Vec<PathBuf> = named.map(|path| resolve_links(path)).collect();
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
    fn the_recorded_home_is_found_by_the_user_id() {
        let records = "root:x:0:0:root:/root:/bin/sh\nbad line\nada:x:1000:1000:Ada,,,:/home/ada:/bin/sh\nx:x:7:7::relative:/bin/sh\n";
        let home = |user| recorded_home(records, user);
        assert_eq!(home(0), Some("/root".into()));
        assert_eq!(home(1000), Some("/home/ada".into()));
        assert_eq!((home(7), home(8)), (None, None));
    }

    #[test]
    fn a_directory_above_any_home_of_the_user_is_not_a_workspace() {
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
