//! A command and its resource limits. The [`Policy`](crate::Policy) says what it may touch.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A program to run, without a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments. A program without a slash is looked up in the sandbox's own `PATH`.
    pub argv: Vec<OsString>,
    /// The working directory: an absolute path that the policy makes visible.
    pub cwd: PathBuf,
    /// Environment variables. They override the few that every command gets (`PATH`, `HOME`, `TMPDIR`, `LANG`, `TERM`).
    /// lango's own environment is not passed on.
    pub env: Vec<(OsString, OsString)>,
    pub stdin: Stdin,
    pub limits: ResourceLimits,
    /// What to do with protected files that appear while the command runs.
    pub new_files: NewFiles,
    /// Which system calls the command may make.
    pub profile: SandboxProfile,
}

impl Command {
    /// Creates a command with empty standard input and the default limits.
    pub fn new(argv: impl IntoIterator<Item = impl Into<OsString>>, cwd: PathBuf) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            cwd,
            env: Vec::new(),
            stdin: Stdin::Null,
            limits: ResourceLimits::default(),
            new_files: NewFiles::default(),
            profile: SandboxProfile::default(),
        }
    }
}

/// Which system calls a command may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxProfile {
    /// The calls that ordinary programs need.
    #[default]
    Command,
    /// Also the calls that Chromium needs for its own sandbox: creating user, process and network namespaces below the
    /// command's own, and `chroot` in them. Mounts stay forbidden.
    Browser,
}

/// What to do with protected files that appear in writable folders while a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NewFiles {
    /// Move them to the trash when the command has ended.
    #[default]
    Remove,
    /// Leave them in place and report them. For long-running commands, during which the user may create such files too.
    Report,
}

/// Where a command's standard input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// Empty.
    Null,
    /// From [`Child::stdin`](crate::Child::stdin).
    Piped,
}

/// Resource limits of a command, shared with all processes it starts. If a limit is exceeded, all these processes are
/// killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Maximum run time; `None` for background jobs and servers.
    pub time: Option<Duration>,
    /// Maximum number of simultaneous processes. Each thread counts as one.
    pub processes: u32,
    /// Maximum memory, including files in `/tmp` and `/dev/shm`.
    pub memory_bytes: u64,
    /// Maximum size of a single file.
    pub file_bytes: u64,
    /// Maximum number of bytes written to disk in total.
    pub written_bytes: u64,
}

impl Default for ResourceLimits {
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
