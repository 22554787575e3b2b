//! Stops child programs from inheriting file descriptors.

use rustix::io::Errno;

/// Marks all descriptors except the first three as close-on-exec. Makes a single system call, so it may be used between
/// `fork` and `exec`.
pub(crate) fn close_on_exec() -> Result<(), Errno> {
    const FIRST: libc::c_uint = 3;
    // SAFETY: only sets a flag on descriptors of this process.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            FIRST,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}
