//! The rules about files where there is no bubblewrap. Such rules open a folder with all that is in it and cannot take
//! anything back; so a folder that holds something kept or hidden is opened entry by entry, those left out. New files
//! can then be made in the folders opened, and not beside what is kept.

use super::view::{Show, View};
use std::fs;
use std::path::{Path, PathBuf};

/// What may be read, and what may be written.
pub(crate) fn rules(view: &View, scratch: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let hidden: Vec<&Path> = view
        .paths(Show::HideFolder)
        .chain(view.paths(Show::HideFile))
        .map(PathBuf::as_path)
        .collect();
    let mut closed = hidden.clone();
    closed.extend(view.paths(Show::Keep).map(PathBuf::as_path));
    let (mut read, mut write) = (Vec::new(), vec![scratch.to_path_buf()]);
    for path in view.paths(Show::Read).chain(view.paths(Show::Keep)) {
        open(path, &hidden, &mut read);
    }
    for path in view.paths(Show::Write) {
        open(path, &hidden, &mut read);
        open(path, &closed, &mut write);
    }
    (read, write)
}

/// Opens a path, or what is in it if something in it stays closed.
fn open(path: &Path, closed: &[&Path], opened: &mut Vec<PathBuf>) {
    if closed.contains(&path) {
        return;
    }
    if !closed.iter().any(|inside| inside.starts_with(path)) {
        opened.push(path.to_path_buf());
        return;
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        // A rule for a link would open what it leads to.
        if !entry.path().is_symlink() {
            open(&entry.path(), closed, opened);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_something_kept_is_opened_around_it() {
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
