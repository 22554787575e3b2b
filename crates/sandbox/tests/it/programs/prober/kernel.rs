//! System calls that could lead out of the sandbox: namespaces, mounts, devices, and rarely used parts of the kernel.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "one comment covers the whole table"
)]

use crate::{Attempt, possible, refused};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::ptr::null;

pub(crate) fn attempt(name: &str, arguments: &[&str]) -> Option<Attempt> {
    let path =
        |place: usize| CString::new(*arguments.get(place).unwrap_or(&"")).unwrap_or_default();
    let (first, second) = (path(0), path(1));
    // SAFETY, for this table: pointers are null where the kernel allows it, or point to strings that live until the end
    // of this function; no call writes to memory of this process.
    Some(match name {
        "open-for-reading" => File::open(arguments.first()?).map(|_| "opened".into()),
        "open-for-writing" => OpenOptions::new()
            .write(true)
            .open(arguments.first()?)
            .map(|_| "opened".into()),
        "write" => {
            let text = arguments.get(1)?.as_bytes();
            let file = OpenOptions::new().write(true).open(arguments.first()?);
            file.and_then(|mut file| file.write_all(text))
                .map(|()| "written".into())
        }
        "rename" => {
            std::fs::rename(arguments.first()?, arguments.get(1)?).map(|()| "renamed".into())
        }
        "link" => {
            std::fs::hard_link(arguments.first()?, arguments.get(1)?).map(|()| "linked".into())
        }
        "unshare-user" => possible(unsafe { libc::unshare(libc::CLONE_NEWUSER) }.into()),
        "unshare-mounts" => possible(unsafe { libc::unshare(libc::CLONE_NEWNS) }.into()),
        "unshare-network" => possible(unsafe { libc::unshare(libc::CLONE_NEWNET) }.into()),
        "clone-user" => clone_user(),
        "clone3-user" => clone3_user(),
        "setns" => setns(),
        "mount-tmpfs" => possible(
            unsafe { libc::mount(c"t".as_ptr(), first.as_ptr(), c"tmpfs".as_ptr(), 0, null()) }
                .into(),
        ),
        "mount-bind" => possible(
            unsafe {
                libc::mount(
                    first.as_ptr(),
                    second.as_ptr(),
                    null(),
                    libc::MS_BIND,
                    null(),
                )
            }
            .into(),
        ),
        "remount-writable" => {
            let flags = libc::MS_REMOUNT | libc::MS_BIND;
            possible(unsafe { libc::mount(null(), first.as_ptr(), null(), flags, null()) }.into())
        }
        "umount" => possible(unsafe { libc::umount2(first.as_ptr(), libc::MNT_DETACH) }.into()),
        "pivot-root" => {
            possible(unsafe { libc::syscall(libc::SYS_pivot_root, first.as_ptr(), first.as_ptr()) })
        }
        "chroot" => possible(unsafe { libc::chroot(first.as_ptr()) }.into()),
        "fsopen" => possible(unsafe { libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0) }),
        "open-tree" => {
            let clone = 1;
            possible(unsafe {
                libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, first.as_ptr(), clone)
            })
        }
        "mknod" => {
            let disk = libc::makedev(254, 0);
            let mode = libc::S_IFBLK | 0o666;
            possible(unsafe { libc::mknod(first.as_ptr(), mode, disk) }.into())
        }
        "io-uring" => {
            let mut parameters = [0_u8; 256];
            possible(unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, parameters.as_mut_ptr()) })
        }
        "bpf" => {
            let attributes = [0_u64; 16];
            possible(unsafe { libc::syscall(libc::SYS_bpf, 0, attributes.as_ptr(), 128) })
        }
        "perf" => {
            let mut attributes = [0_u32; 32];
            attributes[0] = 1;
            attributes[1] = 128;
            possible(unsafe {
                libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, -1, 0)
            })
        }
        "userfaultfd" => possible(unsafe { libc::syscall(libc::SYS_userfaultfd, 1) }),
        "handle" => handle(&first),
        "add-key" => possible(unsafe {
            let session = -3;
            libc::syscall(
                libc::SYS_add_key,
                c"user".as_ptr(),
                c"lango".as_ptr(),
                c"x".as_ptr(),
                1,
                session,
            )
        }),
        "keyctl" => possible(unsafe { libc::syscall(libc::SYS_keyctl, 0, -3, 1) }),
        "personality" => possible(unsafe { libc::personality(0x004_0000) }.into()),
        "other-numbering" => possible(unsafe { libc::syscall(0x4000_0000 | libc::SYS_getpid) }),
        "other-architecture" => other_architecture(),
        "type-into-terminal" => type_into_terminal(),
        "set-host-name" => possible(unsafe { libc::sethostname(c"x".as_ptr(), 1) }.into()),
        "kernel-log" => possible(unsafe { libc::syscall(libc::SYS_syslog, 10, 0, 0) }),
        "fallocate" => {
            let file = File::create(arguments.first()?);
            let fd = file
                .as_ref()
                .map(std::os::fd::AsRawFd::as_raw_fd)
                .unwrap_or(-1);
            possible(unsafe { libc::fallocate(fd, 0, 0, 1 << 20) }.into())
        }
        _ => return None,
    })
}

fn clone_user() -> Attempt {
    let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
    // SAFETY: without a separate stack the child continues with a copy of this one, as after `fork`.
    let child = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    end_child(child)
}

fn clone3_user() -> Attempt {
    let mut arguments = [0_u64; 8];
    arguments[0] = libc::CLONE_NEWUSER as u64;
    arguments[4] = libc::SIGCHLD as u64;
    // SAFETY: the arguments have the given length; apart from the namespace the call does the same as `fork`.
    let child = unsafe { libc::syscall(libc::SYS_clone3, arguments.as_ptr(), 64) };
    end_child(child)
}

fn end_child(child: libc::c_long) -> Attempt {
    if child == 0 {
        std::process::exit(0);
    }
    possible(child)
}

fn setns() -> Attempt {
    let namespace = File::open("/proc/self/ns/mnt")?;
    let fd = std::os::fd::AsRawFd::as_raw_fd(&namespace);
    // SAFETY: enters a namespace by an open descriptor.
    possible(unsafe { libc::setns(fd, 0) }.into())
}

/// Gets the file handle of a path, with which a file can be opened without its path.
fn handle(path: &CString) -> Attempt {
    let mut handle = [0_u32; 40];
    handle[0] = 128;
    let mut mount = 0;
    // SAFETY: the buffer of the handle has at least the given size.
    possible(unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            path.as_ptr(),
            handle.as_mut_ptr(),
            &raw mut mount,
            0,
        )
    })
}

/// Makes a system call like a 32-bit program. The kernel kills the process if the filter refuses it.
fn other_architecture() -> Attempt {
    #[cfg(target_arch = "x86_64")]
    {
        let mut answer: i32 = 20;
        // SAFETY: returns the process id; changes only the listed registers.
        unsafe {
            std::arch::asm!("int 0x80", inout("eax") answer, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
        }
        match answer {
            0.. => Ok(answer.to_string()),
            _ => refused(format!("error {answer}")),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    refused("there is no other architecture")
}

/// Injects a key press into a newly created terminal.
fn type_into_terminal() -> Attempt {
    // SAFETY: plain calls with descriptors and constants.
    unsafe {
        let main = libc::open(c"/dev/ptmx".as_ptr(), libc::O_RDWR | libc::O_NOCTTY);
        crate::answer(main.into())?;
        let unlocked = 0;
        libc::ioctl(main, libc::TIOCSPTLCK, &raw const unlocked);
        let mut name = [0_i8; 64];
        libc::ptsname_r(main, name.as_mut_ptr().cast(), name.len());
        libc::setsid();
        let terminal = libc::open(name.as_ptr().cast(), libc::O_RDWR);
        crate::answer(terminal.into())?;
        libc::ioctl(terminal, libc::TIOCSCTTY, 0);
        possible(libc::ioctl(terminal, libc::TIOCSTI, c"x".as_ptr()).into())
    }
}
