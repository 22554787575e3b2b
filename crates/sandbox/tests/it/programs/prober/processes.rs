//! Attempts on other processes, and checks of this process's own privileges, descriptors and environment.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "one comment covers the whole table"
)]

use crate::{Attempt, answer, number, possible, refused};
use std::fs;

pub(crate) fn attempt(name: &str, arguments: &[&str]) -> Option<Attempt> {
    let pid: libc::c_int = number(arguments, 0);
    // SAFETY, for this table: no call accesses memory of this process except live buffers.
    Some(match name {
        "trace" => possible(unsafe { libc::ptrace(libc::PTRACE_ATTACH, pid, 0, 0) }),
        "read-memory-of" => read_memory(pid),
        "signal" => possible(unsafe { libc::kill(pid, libc::SIGUSR1) }.into()),
        "descriptor-of" => descriptor_of(pid),
        "become-root" => become_root(),
        "capabilities" => capabilities(),
        "descriptors" => descriptors(),
        "environment" => environment(),
        "processes" => processes(number(arguments, 1)),
        "new-privileges" => {
            let held = unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) };
            match held {
                1 => refused("it cannot gain privileges"),
                _ => Ok("it can gain privileges".into()),
            }
        }
        "hide-from-guard" => {
            unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
            match unsafe { libc::prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0) } {
                0 => Ok("it is hidden".into()),
                _ => refused("it is not hidden"),
            }
        }
        _ => return None,
    })
}

fn read_memory(pid: libc::c_int) -> Attempt {
    let mut byte = 0_u8;
    let part = |address: *mut libc::c_void| libc::iovec {
        iov_base: address,
        iov_len: 1,
    };
    let (here, there) = (part((&raw mut byte).cast()), part(0x1000 as *mut _));
    // SAFETY: writes one byte to a variable on the stack.
    let read = unsafe { libc::process_vm_readv(pid, &raw const here, 1, &raw const there, 1, 0) };
    let error = std::io::Error::last_os_error();
    match error.raw_os_error() {
        // The address is not mapped, but the process was accessible.
        Some(libc::EFAULT) if read == -1 => Ok("its memory is readable".to_string()),
        _ => possible(read as libc::c_long),
    }
}

fn descriptor_of(pid: libc::c_int) -> Attempt {
    // SAFETY: the call takes only numbers.
    let process = answer(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: as above.
    possible(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process, 0, 0) })
}

fn become_root() -> Attempt {
    // SAFETY: changes at most the user of this process.
    unsafe { libc::setuid(0) };
    // SAFETY: only returns an id.
    match unsafe { libc::geteuid() } {
        0 => Ok("it is root".to_string()),
        other => refused(format!("it is user {other}")),
    }
}

fn capabilities() -> Attempt {
    let text = fs::read_to_string("/proc/self/status")?;
    let sets = text.lines().filter(|line| line.starts_with("Cap"));
    let held: Vec<&str> = sets
        .filter(|line| !line.ends_with("\t0000000000000000"))
        .filter(|line| !line.starts_with("CapBnd"))
        .collect();
    if held.is_empty() {
        refused("none")
    } else {
        Ok(held.join(", "))
    }
}

fn descriptors() -> Attempt {
    let entries = fs::read_dir("/proc/self/fd")?.flatten();
    let open: Vec<String> = entries
        .filter_map(|entry| {
            let target = fs::read_link(entry.path()).ok()?;
            let number: u32 = entry.file_name().to_str()?.parse().ok()?;
            let own = target.starts_with("/proc");
            (number > 2 && !own).then(|| format!("{number} {}", target.display()))
        })
        .collect();
    if open.is_empty() {
        refused("only the first three are open")
    } else {
        Ok(open.join(", "))
    }
}

fn environment() -> Attempt {
    const USUAL: [&str; 6] = ["PATH", "HOME", "TMPDIR", "LANG", "TERM", "PWD"];
    let others: Vec<String> = std::env::vars()
        .map(|(name, _)| name)
        .filter(|name| !USUAL.contains(&name.as_str()))
        .collect();
    if others.is_empty() {
        refused("only the usual variables")
    } else {
        Ok(others.join(", "))
    }
}

fn processes(expected: usize) -> Attempt {
    let entries = fs::read_dir("/proc")?.flatten();
    let is_process = |name: &str| name.parse::<u32>().is_ok();
    let count = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_process))
        .count();
    if count > expected {
        Ok(format!("{count} visible"))
    } else {
        refused(format!("{count} visible"))
    }
}
