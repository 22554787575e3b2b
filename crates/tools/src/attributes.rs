//! The owner, the permissions and the extended attributes of a file, which carry over when it is replaced or copied.
//!
//! Nobody may gain access this way: what depends on a group or an access control list that cannot be set is left out.

use cap_std::fs::{Dir, File, Metadata, MetadataExt, Permissions, PermissionsExt};
use rustix::fs::{Gid, Uid, XattrFlags, fchown, fgetxattr, flistxattr, fremovexattr, fsetxattr};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;

/// The permission bits that carry over. Bits such as setuid do not: they were given to the old content.
const MODE_BITS: u32 = 0o777;

/// The permission bits of the owner.
const OWNER_BITS: u32 = 0o700;

/// The start of the names of the access control lists that can be removed.
const POSIX_LIST: &[u8] = b"system.posix_acl_";

/// Maximum size of the names of the extended attributes of a file, and of the value of one. Linux allows no more.
const MAX_ATTRIBUTE_BYTES: usize = 64 << 10;

/// The owner and the permissions of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) user: u32,
    pub(crate) group: u32,
    pub(crate) mode: u32,
}

impl Attributes {
    /// Reads the attributes of an entry, without following a link.
    pub(crate) fn of(folder: &Dir, name: &OsStr) -> io::Result<Self> {
        Ok(Self::from(&folder.symlink_metadata(name)?))
    }
}

impl From<&Metadata> for Attributes {
    fn from(metadata: &Metadata) -> Self {
        Self {
            user: metadata.uid(),
            group: metadata.gid(),
            mode: metadata.permissions().mode() & MODE_BITS,
        }
    }
}

/// Gives `to`, which must be private, the owner and the extended attributes of `from`, then this mode. `to` stays private if
/// the group or an extended attribute cannot be set. Both are files, or both are folders.
pub(crate) fn carry_over(from: &File, to: &File, mode: u32) -> io::Result<()> {
    let has_group = carry_owner(from, to)?;
    carry_access((from, to), mode, has_group)
}

/// Carries over what depends on whether `to` has the group of `from`.
fn carry_access((from, to): (&File, &File), mode: u32, has_group: bool) -> io::Result<()> {
    let has_attributes = carry_extended(from, to, has_group).is_ok();
    let mode = if has_group && has_attributes {
        mode
    } else {
        mode & OWNER_BITS
    };
    to.set_permissions(Permissions::from_mode(mode))
}

/// Gives `to` the user and the group of `from`, or only the group. Returns whether it has the group.
fn carry_owner(from: &File, to: &File) -> io::Result<bool> {
    let (old, new) = (from.metadata()?, to.metadata()?);
    if (old.uid(), old.gid()) == (new.uid(), new.gid()) {
        return Ok(true);
    }
    let (user, group) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
    let has_group = fchown(to, Some(user), Some(group)).is_ok()
        || old.gid() == new.gid()
        || fchown(to, None, Some(group)).is_ok();
    Ok(has_group)
}

/// Gives `to` the extended attributes of `from`, and no access control list that it does not have: a new file inherits one
/// from its folder. Without the same group, an access control list is left out.
fn carry_extended(from: &File, to: &File, has_group: bool) -> io::Result<()> {
    let names = carried_names(from)?;
    let is_access = |name: &OsString| name.as_encoded_bytes().starts_with(b"system.");
    for name in carried_names(to)? {
        let is_list = name.as_encoded_bytes().starts_with(POSIX_LIST);
        if is_list && !(has_group && names.contains(&name)) {
            fremovexattr(to, &name)?;
        }
    }
    let mut value = vec![0; MAX_ATTRIBUTE_BYTES];
    for name in names.iter().filter(|name| has_group || !is_access(name)) {
        let size = fgetxattr(from, name, value.as_mut_slice())?;
        fsetxattr(to, name, &value[..size], XattrFlags::empty())?;
    }
    Ok(())
}

/// Returns the names of the extended attributes that carry over: access control lists, and what users set. Others, such as
/// capabilities, were given to the old content.
fn carried_names(file: impl AsFd) -> io::Result<Vec<OsString>> {
    let mut names = vec![0; MAX_ATTRIBUTE_BYTES];
    let size = match flistxattr(file, names.as_mut_slice()) {
        Ok(size) => size,
        // The file system has none.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => 0,
        Err(error) => return Err(error.into()),
    };
    let is_carried = |name: &&[u8]| name.starts_with(b"user.") || name.starts_with(b"system.");
    let names = names[..size].split(|byte| *byte == 0).filter(is_carried);
    Ok(names
        .map(|name| OsString::from_vec(name.to_vec()))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;
    use cap_std::fs::OpenOptions;

    const ACCESS_LIST: &str = "system.posix_acl_access";

    /// Grants the user 1234 to read and write, and nothing to the group.
    fn access_list() -> Vec<u8> {
        let entries: [(u16, u16, u32); 5] = [
            (0x01, 6, u32::MAX),
            (0x02, 6, 1234),
            (0x04, 0, u32::MAX),
            (0x10, 6, u32::MAX),
            (0x20, 0, u32::MAX),
        ];
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, permissions, id) in entries {
            list.extend(tag.to_le_bytes());
            list.extend(permissions.to_le_bytes());
            list.extend(id.to_le_bytes());
        }
        list
    }

    /// Sets an extended attribute. Returns `false` if the file system has none.
    fn set(file: &File, name: &str, value: &[u8]) -> bool {
        match fsetxattr(file, name, value, XattrFlags::empty()) {
            Ok(()) => true,
            Err(Errno::OPNOTSUPP) => false,
            Err(error) => panic!("{name}: {error}"),
        }
    }

    fn value(file: &File, name: &str) -> Option<Vec<u8>> {
        let mut value = vec![0; 1024];
        let size = fgetxattr(file, name, value.as_mut_slice()).ok()?;
        Some(value[..size].to_vec())
    }

    fn attributes(file: &File) -> Attributes {
        Attributes::from(&file.metadata().unwrap())
    }

    /// Creates the files `old`, with this mode, and `new`, which is private.
    fn files(mode: u32) -> (tempfile::TempDir, File, File) {
        let path = tempfile::tempdir().unwrap();
        let folder = Dir::open_ambient_dir(path.path(), ambient_authority()).unwrap();
        let options = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .clone();
        let create = |name: &str, mode: u32| {
            let file = folder.open_with(name, &options).unwrap();
            file.set_permissions(Permissions::from_mode(mode)).unwrap();
            file
        };
        let (old, new) = (create("old", mode), create("new", 0o600));
        (path, old, new)
    }

    #[test]
    fn the_owner_and_the_permissions_carry_over() {
        let (_path, old, new) = files(0o640);
        let is_root = old.metadata().unwrap().uid() == 0;
        let (user, group) = (Uid::from_raw(1000), Gid::from_raw(1001));
        assert_eq!(fchown(&old, Some(user), Some(group)).is_ok(), is_root);
        carry_over(&old, &new, 0o640).unwrap();
        assert_eq!(attributes(&new), attributes(&old));
    }

    #[test]
    fn access_control_lists_and_attributes_of_users_carry_over() {
        let (_path, old, new) = files(0o600);
        set(&old, "user.test", b"mine");
        let has_list = set(&old, ACCESS_LIST, &access_list());
        let mode = if has_list { 0o660 } else { 0o600 };
        assert_eq!(attributes(&old).mode, mode, "the mask");
        carry_over(&old, &new, attributes(&old).mode).unwrap();
        for name in ["user.test", ACCESS_LIST] {
            assert_eq!(value(&new, name), value(&old, name), "{name}");
        }
        assert_eq!(attributes(&new), attributes(&old));
    }

    #[test]
    fn a_file_that_cannot_get_the_group_stays_private() {
        let (_path, old, new) = files(0o600);
        set(&old, "user.test", b"mine");
        set(&old, ACCESS_LIST, &access_list());
        carry_access((&old, &new), 0o664, false).unwrap();
        assert_eq!(attributes(&new).mode, 0o600);
        assert_eq!(value(&new, "user.test"), value(&old, "user.test"));
        assert_eq!(value(&new, ACCESS_LIST), None);
    }

    #[test]
    fn an_access_control_list_that_only_the_new_file_has_is_removed() {
        let (_path, old, new) = files(0o640);
        set(&new, ACCESS_LIST, &access_list());
        carry_over(&old, &new, 0o640).unwrap();
        assert_eq!(value(&new, ACCESS_LIST), None);
        assert_eq!(attributes(&new).mode, 0o640);
    }
}
