//! Workspace files for other crates: opened for reading, or created without replacing anything. Both use the handles
//! and the policy of the file tools.

use super::Workspace;
use crate::file_error::FileError;
use crate::target_path::TargetPath;
use cap_std::fs::OpenOptions;
use lango_core::ToolError;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Number of names to try for a new file.
const MAX_NAMES: usize = 100;

/// A file or folder of the workspace.
#[derive(Debug)]
pub enum WorkspaceEntry {
    /// A regular file, opened for reading.
    File {
        file: File,
        /// Size in bytes.
        size: u64,
        /// Path without links, relative to the workspace if it lies there.
        path: PathBuf,
    },
    Folder,
}

impl Workspace {
    /// Opens the entry at a path relative to the workspace. Files that the policy hides are not found.
    pub fn open_entry(&self, path: &str) -> Result<WorkspaceEntry, ToolError> {
        let target = self.locate(path)?.target()?;
        match target.open_file() {
            Ok((file, size)) => Ok(WorkspaceEntry::File {
                file: file.into_std(),
                size,
                path: self.roots.shorten(&target.path()).to_owned(),
            }),
            Err(FileError::IsFolder { .. }) => Ok(WorkspaceEntry::Folder),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a file in a folder of the workspace and fills it. Adds a number to the name if it is taken. Returns the
    /// path relative to the workspace. Fails for a name that other programs act on.
    pub fn save_new(
        &self,
        folder: &str,
        name: &str,
        content: &mut dyn Read,
    ) -> Result<String, ToolError> {
        for number in 1..=MAX_NAMES {
            let path = format!("{folder}/{}", numbered(name, number));
            let mut target = self.locate(&path)?.file_destination()?;
            if target.guarded().is_some() {
                return Err(FileError::Reserved { path }.into());
            }
            target.create_parents()?;
            match fill_new(&target, content) {
                Ok(true) => return Ok(path),
                Ok(false) => {}
                Err(cause) => {
                    return Err(FileError::NotWritten { path, cause }.into());
                }
            }
        }
        let path = format!("{folder}/{name}");
        Err(FileError::Occupied { path }.into())
    }
}

/// Creates and fills a file; returns `false` if the name is taken.
fn fill_new(target: &TargetPath<'_>, content: &mut dyn Read) -> io::Result<bool> {
    let Some((folder, name)) = target.parent_and_name() else {
        return Ok(false);
    };
    let options = OpenOptions::new().write(true).create_new(true).clone();
    let mut file = match folder.dir().open_with(name, &options) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(error),
    };
    let filled = io::copy(content, &mut file).and_then(|_| file.flush());
    if filled.is_err() {
        // The write error is the one to report.
        let _ = folder.dir().remove_file(name);
    }
    filled.map(|()| true)
}

/// `report.pdf`, `report-2.pdf`, `report-3.pdf`.
fn numbered(name: &str, number: usize) -> String {
    if number == 1 {
        return name.to_owned();
    }
    let path = Path::new(name);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    match path.extension() {
        Some(extension) => format!("{stem}-{number}.{}", extension.to_string_lossy()),
        None => format!("{stem}-{number}"),
    }
}
