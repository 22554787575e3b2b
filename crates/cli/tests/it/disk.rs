//! Small real file systems to be full or read-only. Mounting one needs root on Linux; without it the tests fail, since
//! skipping would hide what they are for.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A file system in memory, unmounted at the end, whatever the end is.
pub struct Disk(TempDir);

impl Disk {
    /// One of this size, such as `256k`.
    pub fn of(size: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        mount(&["-t", "tmpfs", "-o", &options, "tmpfs"], folder.path());
        Self(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all room that is left; deleting the file gives it back.
    pub fn fill(&self) -> PathBuf {
        let path = self.path().join("ballast");
        let mut file = File::create(&path).unwrap();
        while file.write_all(&[7; 4096]).is_ok() {}
        path
    }

    /// From now on nothing on it can be changed.
    pub fn make_read_only(&self) {
        mount(&["-o", "remount,ro"], self.path());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily, so that a test that failed with a file still open leaves nothing behind.
        let mut umount = Command::new("umount");
        let _ = umount.arg("--lazy").arg(self.path()).status();
    }
}

fn mount(arguments: &[&str], folder: &Path) {
    let output = Command::new("mount").args(arguments).arg(folder).output();
    let output = output.expect("`mount` cannot be run");
    assert!(
        output.status.success(),
        "this test has to mount a file system, as root on Linux: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
