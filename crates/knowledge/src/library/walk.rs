//! The files that a path stands for: itself, or all below a folder.
//!
//! Links are not followed, hidden files and what `.gitignore` names are left out. A path is stored as the system names
//! it, so that the same file has one name however it was given.

use super::Skipped;
use ignore::WalkBuilder;
use std::io;
use std::path::{Path, PathBuf};

/// How many files one folder stands for at most.
const MOST_FILES: usize = 200_000;

/// What a path stands for.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Its name.
    pub root: String,
    /// The files, sorted.
    pub files: Vec<String>,
    /// What is left out, with the reason.
    pub skipped: Vec<Skipped>,
    /// Whether all files that there are were seen, so that the others are gone.
    pub is_whole: bool,
}

/// The files of a path. One that is gone has none.
pub(super) fn walk(path: &Path) -> io::Result<Walk> {
    let Some(root) = real(path)? else {
        return Ok(Walk {
            root: name_of(&std::path::absolute(path)?)?,
            is_whole: true,
            ..Walk::default()
        });
    };
    let mut walk = Walk {
        root: name_of(&root)?,
        is_whole: true,
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
                walk.is_whole = false;
                walk.skip(String::new(), error.to_string());
            }
        }
        if walk.files.len() == MOST_FILES {
            walk.is_whole = false;
            walk.skip(
                walk.root.clone(),
                format!("only {MOST_FILES} files of it are read"),
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
        self.skipped.push(Skipped { source, reason });
    }
}

/// The path without links, or nothing if it is gone.
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
