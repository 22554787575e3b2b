//! What a folder holds down to its last file, and whether all of it may be changed.

use crate::folder::Folder;
use crate::guard::is_git_directory;
use crate::kind::Kind;
use crate::show;
use lango_sandbox::Access;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// How many entries are looked at.
pub(crate) const MOST_ENTRIES: u64 = 100_000;

/// How many folders lie within each other; each is a handle that is open.
pub(crate) const DEEPEST: usize = 128;

/// How many entries are named where not all are.
pub(crate) const NAMED: usize = 10;

/// What there is.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Files, links and whatever else is no folder.
    pub(crate) files: u64,
    pub(crate) folders: u64,
    pub(crate) bytes: u64,
    /// The first entries, folders with a slash.
    pub(crate) first: Vec<String>,
    /// The first entry that other programs act on, relative to the folder.
    pub(crate) guarded: Option<PathBuf>,
    /// How many entries are named.
    named: usize,
}

/// Why a folder is better left alone.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Obstacle {
    #[error("it holds `{path}`, which is kept as it is; delete other entries one by one")]
    Kept { path: String },
    #[error("it holds something that is not yours to see; delete other entries one by one")]
    Hidden,
    #[error("it holds more than {MOST_ENTRIES} entries; delete folders in it one by one")]
    TooMany,
    #[error("it holds more than {DEEPEST} folders within each other; delete the innermost first")]
    TooDeep,
    #[error("it cannot be looked through: {0}")]
    Failed(#[from] io::Error),
}

impl Contents {
    /// A single file or link.
    pub(crate) fn of_file(bytes: u64) -> Self {
        Self {
            files: 1,
            bytes,
            ..Self::default()
        }
    }

    /// Looks through a folder and names some entries; the first thing in it that may not be changed ends it.
    pub(crate) fn of_folder(folder: &Folder<'_>, named: usize) -> Result<Self, Obstacle> {
        let mut contents = Self {
            named,
            ..Self::default()
        };
        contents.add(folder, Path::new(""), 1)?;
        Ok(contents)
    }

    /// `3 files, 1 folder, 4.2 KB`.
    pub(crate) fn summary(&self) -> String {
        let mut parts = vec![show::count(self.files, "file")];
        if self.folders > 0 {
            parts.push(show::count(self.folders, "folder"));
        }
        parts.push(show::size(self.bytes));
        parts.join(", ")
    }

    /// How many entries are not among the first.
    pub(crate) fn unnamed(&self) -> u64 {
        (self.files + self.folders).saturating_sub(self.first.len() as u64)
    }

    fn add(&mut self, folder: &Folder<'_>, below: &Path, depth: usize) -> Result<(), Obstacle> {
        if depth > DEEPEST {
            return Err(Obstacle::TooDeep);
        }
        let names = self.names(folder)?;
        if is_git_directory(names.iter().map(OsString::as_os_str)) {
            self.note_guarded(&below.join("HEAD"));
        }
        for name in names {
            let path = below.join(&name);
            match folder.access(&name) {
                Access::Write => {}
                Access::Guarded => self.note_guarded(&path),
                Access::Read => {
                    let path = show::name(path.as_os_str());
                    return Err(Obstacle::Kept { path });
                }
                Access::None => return Err(Obstacle::Hidden),
            }
            let metadata = folder.dir().symlink_metadata(&name)?;
            if Kind::from(metadata.file_type()) == Kind::Folder {
                self.folders += 1;
                self.name(&path, "/");
                self.add(&folder.child(&name)?, &path, depth + 1)?;
            } else {
                self.files += 1;
                self.bytes += metadata.len();
                self.name(&path, "");
            }
        }
        Ok(())
    }

    fn note_guarded(&mut self, path: &Path) {
        self.guarded.get_or_insert_with(|| path.to_owned());
    }

    /// The names in a folder, hidden ones too.
    fn names(&self, folder: &Folder<'_>) -> Result<Vec<OsString>, Obstacle> {
        let mut names = Vec::new();
        for entry in folder.dir().entries()? {
            names.push(entry?.file_name());
            if self.files + self.folders + names.len() as u64 > MOST_ENTRIES {
                return Err(Obstacle::TooMany);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn name(&mut self, path: &Path, end: &str) {
        if self.first.len() < self.named {
            self.first
                .push(format!("{}{end}", show::name(path.as_os_str())));
        }
    }
}
