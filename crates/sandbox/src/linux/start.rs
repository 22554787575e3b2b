//! The moment of starting: pipes, files in memory, and the process itself.
//!
//! Descriptors are made so that no other child inherits them; between `fork` and `exec` the new process opens up exactly
//! those that are meant for it.

use super::bubblewrap::{Build, HELPER};
use super::cgroup::Group;
use super::user::User;
use crate::launcher::Helper;
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

/// What is started directly.
pub(super) enum Program {
    Bubblewrap {
        program: PathBuf,
        arguments: Vec<u8>,
    },
    Helper,
}

impl Program {
    /// Bubblewrap with what it is to build, or the helper alone where there is none.
    pub(super) fn new(bubblewrap: Option<PathBuf>, build: &Build<'_>) -> Self {
        match bubblewrap {
            None => Self::Helper,
            Some(program) => Self::Bubblewrap {
                program,
                arguments: build.arguments(),
            },
        }
    }
}

/// All that is needed to start.
pub(super) struct Start<'a> {
    pub(super) program: Program,
    pub(super) helper: &'a Helper,
    pub(super) plan: Plan,
    pub(super) stdin: Stdin,
    pub(super) group: Option<&'a Group>,
    pub(super) user: User,
}

/// What has been started, and lango's ends of the pipes.
pub(super) struct Started {
    pub(super) process: tokio::process::Child,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
    pub(super) reports: OwnedFd,
    pub(super) lifeline: OwnedFd,
    pub(super) handover: Option<UnixStream>,
}

impl Start<'_> {
    pub(super) fn run(mut self) -> Result<Started, LaunchError> {
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
        if let Some(events) = self.group.and_then(Group::memory_events) {
            self.plan.memory_events = Some(events.as_raw_fd());
            inherited.push(events.into());
        }
        let handover = match self.plan.network {
            Network::None | Network::Host => None,
            Network::Proxied => {
                let (outside, inside) = socket_pair().map_err(LaunchError::system(
                    "make a socket pair for the command's listeners",
                ))?;
                self.plan.handover = Some(Handover {
                    socket: inside.as_raw_fd(),
                    outer_network: crate::linux::network_namespace()
                        .map_err(LaunchError::system("look at lango's own network"))?,
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
        let doors = self.group.map(Group::doors).transpose();
        let doors = doors
            .map_err(LaunchError::system("open the control group"))?
            .unwrap_or_default();
        let mut command = tokio::process::Command::from(command);
        prepare(&mut command, passed, &doors);
        let process = command
            .spawn()
            .map_err(LaunchError::system(match self.program {
                Program::Helper => "start the inner helper",
                Program::Bubblewrap { .. } => "start bubblewrap",
            }))?;

        let system = LaunchError::system;
        Ok(Started {
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

/// Has the new process enter its control group and open up the descriptors that are meant for it.
fn prepare(command: &mut tokio::process::Command, passed: Vec<RawFd>, doors: &[File]) {
    let doors: Vec<RawFd> = doors.iter().map(AsRawFd::as_raw_fd).collect();
    let in_the_new_process = move || {
        // Should the whole machine run out of memory, this goes first. A process whose memory is closed to others does not
        // own its files in /proc, so it is open for this moment; from `exec` on there is nothing of lango's in it.
        let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
        let score = rustix::fs::open(c"/proc/self/oom_score_adj", OFlags::WRONLY, Mode::empty());
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        let _ = score.and_then(|score| rustix::io::write(&score, b"500"));
        for door in &doors {
            // SAFETY: the caller holds the descriptors until the process has started.
            rustix::io::write(unsafe { BorrowedFd::borrow_raw(*door) }, b"0")?;
        }
        // What others left open is not meant for it.
        crate::descriptors::close_on_exec()?;
        // Signals of the terminal are lango's to handle; the guard has to live on to clean up.
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

/// lango's end, and the one for the guard. No other child inherits either.
fn socket_pair() -> std::io::Result<(UnixStream, OwnedFd)> {
    let (outside, inside) = std::os::unix::net::UnixStream::pair()?;
    outside.set_nonblocking(true)?;
    Ok((UnixStream::from_std(outside)?, inside.into()))
}

fn pipe() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(LaunchError::system("make a pipe"))
}

fn file_in_memory(name: &str, content: &[u8]) -> Result<OwnedFd, LaunchError> {
    let write = || {
        let mut file = File::from(rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?);
        file.write_all(content)?;
        file.rewind()?;
        Ok::<_, std::io::Error>(file.into())
    };
    write().map_err(LaunchError::system("make a file in memory"))
}
