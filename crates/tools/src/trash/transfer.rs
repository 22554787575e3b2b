//! Moves a file or folder from one folder to another and never overwrites anything.
//!
//! Within one file system this is a single rename. Otherwise everything is copied, up to a limit, under another name. When
//! the copy is complete, it gets its name, and the source is removed if both are what was copied.

use super::copy::Copied;
use crate::entry_kind::EntryKind;
use crate::replace::{rename_without_replacing, sync_folder, temporary_name};
use cap_std::fs::Dir;
use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;

/// Number of attempts to remove a folder from which another process is removing entries.
const MAX_REMOVALS: usize = 1000;

/// A name in a folder.
pub(super) type Location<'a> = (&'a Dir, &'a OsStr);

/// Who may change the source while it is copied.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// Only lango, because it is in a private folder.
    Private,
    /// Other programs.
    Shared,
}

/// Why a move failed, or left a part of the source behind.
#[derive(Debug)]
pub(super) enum TransferError {
    /// The destination exists.
    Occupied,
    /// The source is larger than the limit for copies, or nested too deeply.
    TooLarge,
    /// The source is or contains a special file, which cannot be copied.
    Special,
    /// The source changed while it was copied. It is as it was.
    Changed,
    /// The source changed while it was copied, and is now under this name because its own was taken again.
    Moved(String),
    /// The copy changed or was removed before the source was. The source is as it was.
    CopyChanged,
    /// The source was copied, but at least a part of it could not be removed.
    NotRemoved(io::Error),
    Failed(io::Error),
}

impl From<io::Error> for TransferError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AlreadyExists => Self::Occupied,
            _ => Self::Failed(error),
        }
    }
}

/// Moves `from` to `to`; copies at most `limit` bytes if a rename is impossible.
pub(super) fn transfer(
    (from, source): (Location<'_>, Source),
    to: Location<'_>,
    limit: u64,
) -> Result<(), TransferError> {
    match renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // Another file system, or one that does not support NOREPLACE.
        Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS) => {
            copy_and_remove((from, source), to, limit)
        }
        Err(error) => Err(io::Error::from(error).into()),
    }
}

/// Removes a file, or a folder with its contents. Does not follow links. Another process may be removing it too.
pub(super) fn remove(folder: &Dir, name: &OsStr) -> io::Result<()> {
    let remove = || match EntryKind::from(folder.symlink_metadata(name)?.file_type()) {
        EntryKind::Folder => folder.remove_dir_all(name),
        _ => folder.remove_file(name),
    };
    for _ in 0..MAX_REMOVALS {
        match remove() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if is_missing(folder, name) {
                    return Ok(());
                }
            }
            removed => return removed,
        }
    }
    remove()
}

fn is_missing(folder: &Dir, name: &OsStr) -> bool {
    let found = folder.symlink_metadata(name);
    found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn copy_and_remove(
    (from, source): (Location<'_>, Source),
    to: Location<'_>,
    limit: u64,
) -> Result<(), TransferError> {
    if to.0.symlink_metadata(to.1).is_ok() {
        return Err(TransferError::Occupied);
    }
    let temporary = temporary_name();
    let temporary = (to.0, OsStr::new(&temporary));
    let mut left = limit;
    let copied = Copied::copy(from, temporary, &mut left).and_then(|copied| {
        rename_new(temporary, to.1)?;
        sync_folder(to.0)?;
        Ok(copied)
    });
    let copied = copied.inspect_err(|_| {
        // The copy error is the one to report.
        let _ = remove(temporary.0, temporary.1);
    })?;
    match source {
        Source::Private => remove(from.0, from.1).map_err(TransferError::NotRemoved),
        Source::Shared => take_away(from, to, &copied).inspect_err(|error| {
            if !matches!(error, TransferError::NotRemoved(_)) {
                // That error is the one to report.
                let _ = remove(to.0, to.1);
            }
        }),
    }
}

/// Removes the source if it and the copy are what was copied: moves it to another name first, and back if they are not.
fn take_away(from: Location<'_>, copy: Location<'_>, copied: &Copied) -> Result<(), TransferError> {
    let name = temporary_name();
    let hidden = (from.0, OsStr::new(&name));
    rename_new(from, hidden.1).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => TransferError::Changed,
        _ => TransferError::Failed(error),
    })?;
    let put_back = |error| match rename_new(hidden, from.1) {
        Ok(()) => Err(error),
        Err(_) => Err(TransferError::Moved(name.clone())),
    };
    if !copied.is_at(hidden).unwrap_or_default() {
        return put_back(TransferError::Changed);
    }
    // Another process may have emptied the trash meanwhile.
    if !copied.is_at(copy).unwrap_or_default() {
        return put_back(TransferError::CopyChanged);
    }
    copied.remove(hidden).map_err(|cause| {
        TransferError::NotRemoved(match rename_new(hidden, from.1) {
            Ok(()) => cause,
            Err(_) => io::Error::other(format!("{cause}; the rest is now named `{name}`")),
        })
    })
}

/// Renames an entry of a folder. Fails if the new name is taken.
fn rename_new(from: Location<'_>, to: &OsStr) -> io::Result<()> {
    let (folder, name) = from;
    if rename_without_replacing(folder, name, to)? {
        return Ok(());
    }
    // The file system cannot do that, so this look is the last one.
    match folder.symlink_metadata(to) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => folder.rename(name, folder, to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;

    /// Changes the source, which is `data`.
    type Change = fn(&Dir);

    fn source() -> (tempfile::TempDir, Dir) {
        let path = tempfile::tempdir().unwrap();
        let folder = Dir::open_ambient_dir(path.path(), ambient_authority()).unwrap();
        folder.create_dir_all("data/sub").unwrap();
        folder.write("data/a", "a").unwrap();
        folder.write("data/sub/b", "b").unwrap();
        folder.symlink_contents("a", "data/link").unwrap();
        (path, folder)
    }

    fn names(folder: &Dir) -> Vec<String> {
        let entries = folder.entries().unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_source_that_is_what_was_copied_is_removed() {
        let (_path, folder) = source();
        let (from, to) = ((&folder, "data".as_ref()), (&folder, "to".as_ref()));
        copy_and_remove((from, Source::Shared), to, 100).unwrap();
        assert_eq!(names(&folder), ["to"]);
        assert_eq!(folder.read_to_string("to/sub/b").unwrap(), "b");
        assert_eq!(
            folder.read_link("to/link").unwrap(),
            std::path::Path::new("a")
        );
    }

    #[test]
    fn a_source_that_changed_after_it_was_copied_is_preserved() {
        let changes: [(&str, Change); 7] = [
            ("other content of the same size", |folder| {
                folder.write("data/sub/b", "B").unwrap();
            }),
            ("a longer file", |folder| {
                folder.write("data/a", "a and more").unwrap();
            }),
            ("a new file", |folder| {
                folder.write("data/sub/new", "").unwrap();
            }),
            ("a removed file", |folder| {
                folder.remove_file("data/a").unwrap();
            }),
            ("another target of a link", |folder| {
                folder.remove_file("data/link").unwrap();
                folder.symlink_contents("sub", "data/link").unwrap();
            }),
            ("a folder instead of a file", |folder| {
                folder.remove_file("data/a").unwrap();
                folder.create_dir("data/a").unwrap();
            }),
            ("a file instead of everything", |folder| {
                folder.remove_dir_all("data").unwrap();
                folder.write("data", "mine").unwrap();
            }),
        ];
        for (name, change) in changes {
            let (path, folder) = source();
            let (from, to) = ((&folder, "data".as_ref()), (&folder, "to".as_ref()));
            let copied = Copied::copy(from, to, &mut 100).unwrap();
            change(&folder);
            let tree = || {
                let data = std::fs::read_dir(path.path().join("data"));
                data.map_or(0, |entries| entries.count())
            };
            let before = tree();
            let error = take_away(from, to, &copied).expect_err(name);
            assert!(matches!(error, TransferError::Changed), "{name}: {error:?}");
            assert_eq!(names(&folder), ["data", "to"], "{name}");
            assert_eq!(tree(), before, "{name}");
        }
    }

    #[test]
    fn a_source_whose_copy_is_no_longer_complete_is_preserved() {
        let changes: [(&str, Change); 3] = [
            ("a removed file", |folder| {
                folder.remove_file("to/sub/b").unwrap();
            }),
            ("other content", |folder| {
                folder.write("to/a", "A").unwrap();
            }),
            ("a removed copy", |folder| {
                folder.remove_dir_all("to").unwrap();
            }),
        ];
        for (name, change) in changes {
            let (_path, folder) = source();
            let (from, to) = ((&folder, "data".as_ref()), (&folder, "to".as_ref()));
            let copied = Copied::copy(from, to, &mut 100).unwrap();
            change(&folder);
            let error = take_away(from, to, &copied).expect_err(name);
            assert!(
                matches!(error, TransferError::CopyChanged),
                "{name}: {error:?}"
            );
            assert!(copied.is_at(from).unwrap(), "{name}");
        }
    }

    #[test]
    fn an_entry_that_appears_while_the_source_is_removed_is_preserved() {
        let (_path, folder) = source();
        let (from, to) = ((&folder, "data".as_ref()), (&folder, "to".as_ref()));
        let copied = Copied::copy(from, to, &mut 100).unwrap();
        folder.write("data/sub/new", "mine").unwrap();
        copied.remove(from).unwrap_err();
        assert_eq!(folder.read_to_string("data/sub/new").unwrap(), "mine");
    }

    #[test]
    fn a_copy_that_fails_leaves_nothing_under_its_name() {
        let (_path, folder) = source();
        let (from, to) = ((&folder, "data".as_ref()), (&folder, "to".as_ref()));
        let failed = copy_and_remove((from, Source::Shared), to, 1);
        assert!(matches!(failed, Err(TransferError::TooLarge)));
        assert_eq!(names(&folder), ["data"]);
    }
}
