//! Snapshots of files that must not change, to compare before and after.

use lango_sandbox::{Access, Policy};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The mode and content of each entry of a tree.
pub(crate) type Snapshot = BTreeMap<PathBuf, String>;

/// Takes a snapshot of everything below a folder; does not follow links.
pub(crate) fn of_tree(folder: &Path) -> Snapshot {
    let mut snapshot = Snapshot::new();
    add(&mut snapshot, folder);
    snapshot
}

/// Takes a snapshot of everything in a policy's workspace that is not writable.
pub(crate) fn of_protected(policy: &Policy) -> Snapshot {
    let mut snapshot = of_tree(&policy.workspace);
    snapshot.retain(|path, _| policy.access(path) != Access::Write);
    snapshot
}

/// Panics if entries differ, and lists them.
pub(crate) fn assert_same(before: &Snapshot, after: &Snapshot, what: &str) {
    let differs = |(path, entry): &(&PathBuf, &String)| {
        before.get(*path) != Some(*entry) || after.get(*path) != Some(*entry)
    };
    let changed: Vec<_> = before.iter().chain(after).filter(differs).collect();
    assert!(changed.is_empty(), "{what} changed {changed:#?}");
}

fn add(snapshot: &mut Snapshot, path: &Path) {
    let metadata = path.symlink_metadata().unwrap();
    let content = if metadata.is_symlink() {
        format!("link to {}", path.read_link().unwrap().display())
    } else if metadata.is_file() {
        format!("{:?}", Sha256::digest(std::fs::read(path).unwrap()))
    } else {
        String::new()
    };
    snapshot.insert(path.to_owned(), format!("{:o} {content}", metadata.mode()));
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            add(snapshot, &entry.unwrap().path());
        }
    }
}
