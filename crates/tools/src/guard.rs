//! Guarded paths: files that other programs act on automatically. A path is guarded if its name is on the sandbox's
//! list, or if it lies in a directory whose entries make git recognize it as a repository. Every change of a guarded
//! path needs the user's approval, and a call changes only the path that was approved.

use crate::roots::Roots;
use crate::show;
use lango_core::GuardedTarget;
use lango_sandbox::{Access, GitEntries, protection_of_path};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Returns why a path is guarded, or `None`. `path` must be absolute and free of links; `access` is what the policy
/// allows.
pub(crate) fn guarded_target(roots: &Roots, path: &Path, access: Access) -> Option<GuardedTarget> {
    let reason = if access == Access::Guarded {
        let name = guarded_name(roots, path);
        format!("`{}` configures other programs", show::name(name))
    } else {
        let folder = git_directory(roots, path)?;
        let folder = show::name(roots.shorten(&folder).as_os_str());
        format!("`{folder}` is a git directory or becomes one, and git runs what its files name")
    };
    Some(target(roots, path, reason))
}

/// Describes a folder that contains a guarded entry. `entry` is relative to the folder.
pub(crate) fn guarded_container(roots: &Roots, path: &Path, entry: &Path) -> GuardedTarget {
    let entry = show::name(entry.as_os_str());
    target(
        roots,
        path,
        format!("it contains `{entry}`, which other programs act on"),
    )
}

/// Whether git recognizes a directory with these entries as a repository.
pub(crate) fn is_git_directory<'n>(names: impl Iterator<Item = &'n OsStr>) -> bool {
    let mut entries = GitEntries::default();
    names.for_each(|name| entries.add(name));
    entries.is_repository()
}

fn target(roots: &Roots, path: &Path, reason: String) -> GuardedTarget {
    GuardedTarget {
        path: roots.shorten(path).to_string_lossy().into(),
        reason: reason.into(),
    }
}

/// Returns the component that makes a path guarded, or its last component if a link on the way was guarded.
fn guarded_name<'p>(roots: &Roots, path: &'p Path) -> &'p OsStr {
    let mut above: Vec<&Path> = roots.inside(path).ancestors().collect();
    above.reverse();
    let guarded = above
        .into_iter()
        .find(|part| protection_of_path(part).is_some())
        .and_then(Path::file_name);
    guarded.or(path.file_name()).unwrap_or(path.as_os_str())
}

/// Finds the parent directory that git recognizes as a repository, or would recognize once the path exists.
fn git_directory(roots: &Roots, path: &Path) -> Option<PathBuf> {
    const ENTRIES: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];
    let (mut folder, rest) = roots.start(path).ok()??;
    for name in rest {
        let present = ENTRIES.iter().map(OsStr::new);
        let present = present.filter(|entry| folder.dir().symlink_metadata(entry).is_ok());
        if is_git_directory(present.chain([name])) {
            return Some(folder.path().to_owned());
        }
        // A missing folder would have a single entry, which is not enough for a repository.
        folder = folder.child(name).ok()?;
    }
    None
}
