//! Attempts from nested namespaces, as their root user with all capabilities.

use crate::{Attempt, answer, possible, refused};
use std::ffi::CString;
use std::io;
use std::os::unix::process::CommandExt;

/// Which namespaces an attempt creates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nesting {
    /// Only a user namespace.
    User,
    /// User, network and PID namespaces.
    All,
}

impl Nesting {
    pub(crate) fn of(word: &str) -> Option<Self> {
        match word {
            "nested" => Some(Self::User),
            "nested-apart" => Some(Self::All),
            _ => None,
        }
    }

    /// Makes this process root of new namespaces. With a PID namespace, a child process continues, and its parent exits
    /// when the child does.
    pub(crate) fn enter(self) -> io::Result<()> {
        // SAFETY: only returns ids.
        let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
        match self {
            // SAFETY: affects only this process, which has one thread.
            Self::User => drop(answer(
                unsafe { libc::unshare(libc::CLONE_NEWUSER) }.into(),
            )?),
            Self::All => {
                let namespaces = libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::CLONE_NEWNET;
                let flags = libc::c_long::from(namespaces | libc::SIGCHLD);
                // SAFETY: without a separate stack the child continues with a copy of this one, as after `fork`.
                let child = answer(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })?;
                if child != 0 {
                    let mut status = 0;
                    // SAFETY: writes to a variable on the stack.
                    unsafe { libc::waitpid(child as libc::pid_t, &raw mut status, 0) };
                    std::process::exit(libc::WEXITSTATUS(status));
                }
            }
        }
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
        std::fs::write("/proc/self/uid_map", format!("0 {user} 1"))
    }
}

pub(crate) fn attempt(name: &str, arguments: &[&str]) -> Option<Attempt> {
    Some(match name {
        "run" => {
            let (program, rest) = arguments.split_first()?;
            // Returns only on failure.
            Err(std::process::Command::new(program).args(rest).exec())
        }
        "give-capabilities" => give_capabilities(arguments.first()?),
        "raise-limits" => raise_limits(),
        _ => return None,
    })
}

/// Gives a file the capability to become any user.
fn give_capabilities(path: &str) -> Attempt {
    const REVISION_2_EFFECTIVE: u32 = 0x0200_0001;
    const SETUID: u32 = 1 << 7;
    let value = [REVISION_2_EFFECTIVE, SETUID, 0, 0, 0].map(u32::to_le);
    let path = CString::new(path).unwrap_or_default();
    // SAFETY: name and value are alive, and the value has the given length.
    possible(
        unsafe {
            libc::setxattr(
                path.as_ptr(),
                c"security.capability".as_ptr(),
                value.as_ptr().cast(),
                20,
                0,
            )
        }
        .into(),
    )
}

fn raise_limits() -> Attempt {
    for (name, resource) in [
        ("processes", libc::RLIMIT_NPROC),
        ("file size", libc::RLIMIT_FSIZE),
        ("open files", libc::RLIMIT_NOFILE),
    ] {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: both calls use a value on the stack.
        let raised = unsafe {
            answer(libc::getrlimit(resource, &raw mut limit).into())?;
            limit.rlim_max += 1;
            libc::setrlimit(resource, &raw const limit)
        };
        if raised == 0 {
            return Ok(format!("{name} raised to {}", limit.rlim_max));
        }
    }
    refused("no limit can be raised")
}
