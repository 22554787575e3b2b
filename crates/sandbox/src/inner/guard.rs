//! The guard of a command: the process that starts it, reaps its processes, and kills all of them in the end.
//!
//! Inside bubblewrap the guard is the first process of its namespace: when it ends, the kernel kills all others.
//! Commands cannot send it signals, and it reads only numbers from the kernel. It ends the command when the lifeline
//! breaks, when the time is up, when a limit is exceeded, and when the command's first process has ended.

use super::clean_up::CleanUp;
use super::usage::Usage;
use super::{become_command, send_report};
use crate::layers::Layer;
use crate::linux::cgroup::has_oom_kill;
use crate::plan::{Handover, HelperTask, Plan};
use crate::report::Report;
use crate::{ExceededLimit, ExitKind, SandboxProfile};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, set_child_subreaper,
    set_dumpable_behavior, set_parent_process_death_signal, wait,
};
use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

/// First and longest interval of the watchdog's checks; the interval doubles in between.
const FIRST_INTERVAL: Duration = Duration::from_millis(4);
const MAX_INTERVAL: Duration = Duration::from_millis(50);
/// How long to wait for the processes of a command to end after they are killed.
const END_TIME: Duration = Duration::from_secs(5);

/// Starts the command and guards it until it has ended. Returns the exit code of the guard.
pub(super) fn run(plan: &Plan) -> Result<i32, String> {
    let explain = |what: &'static str| move |error: Errno| format!("{what}: {error}");
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(explain("hide the guard"))?;
    if plan.namespaces {
        // The parent is bubblewrap, which has only one thread.
        set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(explain("end with bubblewrap"))?;
    } else {
        // Orphans become children of the guard, so that it finds them.
        set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(explain("become the parent of orphans"))?;
    }
    crate::linux::expected_paths::verify(&plan.expected_paths)?;
    if plan.profile == SandboxProfile::Browser {
        crate::linux::proc::verify()?;
    }
    // SAFETY: the launcher passed this descriptor for this single use.
    let lifeline = unsafe { OwnedFd::from_raw_fd(plan.lifeline) };
    // SAFETY: as above.
    let memory_events = plan
        .memory_events
        .map(|fd| unsafe { File::from_raw_fd(fd) });
    let clean_up = CleanUp::new(plan);
    if let Some(handover) = plan.handover {
        hand_over(handover).map_err(|error| format!("bind the proxy's ports: {error}"))?;
    }
    if plan.task == HelperTask::CleanUp {
        send_report(&Report::Running);
        return clean(clean_up, true).map(|()| 0);
    }
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(explain("pipe"))?;
    // SAFETY: this process has one thread, so the child may run any code.
    let child = match unsafe { libc::fork() } {
        -1 => return Err(format!("fork: {}", std::io::Error::last_os_error())),
        0 => become_command::run(plan, File::from(writer)),
        child => Pid::from_raw(child).ok_or("fork returned no process id")?,
    };
    drop(writer);
    for fd in plan.stdio {
        // SAFETY: these descriptors are for the command, which has its own copies by now; here they only keep pipes
        // open.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
    }
    // The pipe closes when the child has become the command.
    let mut setup_error = String::new();
    let read = File::from(reader).read_to_string(&mut setup_error);
    if read.is_err() || !setup_error.is_empty() {
        return Err(setup_error);
    }
    send_report(&Report::Running);
    let guard = Guard {
        plan,
        child,
        lifeline,
        memory_events,
        started: Instant::now(),
    };
    Ok(guard.run(clean_up))
}

/// Binds the listeners in the command's network namespace, sends them to lango and closes its own copies.
fn hand_over(handover: Handover) -> std::io::Result<()> {
    // SAFETY: the launcher passed this descriptor for this single use.
    let socket = unsafe { OwnedFd::from_raw_fd(handover.socket) };
    if crate::linux::network_namespace()? == handover.outer_network {
        return Err(std::io::Error::other(
            "the command has no separate network namespace",
        ));
    }
    crate::listeners::send(socket.as_fd())
}

/// Cleans up after the command, and reports the start and the result of the clean-up.
fn clean(clean_up: CleanUp<'_>, all_ended: bool) -> Result<(), String> {
    send_report(&Report::CleaningUp);
    let report = clean_up.run(all_ended)?;
    send_report(&Report::CleanedUp(report));
    Ok(())
}

struct Guard<'a> {
    plan: &'a Plan,
    child: Pid,
    lifeline: OwnedFd,
    memory_events: Option<File>,
    started: Instant,
}

impl Guard<'_> {
    fn run(&self, mut clean_up: CleanUp<'_>) -> i32 {
        let end = self.watch(&mut clean_up);
        let mut usage = Usage::new(self.plan);
        let all_ended = self.kill_all(&mut usage);
        let code = match end {
            End::Exited(exit) => {
                send_report(&Report::Exited(exit));
                match exit {
                    ExitKind::Code(code) => code,
                    ExitKind::Signal(signal) => 128 + signal,
                }
            }
            End::Stopped(stopped) => {
                send_report(&Report::Stopped(stopped));
                128 + libc::SIGKILL
            }
            End::LifelineBroken => 128 + libc::SIGKILL,
        };
        // If this fails, lango starts another guard for the clean-up, which reports the reason.
        let _ = clean(clean_up, all_ended);
        code
    }

    /// Waits until the command ends, or until there is a reason to end it.
    fn watch(&self, clean_up: &mut CleanUp<'_>) -> End {
        let mut usage = Usage::new(self.plan);
        let mut pause = FIRST_INTERVAL;
        let first_process = pidfd_open(self.child, PidfdFlags::empty()).ok();
        loop {
            if let Some(exit) = self.reap() {
                return End::Exited(exit);
            }
            let left = self
                .plan
                .limits
                .time
                .map(|time| time.saturating_sub(self.started.elapsed()));
            if left == Some(Duration::ZERO) {
                return End::Stopped(ExceededLimit::Time);
            }
            if self.plan.watchdog == Layer::Used
                && let Some(stopped) = usage.exceeded_limit()
            {
                return End::Stopped(stopped);
            }
            // The other processes may wait for the killed one until the timeout, like a browser for its renderer.
            if self.memory_events.as_ref().is_some_and(has_oom_kill) {
                return End::Stopped(ExceededLimit::Memory);
            }
            let mut waited_for = vec![PollFd::new(&self.lifeline, PollFlags::IN)];
            if let Some(first_process) = &first_process {
                waited_for.push(PollFd::from_borrowed_fd(
                    first_process.as_fd(),
                    PollFlags::IN,
                ));
            }
            let timeout = left.map_or(pause, |left| left.min(pause));
            let timeout = Timespec {
                tv_sec: timeout.as_secs().try_into().unwrap_or(1),
                tv_nsec: timeout.subsec_nanos().into(),
            };
            let _ = poll(&mut waited_for, Some(&timeout));
            // Nothing is ever written to the lifeline, so any event means that it broke.
            if !waited_for[0].revents().is_empty() {
                return End::LifelineBroken;
            }
            pause = (pause * 2).min(MAX_INTERVAL);
            clean_up.keep_alive();
        }
    }

    /// Reaps processes that have ended. Returns the exit of the command's first process if it is among them.
    fn reap(&self) -> Option<ExitKind> {
        let mut first = None;
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if pid == self.child {
                let signal = status.terminating_signal().map(ExitKind::Signal);
                let code = status.exit_status().map(ExitKind::Code);
                first = signal.or(code);
            }
        }
        first
    }

    /// Kills every process below the guard. Returns whether all of them have ended.
    fn kill_all(&self, usage: &mut Usage) -> bool {
        let started = Instant::now();
        // New processes can start while the old ones end, so repeat until none is left.
        while started.elapsed() < END_TIME {
            let is_empty = if self.plan.namespaces {
                // SAFETY: sent by the first process of the namespace, it reaches all others in it and none outside.
                unsafe { libc::kill(-1, libc::SIGKILL) };
                self.reap_all()
            } else {
                let below = usage.processes_below();
                for process in below.iter().filter_map(|process| Pid::from_raw(*process)) {
                    let _ = rustix::process::kill_process(process, Signal::KILL);
                }
                let _ = self.reap();
                below.is_empty()
            };
            if is_empty {
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    /// Reaps all processes that have ended. Returns whether none is left; orphans are children of the guard too.
    fn reap_all(&self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }
}

enum End {
    Exited(ExitKind),
    Stopped(ExceededLimit),
    LifelineBroken,
}
