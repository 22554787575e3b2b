//! The inner helper: a second instance of this program, started inside bubblewrap's namespaces before the command.
//!
//! It forks. The child applies the inner layers to itself and becomes the command; the parent stays outside of those
//! layers as the command's guard. A separate process can allocate memory and report errors during the setup; code
//! between lango's own `fork` and `exec` could not.

mod become_command;
mod clean_up;
mod guard;
mod landlock;
mod nesting;
pub(crate) mod probe;
mod proc_stats;
mod seccomp;
mod usage;

pub(crate) use landlock::{MIN_ABI_STANDALONE, SCOPES_ABI, kernel_abi};

use crate::plan::Plan;
use crate::report::Report;
use rustix::fd::{FromRawFd, OwnedFd};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};

/// Exit code of the helper if the sandbox fails. Only for debugging; the launcher reads the report.
const FAILED: i32 = 125;

/// Runs the inner helper and never returns. `main` must call it before it starts threads, if the first arguments are
/// those of [`HelperCommand`](crate::HelperCommand), and pass the remaining arguments.
pub fn enter(mut arguments: impl Iterator<Item = OsString>) -> ! {
    let plan = arguments
        .next()
        .and_then(|argument| argument.to_str()?.parse().ok())
        .ok_or_else(|| "only lango can start the inner helper".to_string())
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
        return Err("the descriptor of the plan is invalid".to_string());
    }
    // SAFETY: the launcher passed this descriptor for this single use.
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(|error| format!("the plan cannot be read: {error}"))?;
    Plan::decode(&bytes).ok_or_else(|| "the plan is from another version of lango".to_string())
}

fn fail(what: String) -> ! {
    send_report(&Report::Failed(what));
    std::process::exit(FAILED)
}

/// Sends a report to the launcher. Ignores errors: if lango has ended, the report is not needed.
fn send_report(report: &Report) {
    let _ = std::io::stderr().write_all(report.line().as_bytes());
}
