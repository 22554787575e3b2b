//! Tests whether Chromium's own sandbox can start. The test creates a user namespace with its id maps below the
//! command's own, and a second user namespace inside the first. In the second one it creates process and network
//! namespaces and changes the root. Some kernels and administrators forbid this.

use std::ffi::CStr;
use std::io::{self, Write};

/// Runs the test, prints what failed, and exits.
pub(super) fn run() -> ! {
    // SAFETY: only returns ids.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    let code = match in_child(libc::CLONE_NEWUSER, || nested(user, group)) {
        Ok(()) => 0,
        Err(error) => {
            let _ = writeln!(io::stdout(), "create a user namespace: {error}");
            1
        }
    };
    std::process::exit(code)
}

fn nested(user: u32, group: u32) -> i32 {
    let steps = || -> Result<(), (&str, io::Error)> {
        let map = |id: u32| format!("{id} {id} 1");
        let write = |file: &str, text: &str| std::fs::write(format!("/proc/self/{file}"), text);
        write("setgroups", "deny").map_err(|error| ("disable setgroups", error))?;
        write("gid_map", &map(group)).map_err(|error| ("map the group", error))?;
        write("uid_map", &map(user)).map_err(|error| ("map the user", error))?;
        // SAFETY: affects only this process, which is about to end.
        check(unsafe { libc::unshare(libc::CLONE_NEWUSER) }.into())
            .map_err(|error| ("create a user namespace in the nested one", error))?;
        let both = libc::CLONE_NEWPID | libc::CLONE_NEWNET;
        in_child(both, || 0).map_err(|error| {
            (
                "create process and network namespaces in the nested one",
                error,
            )
        })?;
        let root: &CStr = c"/proc/self/fdinfo";
        // SAFETY: the path is a constant, and only the root of this process changes.
        check(unsafe { libc::chroot(root.as_ptr()) }.into())
            .map_err(|error| ("change the root in the nested one", error))
    };
    match steps() {
        Ok(()) => 0,
        Err((step, error)) => {
            let _ = writeln!(io::stdout(), "{step}: {error}");
            1
        }
    }
}

/// Runs `work` in a new process with new namespaces. Fails if the process cannot be created; the child prints its own
/// errors.
fn in_child(namespaces: libc::c_int, work: impl FnOnce() -> i32) -> io::Result<()> {
    let flags = libc::c_long::from(namespaces | libc::SIGCHLD);
    // SAFETY: without a separate stack the child continues as after `fork`; this process has one thread.
    let child = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    if child == 0 {
        std::process::exit(work());
    }
    check(child)?;
    let mut status = 0;
    // SAFETY: writes to a variable on the stack.
    check(unsafe { libc::waitpid(child as libc::pid_t, &raw mut status, 0) }.into())?;
    if status != 0 {
        std::process::exit(1);
    }
    Ok(())
}

fn check(answer: libc::c_long) -> io::Result<()> {
    match answer {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
