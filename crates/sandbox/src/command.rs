//! A command and what it may use up. What it may touch is the [`Policy`](crate::Policy)'s business.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A program to run, without a shell in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments. A program without a slash is looked up in the sandbox's own `PATH`.
    pub argv: Vec<OsString>,
    /// Where it starts: an absolute path that the policy lets it see.
    pub cwd: PathBuf,
    /// Variables besides the few that every command gets (`PATH`, `HOME`, `TMPDIR`, `LANG`, `TERM`); they win over those.
    /// Nothing of lango's own environment is passed on.
    pub env: Vec<(OsString, OsString)>,
    /// What it reads.
    pub stdin: Stdin,
    /// What it may use up.
    pub limits: Limits,
    /// What to do with protected files that appear while it runs.
    pub new_files: NewFiles,
    /// What it may ask of the kernel.
    pub profile: Profile,
}

impl Command {
    /// A command that reads nothing, with the usual limits.
    pub fn new(argv: impl IntoIterator<Item = impl Into<OsString>>, cwd: PathBuf) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            cwd,
            env: Vec::new(),
            stdin: Stdin::Null,
            limits: Limits::default(),
            new_files: NewFiles::default(),
            profile: Profile::default(),
        }
    }
}

/// What a command may ask of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// What programs of all kinds need.
    #[default]
    Command,
    /// Also what Chromium needs for a sandbox of its own around its pages: user, process and network namespaces below the
    /// command's own, and `chroot` in them. Mounts stay refused.
    Browser,
}

/// What to do with protected files that appear in writable folders while a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NewFiles {
    /// Move them to the trash once it is gone.
    #[default]
    Remove,
    /// Leave and report them: it runs for so long that the user creates some meanwhile.
    Report,
}

/// What a command reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing.
    Null,
    /// What is written to [`Child::stdin`](crate::Child::stdin).
    Piped,
}

/// What a command and all that it starts may use up together. Whoever goes over one of them is ended as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long it may run; `None` is for jobs in the background and servers.
    pub time: Option<Duration>,
    /// How many processes there may be at a time, each thread counted as one.
    pub processes: u32,
    /// How much memory, files in `/tmp` and `/dev/shm` included.
    pub memory_bytes: u64,
    /// How long a single file may become.
    pub file_bytes: u64,
    /// How much may be written to disk in all.
    pub written_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const GIB: u64 = 1 << 30;
        Self {
            time: Some(Duration::from_secs(120)),
            processes: 512,
            memory_bytes: 2 * GIB,
            file_bytes: GIB,
            written_bytes: 4 * GIB,
        }
    }
}
