//! The child of the guard: puts the inner layers on itself, from the outermost to the innermost, and becomes the command.

use super::{landlock, nesting, probe, seccomp};
use crate::Profile;
use crate::layers::Layer;
use crate::plan::{Plan, Work};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The watchdog acts at the limit itself and says why; the kernel a little above it.
const SLACK: u64 = 16;
/// What each process of a browser maps for itself and does not touch: 330 to 430 MiB were seen.
const BROWSER_UNTOUCHED: u64 = 512 << 20;
/// How many files a process may have open.
const OPEN_FILES: u64 = 4096;

/// Becomes the command. What goes wrong before is said to the guard; what goes wrong with the program itself is said
/// where the command's complaints go, as a shell does.
pub(super) fn run(plan: &Plan, mut guard: File) -> ! {
    if plan.work == Work::Nesting {
        // As `exec` does for a command: otherwise its own files in `/proc` are not its own.
        let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
    }
    if let Err(what) = confine(plan) {
        let _ = guard.write_all(what.as_bytes());
        std::process::exit(super::FAILED);
    }
    match plan.work {
        Work::Command | Work::CleanUp => {}
        Work::Probe => {
            drop(guard);
            probe::run(&plan.argv);
        }
        Work::Nesting => {
            drop(guard);
            nesting::run();
        }
    }
    let mut words = plan.argv.iter();
    let Some(program) = words.next() else {
        std::process::exit(127)
    };
    // `exec` comes back only if it failed.
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
    // The reports of the guard went to descriptor 2 up to here.
    let [stdin, stdout, stderr] = plan.stdio.map(|fd| {
        // SAFETY: the launcher passed these descriptors on, and this process closes them below, not before.
        unsafe { BorrowedFd::borrow_raw(fd) }
    });
    rustix::stdio::dup2_stdin(stdin).map_err(explain("connect the input"))?;
    rustix::stdio::dup2_stdout(stdout).map_err(explain("connect the output"))?;
    rustix::stdio::dup2_stderr(stderr).map_err(explain("connect the complaints"))?;
    // The one to the guard is needed until the command begins.
    crate::descriptors::close_on_exec().map_err(explain("close descriptors"))?;
    let _ = rustix::process::setsid();
    std::env::set_current_dir(&plan.cwd)
        .map_err(|error| format!("enter `{}`: {error}", plan.cwd.display()))?;
    limit(plan).map_err(explain("set the limits of a process"))?;
    drop_capabilities().map_err(explain("drop capabilities"))?;
    rustix::thread::set_no_new_privs(true).map_err(explain("refuse new privileges"))?;
    match plan.landlock {
        Layer::Used => landlock::restrict(plan).map_err(|error| format!("Landlock: {error}"))?,
        Layer::Failing => return Err("Landlock: not there, for a test".to_string()),
        Layer::LeftOut => {}
    }
    match plan.seccomp {
        Layer::Used => seccomp::restrict(plan).map_err(|error| format!("seccomp: {error}"))?,
        Layer::Failing => return Err("seccomp: not there, for a test".to_string()),
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
        // Counted in the namespace alone. Elsewhere all processes of the user count, whoever started them.
        wanted.push((Resource::Nproc, u64::from(limits.processes) + SLACK));
    }
    if !plan.memory_group {
        let untouched = match plan.profile {
            Profile::Command => 0,
            Profile::Browser => BROWSER_UNTOUCHED,
        };
        wanted.push((
            Resource::Data,
            limits.memory_bytes.saturating_add(untouched),
        ));
    }
    for (resource, most) in wanted {
        let current = rustix::process::getrlimit(resource);
        let most = current.maximum.map_or(most, |maximum| maximum.min(most));
        let both = Rlimit {
            current: Some(most),
            maximum: Some(most),
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
    // Old kernels have no ambient set, and then there is nothing in it.
    let _ = rustix::thread::clear_ambient_capability_set();
    rustix::thread::set_capabilities(None, none)
}
