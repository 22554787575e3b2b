//! Finds the files at a path: the file itself, or all files below a folder.
//!
//! It does not follow links, and leaves out hidden files and those in `.gitignore`. Paths are canonical, so that each
//! file has only one name.

use super::SkippedFile;
use ignore::WalkBuilder;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of files below a folder.
const MAX_FILES: usize = 200_000;

/// The files at a path.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// The canonical path.
    pub root: String,
    /// The files, sorted.
    pub files: Vec<String>,
    /// The skipped files, each with the reason.
    pub skipped: Vec<SkippedFile>,
    /// Whether all existing files were found. If so, any other file no longer exists.
    pub is_complete: bool,
}

/// Finds the files at a path. A path that does not exist has none.
pub(super) fn walk(path: &Path) -> io::Result<Walk> {
    let Some(root) = real(path)? else {
        return Ok(Walk {
            root: name_of(&std::path::absolute(path)?)?,
            is_complete: true,
            ..Walk::default()
        });
    };
    let mut walk = Walk {
        root: name_of(&root)?,
        is_complete: true,
        ..Walk::default()
    };
    if root.is_file() {
        walk.files.push(walk.root.clone());
        return Ok(walk);
    }
    for entry in WalkBuilder::new(&root)
        .follow_links(false)
        .require_git(false)
        .git_global(false)
        .build()
    {
        match entry {
            Ok(entry) => walk.add(&entry),
            Err(error) => {
                walk.is_complete = false;
                walk.skip(String::new(), error.to_string());
            }
        }
        if walk.files.len() == MAX_FILES {
            walk.is_complete = false;
            walk.skip(
                walk.root.clone(),
                format!("only {MAX_FILES} of its files were read"),
            );
            break;
        }
    }
    walk.files.sort();
    Ok(walk)
}

impl Walk {
    fn add(&mut self, entry: &ignore::DirEntry) {
        let Some(kind) = entry.file_type() else {
            return;
        };
        if kind.is_symlink() {
            self.skip(
                entry.path().to_string_lossy().into_owned(),
                "it is a link".to_owned(),
            );
        } else if kind.is_file() {
            match name_of(entry.path()) {
                Ok(name) => self.files.push(name),
                Err(error) => {
                    let name = entry.path().to_string_lossy().into_owned();
                    self.skip(name, error.to_string());
                }
            }
        }
    }

    fn skip(&mut self, source: String, reason: String) {
        self.skipped.push(SkippedFile { source, reason });
    }
}

/// Resolves links in a path; `None` if it does not exist.
fn real(path: &Path) -> io::Result<Option<PathBuf>> {
    match path.canonicalize() {
        Ok(real) => Ok(Some(real)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn name_of(path: &Path) -> io::Result<String> {
    let name = path
        .to_str()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "its name is not UTF-8"))?;
    Ok(name.to_owned())
}
