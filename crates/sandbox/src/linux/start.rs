//! Starts the process: creates its pipes and memory files, and forks.
//!
//! All descriptors are created close-on-exec, so that no other child inherits them. Between `fork` and `exec` the new
//! process clears the flag of exactly those that are meant for it.

use super::bubblewrap::{BubblewrapSetup, HELPER};
use super::cgroup::ControlGroup;
use super::user::User;
use crate::launcher::HelperCommand;
use crate::plan::{Handover, Plan};
use crate::{LaunchError, Network, Stdin};
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::io::FdFlags;
use rustix::pipe::PipeFlags;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::net::UnixStream;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

/// The program that lango starts directly.
pub(super) enum Program {
    Bubblewrap {
        program: PathBuf,
        arguments: Vec<u8>,
    },
    Helper,
}

impl Program {
    /// Starts bubblewrap with its arguments, or the helper directly if there is no bubblewrap.
    pub(super) fn new(bubblewrap: Option<PathBuf>, build: &BubblewrapSetup<'_>) -> Self {
        match bubblewrap {
            None => Self::Helper,
            Some(program) => Self::Bubblewrap {
                program,
                arguments: build.arguments(),
            },
        }
    }
}

/// Everything needed to start the process.
pub(super) struct StartRequest<'a> {
    pub(super) program: Program,
    pub(super) helper: &'a HelperCommand,
    pub(super) plan: Plan,
    pub(super) stdin: Stdin,
    pub(super) group: Option<&'a ControlGroup>,
    pub(super) user: User,
}

/// The started process and lango's ends of the pipes.
pub(super) struct StartedProcess {
    pub(super) process: tokio::process::Child,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
    pub(super) reports: OwnedFd,
    pub(super) lifeline: OwnedFd,
    pub(super) handover: Option<UnixStream>,
}

impl StartRequest<'_> {
    pub(super) fn run(mut self) -> Result<StartedProcess, LaunchError> {
        let (stdin_inside, stdin) = match self.stdin {
            Stdin::Null => {
                let null =
                    File::open("/dev/null").map_err(LaunchError::system("open `/dev/null`"))?;
                (OwnedFd::from(null), None)
            }
            Stdin::Piped => {
                let (inside, outside) = pipe()?;
                (inside, Some(outside))
            }
        };
        let (stdout, stdout_inside) = pipe()?;
        let (stderr, stderr_inside) = pipe()?;
        let (reports, reports_inside) = pipe()?;
        let (lifeline_inside, lifeline) = pipe()?;
        self.plan.stdio = [&stdin_inside, &stdout_inside, &stderr_inside].map(AsRawFd::as_raw_fd);
        self.plan.lifeline = lifeline_inside.as_raw_fd();
        let mut inherited = vec![stdin_inside, stdout_inside, stderr_inside, lifeline_inside];
        if let Some(events) = self.group.and_then(ControlGroup::memory_events) {
            self.plan.memory_events = Some(events.as_raw_fd());
            inherited.push(events.into());
        }
        let handover = match self.plan.network {
            Network::None | Network::Host => None,
            Network::Proxied => {
                let (outside, inside) = socket_pair().map_err(LaunchError::system(
                    "create a socket pair for the command's listeners",
                ))?;
                self.plan.handover = Some(Handover {
                    socket: inside.as_raw_fd(),
                    outer_network: crate::linux::network_namespace()
                        .map_err(LaunchError::system("read lango's network namespace"))?,
                });
                inherited.push(inside);
                Some(outside)
            }
        };
        let plan = file_in_memory("plan", &self.plan.encode())?;
        let mut command = match &self.program {
            Program::Helper => std::process::Command::new(&self.helper.program),
            Program::Bubblewrap { program, arguments } => {
                let arguments = file_in_memory("arguments", arguments)?;
                let mut command = std::process::Command::new(program);
                command.arg("--args").arg(arguments.as_raw_fd().to_string());
                command.args(["--", HELPER]);
                inherited.push(arguments);
                command
            }
        };
        command
            .args(&self.helper.arguments)
            .arg(plan.as_raw_fd().to_string())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::from(reports_inside));
        inherited.push(plan);
        let mut passed: Vec<RawFd> = inherited.iter().map(AsRawFd::as_raw_fd).collect();
        passed.extend(self.plan.clean_up.all());
        if let User::Owner { user, group } = self.user {
            command.uid(user).gid(group);
        }
        let procs_files = self.group.map(ControlGroup::open_procs_files).transpose();
        let procs_files = procs_files
            .map_err(LaunchError::system("open the control group"))?
            .unwrap_or_default();
        let mut command = tokio::process::Command::from(command);
        prepare(&mut command, passed, &procs_files);
        let process = command
            .spawn()
            .map_err(LaunchError::system(match self.program {
                Program::Helper => "start the inner helper",
                Program::Bubblewrap { .. } => "start bubblewrap",
            }))?;

        let system = LaunchError::system;
        Ok(StartedProcess {
            process,
            stdin: stdin
                .map(|end| ChildStdin::from_std(std::process::ChildStdin::from(end)))
                .transpose()
                .map_err(system("watch a pipe"))?,
            stdout: ChildStdout::from_std(std::process::ChildStdout::from(stdout))
                .map_err(system("watch a pipe"))?,
            stderr: ChildStderr::from_std(std::process::ChildStderr::from(stderr))
                .map_err(system("watch a pipe"))?,
            reports,
            lifeline,
            handover,
        })
    }
}

/// Makes the new process join its control group and inherit the descriptors that are meant for it.
fn prepare(command: &mut tokio::process::Command, passed: Vec<RawFd>, procs_files: &[File]) {
    let procs_files: Vec<RawFd> = procs_files.iter().map(AsRawFd::as_raw_fd).collect();
    let in_the_new_process = move || {
        // If the whole machine runs out of memory, the kernel should kill this process first. A process that is not
        // dumpable does not own its files in /proc, so it is dumpable for a moment. After `exec` its memory has no data
        // of lango.
        let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
        let score = rustix::fs::open(c"/proc/self/oom_score_adj", OFlags::WRONLY, Mode::empty());
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        let _ = score.and_then(|score| rustix::io::write(&score, b"500"));
        for procs_file in &procs_files {
            // SAFETY: the caller keeps the descriptors open until the process has started.
            rustix::io::write(unsafe { BorrowedFd::borrow_raw(*procs_file) }, b"0")?;
        }
        // Other descriptors of lango may lack the flag.
        crate::descriptors::close_on_exec()?;
        // A new session shields it from signals of the terminal: lango handles those, and the guard must survive to
        // clean up.
        let _ = rustix::process::setsid();
        for fd in &passed {
            // SAFETY: as above.
            rustix::io::fcntl_setfd(unsafe { BorrowedFd::borrow_raw(*fd) }, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls only; it neither allocates nor takes locks.
    unsafe { command.pre_exec(in_the_new_process) };
}

/// Returns lango's end and the guard's end. No other child inherits either.
fn socket_pair() -> std::io::Result<(UnixStream, OwnedFd)> {
    let (outside, inside) = std::os::unix::net::UnixStream::pair()?;
    outside.set_nonblocking(true)?;
    Ok((UnixStream::from_std(outside)?, inside.into()))
}

fn pipe() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(LaunchError::system("create a pipe"))
}

fn file_in_memory(name: &str, content: &[u8]) -> Result<OwnedFd, LaunchError> {
    let write = || {
        let mut file = File::from(rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?);
        file.write_all(content)?;
        file.rewind()?;
        Ok::<_, std::io::Error>(file.into())
    };
    write().map_err(LaunchError::system("create a memory file"))
}
