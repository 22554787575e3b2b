//! Descriptors that no program inherits.

use rustix::io::Errno;

/// Has all descriptors but the first three closed when this process runs another program. Makes a single system call,
/// so that it may be used between `fork` and `exec`.
pub(crate) fn close_on_exec() -> Result<(), Errno> {
    const FIRST: libc::c_uint = 3;
    // SAFETY: marks descriptors of this process, and changes nothing else.
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
