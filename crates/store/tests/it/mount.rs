//! Disks that are full or cannot be written, as real file systems. Mounting one needs root; others skip these.

use super::{ROOT, append, create, log, open, refusal};
use lango_core::{SessionStore, StoreError};
use lango_store::Store;
use lango_testkit::session_store_contract::Sketch;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A small file system in memory, unmounted at the end.
struct Disk(TempDir);

impl Disk {
    /// None if this user may not mount.
    fn mount(options: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = mount(&["-t", "tmpfs", "-o", options, "tmpfs"], folder.path());
        if !mounted {
            eprintln!("skipped: only root can mount a file system");
        }
        mounted.then_some(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all room that is left; deleting the file gives it back.
    fn fill(&self) -> std::path::PathBuf {
        let path = self.path().join("ballast");
        let mut file = File::create(&path).unwrap();
        while file.write_all(&[7; 4096]).is_ok() {}
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily, so that a test that failed with a file still open leaves nothing behind.
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(self.path())
            .status();
    }
}

fn mount(arguments: &[&str], folder: &Path) -> bool {
    Command::new("mount")
        .args(arguments)
        .arg(folder)
        .output()
        .is_ok_and(|output| output.status.success())
}

#[tokio::test]
async fn a_full_disk_is_said_to_be_full_and_nothing_is_lost() {
    let Some(disk) = Disk::mount("size=1m") else {
        return;
    };
    let path = disk.path().join("lango.db");
    let store = open(&path);
    let session = create(&store, "s_1").await;
    let mut sketch = Sketch::of(&session).exchange("one", "1");
    append(&store, sketch.batch()).await;

    for _ in 0..3 {
        let acknowledged = log(&store, &session).await;
        let ballast = disk.fill();
        let batch = sketch
            .clone()
            .exchange(&"long ".repeat(20_000), "2")
            .batch();
        for _ in 0..3 {
            let error = store.append(batch.clone()).await.unwrap_err();
            assert!(matches!(error, StoreError::Full { .. }), "{error}");
        }
        assert_eq!(log(&store, &session).await, acknowledged);
        fs::remove_file(ballast).unwrap();
        sketch = sketch.exchange("two", "2");
        append(&store, sketch.batch()).await;
    }
    drop(store);
    let store = open(&path);
    assert_eq!(store.verify(&session).await.unwrap(), 12);
    assert_eq!(store.open(&session).await.unwrap().exchanges.len(), 4);
}

#[test]
fn a_database_is_made_as_soon_as_there_is_room_for_it() {
    let Some(disk) = Disk::mount("size=768k") else {
        return;
    };
    let ballast = File::options().write(true).open(disk.fill()).unwrap();
    let path = disk.path().join("lango.db");
    // Page by page, so that the making stops at every point it can stop at.
    for pages in (0..192).rev() {
        match Store::open_sqlite(&path, ROOT.into()) {
            Ok(_) => return assert!(pages < 184, "there was no room"),
            Err(error) => assert!(
                matches!(error, StoreError::Full { .. }),
                "with {pages} pages taken: {error}"
            ),
        }
        ballast.set_len(pages * 4096).unwrap();
    }
    panic!("it never opened");
}

#[tokio::test]
async fn a_disk_that_cannot_be_written_is_said_to_be_read_only() {
    let Some(disk) = Disk::mount("size=1m") else {
        return;
    };
    let path = disk.path().join("lango.db");
    create(&open(&path), "s_1").await;
    let before = fs::read(&path).unwrap();
    assert!(mount(&["-o", "remount,ro"], disk.path()));
    for path in [
        &path,
        &disk.path().join("new.db"),
        &disk.path().join("new/new.db"),
    ] {
        let error = refusal(path);
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}
