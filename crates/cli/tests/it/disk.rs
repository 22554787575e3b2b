//! Small real file systems to be full or read-only. Mounting one needs root on Linux; without it the tests fail, since
//! skipping would hide what they are for.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The file that takes all room.
pub const BALLAST: &str = "ballast";

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
        fill(self.path())
    }

    /// From now on nothing on it can be changed.
    pub fn make_read_only(&self) {
        mount(&["-o", "remount,ro"], self.path());
    }
}

/// Takes all room that is left where this folder is.
pub fn fill(folder: &Path) -> PathBuf {
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

/// A real file system on a file, which turns read-only at its first error, whoever has files open on it: what a disk does
/// that fails. A file system that is well cannot be made read-only while somebody writes.
pub struct FailingDisk {
    folder: TempDir,
}

impl FailingDisk {
    pub fn new() -> Self {
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

    /// Where it is.
    pub fn path(&self) -> PathBuf {
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

    /// What makes it fail.
    pub fn failure(&self) -> impl FnOnce() + Send + 'static {
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

    /// Makes it well again; nobody may have files open on it.
    pub fn repair(&mut self) {
        succeed(Command::new("umount").arg(self.path()));
        let mut check = Command::new("e2fsck");
        // 1 means that errors were mended.
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
    // Lazily, so that a test that failed with a file still open leaves nothing behind.
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
        "this test has to mount a file system, as root on Linux: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
