//! Tests with full and read-only disks, which are real mounted file systems. Mounting needs root; otherwise the tests are skipped.

use super::{ROOT, append, create, log, open, refusal};
use lango_core::{SessionStore, StoreError};
use lango_store::Store;
use lango_testkit::session_store_contract::LogBuilder;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A small in-memory file system, unmounted when dropped.
struct Disk(TempDir);

impl Disk {
    /// Returns `None` if this user may not mount.
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

    /// Fills the remaining space with a file and returns its path. Deleting the file frees the space.
    fn fill(&self) -> std::path::PathBuf {
        let path = self.path().join("filler");
        let mut file = File::create(&path).unwrap();
        while file.write_all(&[7; 4096]).is_ok() {}
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazy unmounting works even if a failed test left a file open.
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
async fn a_full_disk_is_reported_and_nothing_is_lost() {
    let Some(disk) = Disk::mount("size=1m") else {
        return;
    };
    let path = disk.path().join("lango.db");
    let store = open(&path);
    let session = create(&store, "s_1").await;
    let mut builder = LogBuilder::new(&session).exchange("one", "1");
    append(&store, builder.batch()).await;

    for _ in 0..3 {
        let acknowledged = log(&store, &session).await;
        let filler = disk.fill();
        let batch = builder
            .clone()
            .exchange(&"long ".repeat(20_000), "2")
            .batch();
        for _ in 0..3 {
            let error = store.append(batch.clone()).await.unwrap_err();
            assert!(matches!(error, StoreError::Full { .. }), "{error}");
        }
        assert_eq!(log(&store, &session).await, acknowledged);
        fs::remove_file(filler).unwrap();
        builder = builder.exchange("two", "2");
        append(&store, builder.batch()).await;
    }
    drop(store);
    let store = open(&path);
    assert_eq!(store.verify(&session).await.unwrap(), 12);
    assert_eq!(store.read_head(&session).await.unwrap().exchanges.len(), 4);
}

#[test]
fn a_database_is_created_as_soon_as_there_is_space() {
    let Some(disk) = Disk::mount("size=768k") else {
        return;
    };
    let filler = File::options().write(true).open(disk.fill()).unwrap();
    let path = disk.path().join("lango.db");
    // Space is freed page by page, so that the creation fails at every point where it can.
    for pages in (0..192).rev() {
        match Store::open_sqlite(&path, ROOT.into()) {
            Ok(_) => return assert!(pages < 184, "there was not enough space"),
            Err(error) => assert!(
                matches!(error, StoreError::Full { .. }),
                "with {pages} pages taken: {error}"
            ),
        }
        filler.set_len(pages * 4096).unwrap();
    }
    panic!("it never opened");
}

#[tokio::test]
async fn a_read_only_disk_is_reported() {
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
