//! Uploads: a file of the workspace is copied into the browser's private directory, which is all that the browser can
//! read, and given to the page from there.

use crate::downloads::safe_name;
use lango_core::ToolError;
use lango_tools::{Workspace, WorkspaceEntry};
use std::fs::{DirBuilder, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The largest upload in bytes.
const MOST_BYTES: u64 = 100 << 20;

/// Copies a file, under its own name in a folder of its own.
pub(crate) fn stage(
    workspace: &Workspace,
    path: &str,
    directory: &Path,
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
        let folder = directory.join(folder);
        DirBuilder::new().mode(0o700).create(&folder)?;
        let target = folder.join(&name);
        let mut created = File::create_new(&target)?;
        io::copy(&mut file.take(MOST_BYTES), &mut created)?;
        Ok(target)
    };
    copy().map_err(|error| ToolError::new(format!("`{path}` was not copied: {error}")))
}
