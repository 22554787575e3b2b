//! Uploads: a file of the workspace is copied into the browser's private directory, which is all that the browser can
//! read, and given to the page from there.

use crate::downloads::safe_name;
use lango_core::ToolError;
use lango_tools::{Workspace, WorkspaceEntry};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The largest upload in bytes.
const MOST_BYTES: u64 = 100 << 20;

/// Copies a file, under its own name in a folder of its own, and says where it is below the directory. The browser may be
/// taken over by a page and rename what is there: everything is created relative to open handles.
pub(crate) fn stage(
    workspace: &Workspace,
    path: &str,
    directory: &OwnedFd,
) -> Result<PathBuf, ToolError> {
    let (file, size) = match workspace.open_entry(path)? {
        WorkspaceEntry::File { file, size } => (file, size),
        WorkspaceEntry::Folder => {
            let text = format!("`{path}` is a folder; only files can be uploaded");
            return Err(ToolError::new(text));
        }
    };
    if size > MOST_BYTES {
        let text = format!("`{path}` is larger than 100 MiB, the most that can be uploaded");
        return Err(ToolError::new(text));
    }
    let name = Path::new(path).file_name().unwrap_or_default();
    let name = safe_name(&name.to_string_lossy());
    let copy = || -> io::Result<PathBuf> {
        let folder = format!("{:016x}", RandomState::new().hash_one(path));
        rustix::fs::mkdirat(directory, &folder, Mode::RWXU)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(directory, &folder, flags, Mode::empty())?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let created = rustix::fs::openat(&opened, &name, flags, Mode::RUSR | Mode::WUSR)?;
        let mut created = File::from(created);
        io::copy(&mut file.take(MOST_BYTES), &mut created)?;
        Ok(Path::new(&folder).join(&name))
    };
    copy().map_err(|error| ToolError::new(format!("`{path}` was not copied: {error}")))
}

#[cfg(test)]
mod tests {
    use crate::launch::PrivateDirectory;

    #[test]
    fn a_link_in_place_of_the_browsers_folders_leads_nowhere() {
        let parent = tempfile::tempdir().unwrap();
        let private = PrivateDirectory::create(parent.path()).unwrap();
        let outside = tempfile::tempdir().unwrap();
        for folder in [private.uploads(), private.downloads()] {
            std::fs::rename(&folder, folder.with_extension("moved")).unwrap();
            std::os::unix::fs::symlink(outside.path(), &folder).unwrap();
        }
        let workspace = tempfile::tempdir().unwrap();
        std::fs::write(workspace.path().join("a.txt"), "a").unwrap();
        let policy = lango_sandbox::Policy::of(workspace.path().canonicalize().unwrap());
        let workspace = lango_tools::Workspace::open(policy).unwrap();
        let staged = super::stage(&workspace, "a.txt", &private.uploads_handle()).unwrap();
        assert_eq!(outside.path().read_dir().unwrap().count(), 0);
        let moved = private.uploads().with_extension("moved").join(staged);
        assert_eq!(std::fs::read_to_string(moved).unwrap(), "a");
    }
}
