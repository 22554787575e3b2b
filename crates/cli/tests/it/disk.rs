//! Small real file systems that can be full or read-only. Mounting them needs root on Linux. Without root the tests
//! fail instead of being skipped, so that they are not forgotten.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The file that fills the disk.
pub(crate) const BALLAST: &str = "ballast";

/// A file system in memory. It is unmounted when this value is dropped.
pub(crate) struct Disk(TempDir);

impl Disk {
    /// Mounts a file system of this size, such as `256k`.
    pub(crate) fn with_size(size: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        mount(&["-t", "tmpfs", "-o", &options, "tmpfs"], folder.path());
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Fills the disk with a file and returns its path. Deleting the file frees the space.
    pub(crate) fn fill(&self) -> PathBuf {
        fill(self.path())
    }

    /// Remounts the file system read-only.
    pub(crate) fn make_read_only(&self) {
        mount(&["-o", "remount,ro"], self.path());
    }
}

/// Fills the file system of a folder with a file and returns the file's path.
pub(crate) fn fill(folder: &Path) -> PathBuf {
    let path = folder.join(BALLAST);
    let mut file = File::create(&path).unwrap();
    while file.write_all(&[7; 4096]).is_ok() {}
    path
}

impl Drop for Disk {
    fn drop(&mut self) {
        unmount(self.path());
    }
}

/// A real file system in an image file, which becomes read-only at its first error even if files are open, like a
/// failing disk. A healthy file system cannot be remounted read-only while a file is open for writing.
pub(crate) struct FailingDisk {
    folder: TempDir,
}

impl FailingDisk {
    pub(crate) fn new() -> Self {
        let disk = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let image = disk.image();
        File::create(&image).unwrap().set_len(16 << 20).unwrap();
        succeed(Command::new("mkfs.ext4").arg("-q").arg(image));
        std::fs::create_dir(disk.path()).unwrap();
        disk.mount();
        disk
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn mount(&self) {
        let image = self.image();
        let image = image.to_str().unwrap();
        mount(&["-o", "loop,errors=remount-ro", image], &self.path());
    }

    /// Returns a function that makes the file system fail.
    pub(crate) fn failure(&self) -> impl FnOnce() + Send + 'static {
        let path = self.path();
        move || {
            let mut find = Command::new("findmnt");
            let found = find
                .args(["-n", "-o", "SOURCE"])
                .arg(path)
                .output()
                .unwrap();
            let device = String::from_utf8(found.stdout).unwrap();
            let device = device.trim().trim_start_matches("/dev/");
            let trigger = format!("/sys/fs/ext4/{device}/trigger_fs_error");
            std::fs::write(trigger, "1").unwrap();
        }
    }

    /// Repairs the file system. No process may have files open on it.
    pub(crate) fn repair(&mut self) {
        succeed(Command::new("umount").arg(self.path()));
        let mut check = Command::new("e2fsck");
        // Exit code 1 means that errors were corrected.
        let status = check.args(["-f", "-p"]).arg(self.image()).output().unwrap();
        assert!(
            status.status.code().is_some_and(|code| code < 2),
            "{status:?}"
        );
        self.mount();
    }
}

impl Drop for FailingDisk {
    fn drop(&mut self) {
        unmount(&self.path());
    }
}

fn unmount(folder: &Path) {
    // Unmount lazily, so that a failed test with an open file leaves nothing behind.
    let mut umount = Command::new("umount");
    let _ = umount.arg("--lazy").arg(folder).status();
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}

fn mount(arguments: &[&str], folder: &Path) {
    let output = Command::new("mount").args(arguments).arg(folder).output();
    let output = output.expect("`mount` cannot be run");
    assert!(
        output.status.success(),
        "this test must run as root on Linux to mount a file system: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
