//! The guard of a command: the process that started it, reaps what it leaves behind, and ends all of it.
//!
//! Inside of bubblewrap it is the first process of its namespace: when it ends, the kernel ends all others. It cannot be
//! signalled from inside, and looks at nothing but numbers that the kernel gives. It ends the command when the lifeline
//! breaks, when its time is over, when it uses up too much, and when its first process is gone.

use super::clean_up::CleanUp;
use super::usage::Usage;
use super::{become_command, say};
use crate::layers::Layer;
use crate::linux::cgroup::has_oom_kill;
use crate::plan::{Handover, Plan, Work};
use crate::report::Report;
use crate::{ExitKind, Profile, Stopped};
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

/// The watchdog looks soon at first, and then this often.
const FIRST_LOOK: Duration = Duration::from_millis(4);
const LOOK: Duration = Duration::from_millis(50);
/// How long the processes of a command may take to be gone once they are killed.
const END_TIME: Duration = Duration::from_secs(5);

/// Starts the command and stays until it is gone. Gives back the code to end with.
pub(super) fn run(plan: &Plan) -> Result<i32, String> {
    let explain = |what: &'static str| move |error: Errno| format!("{what}: {error}");
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(explain("hide the guard"))?;
    match plan.namespaces {
        // Bubblewrap outside is the parent; it has but one thread.
        true => set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(explain("end with bubblewrap"))?,
        // Orphans come to the guard, which is how it finds them.
        false => set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(explain("become the parent of orphans"))?,
    }
    crate::linux::fixed::verify(&plan.fixed)?;
    if plan.profile == Profile::Browser {
        crate::linux::proc::verify()?;
    }
    // SAFETY: the launcher passed this descriptor on for this one use.
    let lifeline = unsafe { OwnedFd::from_raw_fd(plan.lifeline) };
    // SAFETY: as above.
    let memory_events = plan
        .memory_events
        .map(|fd| unsafe { File::from_raw_fd(fd) });
    let clean_up = CleanUp::new(plan);
    if let Some(handover) = plan.handover {
        hand_over(handover).map_err(|error| format!("bind the proxy's ports: {error}"))?;
    }
    if plan.work == Work::CleanUp {
        say(&Report::Running);
        return clean(clean_up, true).map(|()| 0);
    }
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(explain("pipe"))?;
    // SAFETY: this process has one thread, so the child may do all that a program may.
    let child = match unsafe { libc::fork() } {
        -1 => return Err(format!("fork: {}", std::io::Error::last_os_error())),
        0 => become_command::run(plan, File::from(writer)),
        child => Pid::from_raw(child).ok_or("fork gave no process")?,
    };
    drop(writer);
    for fd in plan.stdio {
        // SAFETY: the descriptors were the command's, which has its own by now; here they only keep pipes open.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
    }
    // The pipe ends when the child has become the command.
    let mut complaint = String::new();
    let heard = File::from(reader).read_to_string(&mut complaint);
    if heard.is_err() || !complaint.is_empty() {
        return Err(complaint);
    }
    say(&Report::Running);
    let guard = Guard {
        plan,
        child,
        lifeline,
        memory_events,
        started: Instant::now(),
    };
    Ok(guard.stay(clean_up))
}

/// Binds the listeners of the command's own network, sends them to lango, and keeps nothing of them.
fn hand_over(handover: Handover) -> std::io::Result<()> {
    // SAFETY: the launcher passed this descriptor on for this one use.
    let socket = unsafe { OwnedFd::from_raw_fd(handover.socket) };
    if crate::linux::network_namespace()? == handover.outer_network {
        return Err(std::io::Error::other("the network is that of lango itself"));
    }
    crate::listeners::send(socket.as_fd())
}

/// Cleans up after the command, and says so before and after.
fn clean(clean_up: CleanUp<'_>, processes_are_gone: bool) -> Result<(), String> {
    say(&Report::CleaningUp);
    let report = clean_up.run(processes_are_gone)?;
    say(&Report::CleanedUp(report));
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
    fn stay(&self, mut clean_up: CleanUp<'_>) -> i32 {
        let end = self.watch(&mut clean_up);
        let mut usage = Usage::new(self.plan);
        let processes_are_gone = self.end_all(&mut usage);
        let code = match end {
            End::Exited(exit) => {
                say(&Report::Exited(exit));
                match exit {
                    ExitKind::Code(code) => code,
                    ExitKind::Signal(signal) => 128 + signal,
                }
            }
            End::Stopped(stopped) => {
                say(&Report::Stopped(stopped));
                128 + libc::SIGKILL
            }
            End::Cut => 128 + libc::SIGKILL,
        };
        // Without a report of it lango starts another guard for the clean-up, and hears the reason from that one.
        let _ = clean(clean_up, processes_are_gone);
        code
    }

    /// Waits for the end of the command, or a reason to end it.
    fn watch(&self, clean_up: &mut CleanUp<'_>) -> End {
        let mut usage = Usage::new(self.plan);
        let mut pause = FIRST_LOOK;
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
                return End::Stopped(Stopped::Time);
            }
            if self.plan.watchdog == Layer::Used
                && let Some(stopped) = usage.over_limit()
            {
                return End::Stopped(stopped);
            }
            // The other processes may wait for the killed one until the timeout, as a browser does for its renderer.
            if self.memory_events.as_ref().is_some_and(has_oom_kill) {
                return End::Stopped(Stopped::Memory);
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
            // Nothing is ever written to it; it can only break.
            if !waited_for[0].revents().is_empty() {
                return End::Cut;
            }
            pause = (pause * 2).min(LOOK);
            clean_up.keep_alive();
        }
    }

    /// Takes in the processes that ended; says how the first one did.
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

    /// Ends every process below this one. Says whether all of them are gone.
    fn end_all(&self, usage: &mut Usage) -> bool {
        let started = Instant::now();
        // New ones can come while the old ones go; each round ends those that there are.
        while started.elapsed() < END_TIME {
            let is_empty = if self.plan.namespaces {
                // SAFETY: as the first process of the namespace, this reaches all others in it and none outside.
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

    /// Takes in all processes that ended. Says whether none is left; orphans are children of the guard, too.
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
    Stopped(Stopped),
    /// The lifeline broke.
    Cut,
}
