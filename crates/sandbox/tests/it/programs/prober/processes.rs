//! Other processes, and what this one has and knows.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "one comment stands for a whole table"
)]

use crate::{Attempt, answer, number, possible, refused};
use std::fs;

pub(crate) fn attempt(name: &str, arguments: &[&str]) -> Option<Attempt> {
    let pid: libc::c_int = number(arguments, 0);
    // SAFETY, for this table: no call reads or writes memory of this process but buffers that live.
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
                1 => refused("it has none to gain"),
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
    // SAFETY: writes one byte to a place that lives.
    let read = unsafe { libc::process_vm_readv(pid, &raw const here, 1, &raw const there, 1, 0) };
    let error = std::io::Error::last_os_error();
    match error.raw_os_error() {
        // The address is not there, though the process was open to reading.
        Some(libc::EFAULT) if read == -1 => Ok("its memory is open".to_string()),
        _ => possible(read as libc::c_long),
    }
}

fn descriptor_of(pid: libc::c_int) -> Attempt {
    // SAFETY: calls with numbers alone.
    let process = answer(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: as above.
    possible(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process, 0, 0) })
}

fn become_root() -> Attempt {
    // SAFETY: changes the user of this process alone, or nothing.
    unsafe { libc::setuid(0) };
    // SAFETY: asks for a number.
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
    match held.is_empty() {
        true => refused("none"),
        false => Ok(held.join(", ")),
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
    match open.is_empty() {
        true => refused("only the first three are open"),
        false => Ok(open.join(", ")),
    }
}

fn environment() -> Attempt {
    const USUAL: [&str; 6] = ["PATH", "HOME", "TMPDIR", "LANG", "TERM", "PWD"];
    let others: Vec<String> = std::env::vars()
        .map(|(name, _)| name)
        .filter(|name| !USUAL.contains(&name.as_str()))
        .collect();
    match others.is_empty() {
        true => refused("only the usual variables"),
        false => Ok(others.join(", ")),
    }
}

fn processes(most: usize) -> Attempt {
    let entries = fs::read_dir("/proc")?.flatten();
    let is_process = |name: &str| name.parse::<u32>().is_ok();
    let count = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_process))
        .count();
    match count > most {
        true => Ok(format!("{count} in sight")),
        false => refused(format!("{count} in sight")),
    }
}
