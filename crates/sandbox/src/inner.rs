//! The inner helper: this program once more, inside of bubblewrap's namespaces, before the command.
//!
//! It forks. The child puts the inner layers on itself and becomes the command; the parent stays outside of those layers
//! as the command's guard. Here the setup may allocate, fail and say why, as it could not between a `fork` and an `exec`
//! of lango itself.

mod accounts;
mod become_command;
mod clean_up;
mod guard;
mod landlock;
mod nesting;
pub(crate) mod probe;
mod seccomp;
mod usage;

pub(crate) use landlock::{LEAST_ABI_ALONE, SCOPES_ABI, kernel_abi};

use crate::plan::Plan;
use crate::report::Report;
use rustix::fd::{FromRawFd, OwnedFd};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};

/// The code that the helper ends with when the sandbox fails. No one goes by it; the report says it.
const FAILED: i32 = 125;

/// Does the work of the inner helper: to be called first thing in `main`, before there are threads, when the first
/// arguments are those of [`Helper`](crate::Helper), with the arguments that are left. Never returns.
pub fn enter(mut arguments: impl Iterator<Item = OsString>) -> ! {
    let plan = arguments
        .next()
        .and_then(|argument| argument.to_str()?.parse().ok())
        .ok_or_else(|| "the inner helper is started by lango alone".to_string())
        .and_then(read_plan);
    let plan = match plan {
        Ok(plan) => plan,
        Err(what) => fail(what),
    };
    match guard::run(&plan) {
        Ok(code) => std::process::exit(code),
        Err(what) => fail(what),
    }
}

fn read_plan(fd: i32) -> Result<Plan, String> {
    if fd <= 2 {
        return Err("the plan has the wrong descriptor".to_string());
    }
    // SAFETY: the launcher passed this descriptor on for this one use.
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(|error| format!("the plan cannot be read: {error}"))?;
    Plan::decode(&bytes).ok_or_else(|| "the plan is not one of this version".to_string())
}

fn fail(what: String) -> ! {
    say(&Report::Failed(what));
    std::process::exit(FAILED)
}

/// Tells the launcher. If no one listens any more, no one needs to know.
fn say(report: &Report) {
    let _ = std::io::stderr().write_all(report.line().as_bytes());
}
