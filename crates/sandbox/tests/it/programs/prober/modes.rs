//! Ways to give a file the setuid or setgid bit.

use crate::{Attempt, possible};
use std::ffi::CString;

pub(crate) fn attempt(name: &str, arguments: &[&str]) -> Option<Attempt> {
    let path = CString::new(*arguments.first().unwrap_or(&"")).unwrap_or_default();
    let mode = arguments
        .get(1)
        .and_then(|text| u32::from_str_radix(text, 8).ok());
    let mode = mode.unwrap_or_default();
    let path = path.as_ptr();
    let here = libc::AT_FDCWD;
    // SAFETY: the path lives until the end of this function, and no call writes to memory of this process.
    let answer = unsafe {
        match name {
            "chmod" => libc::chmod(path, mode).into(),
            "fchmod" => libc::fchmod(libc::open(path, libc::O_RDONLY), mode).into(),
            "fchmodat" => libc::fchmodat(here, path, mode, 0).into(),
            "fchmodat2" => libc::syscall(452, here, path, mode, 0),
            "mknod-file" => libc::mknod(path, libc::S_IFREG | mode, 0).into(),
            "mkdir" => libc::mkdir(path, mode).into(),
            "create" => libc::open(path, libc::O_CREAT | libc::O_WRONLY, mode).into(),
            "create-temporary" => libc::open(path, libc::O_TMPFILE | libc::O_WRONLY, mode).into(),
            "openat2-create" => {
                let how = [(libc::O_CREAT | libc::O_WRONLY) as u64, mode.into(), 0];
                libc::syscall(libc::SYS_openat2, here, path, how.as_ptr(), 24)
            }
            // `file_getattr`, which is newer than the filter's lists.
            "later-call" => libc::syscall(468, here, c"/".as_ptr(), 0, 0, 0),
            _ => return None,
        }
    };
    Some(possible(answer))
}
