//! What other programs act on by themselves: by its name, as the sandbox's list has it, or as a git directory, which git
//! finds by its entries. A change of it is asked for each time, and only what was asked about is changed.

use crate::file_error::FileError;
use crate::roots::Roots;
use crate::show;
use lango_core::{GuardedTarget, Inspection};
use lango_sandbox::{Access, GitEntries, protection_of_path};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What is guarded about a path that is absolute and free of links; `access` is what may be done with it.
pub(crate) fn guarded_target(roots: &Roots, path: &Path, access: Access) -> Option<GuardedTarget> {
    let reason = if access == Access::Guarded {
        let name = guarded_name(roots, path);
        format!("`{}` configures other programs", show::name(name))
    } else {
        let folder = git_directory(roots, path)?;
        let folder = show::name(roots.short(&folder).as_os_str());
        format!("`{folder}` is a git directory or becomes one, and git runs what its files name")
    };
    Some(target(roots, path, reason))
}

/// The same for something that holds what is guarded.
pub(crate) fn guarded_holder(roots: &Roots, path: &Path, held: &Path) -> GuardedTarget {
    let held = show::name(held.as_os_str());
    target(
        roots,
        path,
        format!("it holds `{held}`, which other programs act on"),
    )
}

/// Refuses a guarded target that is not the one that was inspected before the call was allowed.
pub(crate) fn expect_inspected(
    guarded: Option<&GuardedTarget>,
    inspection: &Inspection,
) -> Result<(), FileError> {
    match guarded {
        Some(guarded) if inspection.guarded.as_ref() != Some(guarded) => Err(FileError::NotAsked {
            path: guarded.path.to_string(),
            reason: guarded.reason.to_string(),
        }),
        _ => Ok(()),
    }
}

/// Whether these are the entries of a directory that git takes for a repository.
pub(crate) fn is_git_directory<'n>(names: impl Iterator<Item = &'n OsStr>) -> bool {
    let mut entries = GitEntries::default();
    names.for_each(|name| entries.add(name));
    entries.is_repository()
}

fn target(roots: &Roots, path: &Path, reason: String) -> GuardedTarget {
    GuardedTarget {
        path: roots.short(path).to_string_lossy().into(),
        reason: reason.into(),
    }
}

/// The component for which a path is guarded; its last one if a link on the way was.
fn guarded_name<'p>(roots: &Roots, path: &'p Path) -> &'p OsStr {
    let root = roots
        .policy()
        .writable()
        .filter(|root| path.starts_with(root))
        .max_by_key(|root| root.as_os_str().len());
    let inside = root.and_then(|root| path.strip_prefix(root).ok());
    let inside = inside.unwrap_or(path);
    let mut above: Vec<&Path> = inside.ancestors().collect();
    above.reverse();
    let guarded = above
        .into_iter()
        .find(|part| protection_of_path(part).is_some())
        .and_then(Path::file_name);
    guarded.or(path.file_name()).unwrap_or(path.as_os_str())
}

/// The directory above a path that git takes for a repository, or would once the path exists.
fn git_directory(roots: &Roots, path: &Path) -> Option<PathBuf> {
    const ENTRIES: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];
    let (mut folder, rest) = roots.start(path).ok()??;
    for name in rest {
        let present = ENTRIES.iter().map(OsStr::new);
        let present = present.filter(|entry| folder.dir().symlink_metadata(entry).is_ok());
        if is_git_directory(present.chain([name])) {
            return Some(folder.path().to_owned());
        }
        // What is missing from here on has one entry at most, which makes no repository.
        folder = folder.child(name).ok()?;
    }
    None
}
