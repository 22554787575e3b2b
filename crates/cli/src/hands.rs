//! What the agents can touch: the one policy for commands and file tools, the launcher behind it, and how well commands are
//! held on this machine.

use crate::config::{Loaded, Paths, StoreLocation, Topology};
use lango_sandbox::{Helper, Launcher, Limits, Network, Policy, SelfTest, Strength};
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

/// What may be touched here. Paths that lead over links are followed where they exist.
pub fn policy(loaded: &Loaded, workspace: &Path, home: Option<&Path>) -> Policy {
    let exec = &loaded.settings.tools.exec;
    let paths = &loaded.paths;
    let in_home = |names: &[&str]| -> Vec<PathBuf> {
        let home = home.into_iter();
        home.flat_map(|home| names.iter().map(|name| home.join(name)))
            .collect()
    };
    let mut hidden = in_home(&KEYS);
    hidden.extend(paths.private());
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
    Policy {
        workspace: real(workspace),
        read: exec.read.iter().map(|path| real(path)).collect(),
        write: exec.write.iter().map(|path| real(path)).collect(),
        kept: kept.iter().map(|path| real(path)).collect(),
        hidden: hidden.iter().map(|path| real(path)).collect(),
        network: match exec.network {
            true => Network::Host,
            false => Network::None,
        },
        allow_git_init: false,
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
        .with_trash(paths.trash())
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
            user: Path::new("/proc/self")
                .metadata()
                .map_or(0, |own| own.uid()),
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
