//! What must stay as it is, written down before and compared after.

use lango_sandbox::{Access, Policy};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Each entry of a tree: its kind, mode and content.
pub type Snapshot = BTreeMap<PathBuf, String>;

/// All that lies below a folder; links are not followed.
pub fn of_tree(folder: &Path) -> Snapshot {
    let mut snapshot = Snapshot::new();
    add(&mut snapshot, folder);
    snapshot
}

/// All in a policy's workspace that may not be changed, or not be seen.
pub fn of_protected(policy: &Policy) -> Snapshot {
    let mut snapshot = of_tree(&policy.workspace);
    snapshot.retain(|path, _| policy.access(path) != Access::Write);
    snapshot
}

/// Panics with the entries that differ, if there are any.
pub fn assert_same(before: &Snapshot, after: &Snapshot, what: &str) {
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
