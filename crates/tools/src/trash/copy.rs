//! Copies of files and folders on another file system. A copy knows what was copied, so that nothing else is removed
//! afterwards. Links are copied as links. Until it is complete, a copy is private; then it gets the owner, the permissions
//! and the extended attributes of the original, as far as nobody gains access.

use super::transfer::{Location, TransferError};
use crate::attributes::{Attributes, carry_over};
use crate::entry_kind::EntryKind;
use crate::folder::open_regular;
use crate::replace::reopen_folder;
use crate::tree::MAX_DEPTH;
use cap_fs_ext::DirExt;
use cap_std::fs::{
    Dir, DirBuilder, DirBuilderExt, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt,
};
use rustix::fs::{AtFlags, Gid, Uid, chownat};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// What was copied.
#[derive(Debug)]
pub(super) enum Copied {
    File { size: u64, hash: [u8; 32] },
    Link(PathBuf),
    Folder(BTreeMap<OsString, Copied>),
}

impl Copied {
    /// Copies `from` to `to`, which must not exist; at most `left` bytes, which it reduces.
    pub(super) fn copy(
        from: Location<'_>,
        to: Location<'_>,
        left: &mut u64,
    ) -> Result<Self, TransferError> {
        copy(from, to, left, 1)
    }

    /// Whether `place` is what was copied, and nothing else.
    pub(super) fn is_at(&self, place: Location<'_>) -> io::Result<bool> {
        let (folder, name) = place;
        match self {
            Self::File { size, hash } => {
                let (file, _) = open_regular(folder, name)?;
                let found = read_through(&file, &mut io::sink(), *size)?;
                Ok(found == Some((*size, *hash)))
            }
            Self::Link(target) => Ok(folder.read_link_contents(name)? == *target),
            Self::Folder(entries) => {
                let folder = folder.open_dir_nofollow(name)?;
                if folder.entries()?.count() != entries.len() {
                    return Ok(false);
                }
                for (name, copied) in entries {
                    if !copied.is_at((&folder, name))? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    /// Removes what was copied. Fails for a folder in which something else is.
    pub(super) fn remove(&self, place: Location<'_>) -> io::Result<()> {
        let (folder, name) = place;
        let Self::Folder(entries) = self else {
            return folder.remove_file(name);
        };
        let inner = folder.open_dir_nofollow(name)?;
        for (name, copied) in entries {
            copied.remove((&inner, name))?;
        }
        folder.remove_dir(name)
    }
}

fn copy(
    from: Location<'_>,
    to: Location<'_>,
    left: &mut u64,
    depth: usize,
) -> Result<Copied, TransferError> {
    let metadata = from.0.symlink_metadata(from.1)?;
    match EntryKind::from(metadata.file_type()) {
        EntryKind::File => copy_file(from, to, left),
        EntryKind::Folder if depth > MAX_DEPTH => Err(TransferError::TooLarge),
        EntryKind::Folder => {
            to.0.create_dir_with(to.1, DirBuilder::new().mode(0o700))?;
            let source = from.0.open_dir_nofollow(from.1)?;
            let copied = to.0.open_dir_nofollow(to.1)?;
            let mut entries = BTreeMap::new();
            for entry in source.entries()? {
                let name = entry?.file_name();
                let entry = copy((&source, &name), (&copied, &name), left, depth + 1)?;
                entries.insert(name, entry);
            }
            let copied = reopen_folder(&copied)?;
            complete(&reopen_folder(&source)?, copied, &metadata)?;
            Ok(Copied::Folder(entries))
        }
        EntryKind::Link => {
            let target = from.0.read_link_contents(from.1)?;
            to.0.symlink_contents(&target, to.1)?;
            let owner = (Uid::from_raw(metadata.uid()), Gid::from_raw(metadata.gid()));
            // Nobody gains access by a link.
            let _ = chownat(
                to.0,
                to.1,
                Some(owner.0),
                Some(owner.1),
                AtFlags::SYMLINK_NOFOLLOW,
            );
            Ok(Copied::Link(target))
        }
        EntryKind::NamedPipe | EntryKind::Socket | EntryKind::Device | EntryKind::Other => {
            Err(TransferError::Special)
        }
    }
}

fn copy_file(
    from: Location<'_>,
    to: Location<'_>,
    left: &mut u64,
) -> Result<Copied, TransferError> {
    let (source, metadata) = open_regular(from.0, from.1)?;
    if metadata.len() > *left {
        return Err(TransferError::TooLarge);
    }
    let mut copied = create_private(to.0, to.1)?;
    let read = read_through(&source, &mut copied, *left)?;
    let (size, hash) = read.ok_or(TransferError::TooLarge)?;
    *left -= size;
    complete(&source, copied, &metadata)?;
    Ok(Copied::File { size, hash })
}

/// Gives a complete copy of a file or folder the attributes of its source, and waits until it is on the disk.
fn complete(source: &File, copied: File, metadata: &Metadata) -> io::Result<()> {
    let copied = copied.into_std();
    // Some file systems do not store the time.
    if let Ok(modified) = metadata.modified() {
        copied.set_modified(modified.into_std())?;
    }
    let copied = File::from_std(copied);
    carry_over(source, &copied, Attributes::from(metadata).mode)?;
    copied.sync_all()
}

fn create_private(folder: &Dir, name: &OsStr) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    folder.open_with(name, &options)
}

/// Copies a whole file to `to` and returns its size and hash; `None` if it is larger than `limit`.
fn read_through(
    file: &File,
    to: &mut impl Write,
    limit: u64,
) -> io::Result<Option<(u64, [u8; 32])>> {
    let (mut hasher, mut size) = (Sha256::new(), 0);
    let mut file = file.take(limit.saturating_add(1));
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
        size += read as u64;
    }
    Ok((size <= limit).then(|| (size, hasher.finalize().into())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;
    use cap_std::fs::{Permissions, PermissionsExt};

    #[test]
    fn a_copy_is_private_until_it_is_complete() {
        let path = tempfile::tempdir().unwrap();
        let folder = Dir::open_ambient_dir(path.path(), ambient_authority()).unwrap();
        let mode = |name: &str| folder.metadata(name).unwrap().permissions().mode() & 0o777;
        create_private(&folder, "file".as_ref()).unwrap();
        assert_eq!(mode("file"), 0o600);
        folder.create_dir("from").unwrap();
        folder.write("from/a", "too large").unwrap();
        folder
            .set_permissions("from", Permissions::from_mode(0o755))
            .unwrap();
        let (from, to) = ((&folder, "from".as_ref()), (&folder, "to".as_ref()));
        // As if the copy of the folder had not come to its end yet.
        let failed = Copied::copy(from, to, &mut 1);
        assert!(matches!(failed, Err(TransferError::TooLarge)));
        assert_eq!(mode("to"), 0o700);
        folder.remove_dir("to").unwrap();
        Copied::copy(from, to, &mut 9).unwrap();
        assert_eq!((mode("to"), mode("to/a")), (0o755, mode("from/a")));
    }
}
