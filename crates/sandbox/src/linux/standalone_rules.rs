//! Landlock rules for commands without bubblewrap. A rule opens a folder with everything in it, and nothing can be
//! excluded afterwards. So a folder that contains a read-only or hidden path is opened entry by entry, without that
//! path. As a result, commands cannot create new files next to a read-only path, only in the opened folders.

use super::view::{View, Visibility};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the readable and the writable paths.
pub(crate) fn rules(view: &View, scratch: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let hidden: Vec<&Path> = view
        .paths(Visibility::HiddenFolder)
        .chain(view.paths(Visibility::HiddenFile))
        .map(PathBuf::as_path)
        .collect();
    let mut closed = hidden.clone();
    closed.extend(view.paths(Visibility::Protected).map(PathBuf::as_path));
    let (mut read, mut write) = (Vec::new(), vec![scratch.to_path_buf()]);
    for path in view
        .paths(Visibility::Read)
        .chain(view.paths(Visibility::Protected))
    {
        open(path, &hidden, &mut read);
    }
    for path in view.paths(Visibility::Write) {
        open(path, &hidden, &mut read);
        open(path, &closed, &mut write);
    }
    (read, write)
}

/// Opens a path, or its entries one by one if it contains a closed path.
fn open(path: &Path, closed: &[&Path], opened: &mut Vec<PathBuf>) {
    if closed.contains(&path) {
        return;
    }
    if !closed.iter().any(|inside| inside.starts_with(path)) {
        opened.push(path.to_path_buf());
        return;
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        // A rule for a link would open its target.
        if !entry.path().is_symlink() {
            open(&entry.path(), closed, opened);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_a_protected_entry_is_opened_entry_by_entry() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["src", "sub/.git", "sub/code", ".git"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
        let closed = [root.join(".git"), root.join("sub/.git")];
        let closed: Vec<&Path> = closed.iter().map(PathBuf::as_path).collect();
        let mut opened = Vec::new();
        open(root, &closed, &mut opened);
        opened.sort();
        assert_eq!(opened, [root.join("src"), root.join("sub/code")]);
    }
}
