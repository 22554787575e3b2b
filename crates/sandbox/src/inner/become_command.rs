//! The child of the guard: applies the inner layers to itself, from the outermost to the innermost, and becomes the
//! command.

use super::{landlock, nesting, probe, seccomp};
use crate::SandboxProfile;
use crate::layers::Layer;
use crate::plan::{HelperTask, Plan};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// How far the kernel's limit of processes is above the watchdog's. The watchdog should act first, because it can
/// report why it stopped the command.
const SLACK: u64 = 16;
/// Memory that each process of a browser maps but does not use; measured: 330 to 430 MiB.
const BROWSER_UNTOUCHED: u64 = 512 << 20;
/// Maximum number of open files per process.
const OPEN_FILES: u64 = 4096;

/// Becomes the command. Reports errors of the setup to the guard; prints errors of the program itself to the command's
/// standard error, like a shell.
pub(super) fn run(plan: &Plan, mut guard: File) -> ! {
    if plan.task == HelperTask::Nesting {
        // `exec` would do this for a command. Otherwise the process does not own its files in `/proc`.
        let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
    }
    if let Err(what) = confine(plan) {
        let _ = guard.write_all(what.as_bytes());
        std::process::exit(super::FAILED);
    }
    match plan.task {
        HelperTask::Command | HelperTask::CleanUp => {}
        HelperTask::Probe => {
            drop(guard);
            probe::run(&plan.argv);
        }
        HelperTask::Nesting => {
            drop(guard);
            nesting::run();
        }
    }
    let mut words = plan.argv.iter();
    let Some(program) = words.next() else {
        std::process::exit(127)
    };
    // `exec` returns only on failure.
    let error = Command::new(program)
        .args(words)
        .env_clear()
        .envs(plan.env.iter().map(|(name, value)| (name, value)))
        .exec();
    let code = match error.kind() {
        std::io::ErrorKind::NotFound => 127,
        _ => 126,
    };
    let program = program.display();
    let _ = writeln!(
        std::io::stderr(),
        "lango: `{program}` cannot be run in the sandbox: {error}"
    );
    std::process::exit(code)
}

fn confine(plan: &Plan) -> Result<(), String> {
    let explain = |what: &'static str| move |error: Errno| format!("{what}: {error}");
    // Until here, descriptor 2 is the one for the guard's reports.
    let [stdin, stdout, stderr] = plan.stdio.map(|fd| {
        // SAFETY: the launcher passed these descriptors, and this process does not close them before their use below.
        unsafe { BorrowedFd::borrow_raw(fd) }
    });
    rustix::stdio::dup2_stdin(stdin).map_err(explain("connect the input"))?;
    rustix::stdio::dup2_stdout(stdout).map_err(explain("connect the output"))?;
    rustix::stdio::dup2_stderr(stderr).map_err(explain("connect the error output"))?;
    // Close-on-exec, because the pipe to the guard is needed until the command starts.
    crate::descriptors::close_on_exec().map_err(explain("close descriptors"))?;
    let _ = rustix::process::setsid();
    std::env::set_current_dir(&plan.cwd)
        .map_err(|error| format!("enter `{}`: {error}", plan.cwd.display()))?;
    limit(plan).map_err(explain("set the limits of a process"))?;
    drop_capabilities().map_err(explain("drop capabilities"))?;
    rustix::thread::set_no_new_privs(true).map_err(explain("refuse new privileges"))?;
    match plan.landlock {
        Layer::Used => landlock::restrict(plan).map_err(|error| format!("Landlock: {error}"))?,
        Layer::Failing => return Err("Landlock: disabled by a test".to_string()),
        Layer::LeftOut => {}
    }
    match plan.seccomp {
        Layer::Used => seccomp::restrict(plan).map_err(|error| format!("seccomp: {error}"))?,
        Layer::Failing => return Err("seccomp: disabled by a test".to_string()),
        Layer::LeftOut => {}
    }
    Ok(())
}

fn limit(plan: &Plan) -> rustix::io::Result<()> {
    let limits = &plan.limits;
    let mut wanted = vec![
        (Resource::Core, 0),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nofile, OPEN_FILES),
        (Resource::Msgqueue, 1 << 16),
    ];
    if plan.namespaces {
        // In a user namespace only its own processes count. Elsewhere all processes of the user would count.
        wanted.push((Resource::Nproc, u64::from(limits.processes) + SLACK));
    }
    if !plan.memory_group {
        let untouched = match plan.profile {
            SandboxProfile::Command => 0,
            SandboxProfile::Browser => BROWSER_UNTOUCHED,
        };
        wanted.push((
            Resource::Data,
            limits.memory_bytes.saturating_add(untouched),
        ));
    }
    for (resource, limit) in wanted {
        let current = rustix::process::getrlimit(resource);
        let limit = current.maximum.map_or(limit, |maximum| maximum.min(limit));
        let both = Rlimit {
            current: Some(limit),
            maximum: Some(limit),
        };
        setrlimit(resource, both)?;
    }
    Ok(())
}

fn drop_capabilities() -> rustix::io::Result<()> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    // Fails on old kernels, which have no ambient set.
    let _ = rustix::thread::clear_ambient_capability_set();
    rustix::thread::set_capabilities(None, none)
}
