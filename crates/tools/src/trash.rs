//! Where deleted files go, and come back from.
//!
//! A folder of lango's own. Each thing in it lies under a short id, beside a small JSON file that says what it was.
//! It is moved there in one step where that is possible, and copied otherwise. Bringing something back goes the same
//! confined way as writing it would, and never over something that is there.

mod transfer;

use crate::Workspace;
use crate::file_error::FileError;
use crate::place::Place;
use crate::replace::random_number;
use crate::show;
use crate::spot::Spot;
use crate::tree::Contents;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use lango_core::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use transfer::{Interrupted, transfer};

/// What ids are made of: nothing that is mistaken for something else.
const ID_ALPHABET: &[u8; 30] = b"23456789abcdefghjkmnpqrstvwxyz";

/// How long an id is: of half a billion, two are rarely the same.
const ID_LENGTH: usize = 6;

/// How often an id that is taken is drawn again.
const ATTEMPTS: usize = 8;

/// How much is copied when moving is impossible.
const MOST_COPIED_BYTES: u64 = 1 << 30;

/// Things that were deleted, in a folder of their own. The folder is made when something is first put there.
#[derive(Debug, Clone)]
pub struct Trash {
    folder: PathBuf,
}

/// Something that was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trashed {
    /// Its name in the trash.
    pub id: String,
    /// Where it was, absolute and without links.
    pub path: PathBuf,
    /// How many files it is, folders not counted.
    pub files: u64,
    /// How many bytes they have.
    pub bytes: u64,
    /// When it was deleted.
    pub deleted_at: Timestamp,
}

/// Why something did not get into the trash or out of it.
#[derive(Debug, thiserror::Error)]
pub enum TrashError {
    /// No such id.
    #[error("there is no `{id}` in the trash; see what there is in its list")]
    NotFound {
        /// The id that was given.
        id: String,
    },
    /// Something is where it was.
    #[error("`{}` is there again and is not overwritten; move it away first", path.display())]
    Occupied {
        /// Where it was.
        path: PathBuf,
    },
    /// It may not be put back, or not there.
    #[error("`{}` cannot be restored: {reason}", path.display())]
    Refused {
        /// Where it was.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// It is on another file system, and large.
    #[error(
        "`{}` is on another file system than the trash and has more than {}; ask the person to delete it",
        path.display(),
        show::size(MOST_COPIED_BYTES)
    )]
    TooLarge {
        /// Where it is.
        path: PathBuf,
    },
    /// It is on another file system, and cannot be copied.
    #[error(
        "`{}` is on another file system than the trash and holds a special file, which cannot be copied; \
         ask the person to delete it",
        path.display()
    )]
    NotCopied {
        /// Where it is.
        path: PathBuf,
    },
    /// It was copied and is in the trash, but is also still where it was, at least in part.
    #[error("`{}` is in the trash as `{id}`, but not all of it could be removed: {cause}", path.display())]
    NotRemoved {
        /// Where it is.
        path: PathBuf,
        /// Its name in the trash.
        id: String,
        /// What the operating system says.
        cause: io::Error,
    },
    /// The operating system refuses.
    #[error("the trash `{}` cannot be used: {cause}", folder.display())]
    Failed {
        /// The folder of the trash.
        folder: PathBuf,
        /// What it says.
        cause: io::Error,
    },
}

impl Trash {
    /// The trash in this folder.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// What is in it, the latest first. What cannot be read is left out.
    pub fn list(&self) -> Result<Vec<Trashed>, TrashError> {
        let Some(folder) = self.open_existing()? else {
            return Ok(Vec::new());
        };
        let mut items = Vec::new();
        for entry in folder.entries().map_err(|cause| self.failed(cause))? {
            let name = entry.map_err(|cause| self.failed(cause))?.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".json"));
            items.extend(id.and_then(|id| read_record(&folder, id)));
        }
        items.sort_by(|a, b| (b.deleted_at, &b.id).cmp(&(a.deleted_at, &a.id)));
        Ok(items)
    }

    /// Puts something back where it was, as far as the workspace reaches.
    pub fn restore(&self, workspace: &Workspace, id: &str) -> Result<Trashed, TrashError> {
        let unknown = || TrashError::NotFound { id: id.to_owned() };
        let folder = self.open_existing()?.ok_or_else(unknown)?;
        let item = read_record(&folder, id).ok_or_else(unknown)?;
        let spot = self.way_back(workspace, &item)?;
        let Some((parent, name)) = spot.parent_and_name() else {
            return Err(TrashError::Occupied { path: item.path });
        };
        transfer(
            (&folder, id.as_ref()),
            (parent.dir(), name),
            MOST_COPIED_BYTES,
        )
        .map_err(|interrupted| self.explain(interrupted, &item))?;
        folder
            .remove_file(record_name(id))
            .map_err(|cause| self.failed(cause))?;
        Ok(item)
    }

    /// Deletes what is in it for good; says how many things that were.
    pub fn empty(&self) -> Result<usize, TrashError> {
        let items = self.list()?;
        if let Some(folder) = self.open_existing()? {
            for item in &items {
                transfer::remove(&folder, item.id.as_ref())
                    .and_then(|()| folder.remove_file(record_name(&item.id)))
                    .map_err(|cause| self.failed(cause))?;
            }
        }
        Ok(items.len())
    }

    /// Moves what is at `spot` here.
    pub(crate) fn put(&self, spot: &Spot<'_>, contents: &Contents) -> Result<Trashed, TrashError> {
        let path = spot.path();
        let folder = self.open_or_make().map_err(|cause| self.failed(cause))?;
        let Some((parent, name)) = spot.parent_and_name() else {
            let cause = io::ErrorKind::InvalidInput.into();
            return Err(self.failed(cause));
        };
        let item = self.reserve(&folder, path, contents)?;
        let moved = transfer(
            (parent.dir(), name),
            (&folder, item.id.as_ref()),
            MOST_COPIED_BYTES,
        );
        match moved {
            Ok(()) => Ok(item),
            Err(interrupted) => {
                if !matches!(interrupted, Interrupted::NotRemoved(_)) {
                    // The reason to report is why it was not moved.
                    let _ = folder.remove_file(record_name(&item.id));
                }
                Err(self.explain(interrupted, &item))
            }
        }
    }

    /// Whether the trash itself lies at or below a path that is free of links.
    pub(crate) fn is_within(&self, path: &Path) -> bool {
        let folder = self.folder.canonicalize();
        folder.is_ok_and(|folder| folder.starts_with(path))
    }

    /// The spot where the item was, with its parents made. A link on the way was not there when it was deleted, so
    /// what it leads to is another place.
    fn way_back<'a>(
        &self,
        workspace: &'a Workspace,
        item: &Trashed,
    ) -> Result<Spot<'a>, TrashError> {
        let refused = |error: FileError| TrashError::Refused {
            path: item.path.clone(),
            reason: error.to_string(),
        };
        let path = item.path.to_str().unwrap_or_default();
        let place = Place::new(workspace.roots(), path).map_err(refused)?;
        let mut spot = place.entry().map_err(refused)?;
        if spot.path() != item.path {
            return Err(TrashError::Refused {
                path: item.path.clone(),
                reason: "a link is on the way to it now; remove the link first".to_owned(),
            });
        }
        spot.expect_changeable().map_err(refused)?;
        if spot.kind().map_err(refused)?.is_some() {
            let path = item.path.clone();
            return Err(TrashError::Occupied { path });
        }
        spot.make_parents().map_err(refused)?;
        Ok(spot)
    }

    /// Takes an id by writing its record.
    fn reserve(
        &self,
        folder: &Dir,
        path: PathBuf,
        contents: &Contents,
    ) -> Result<Trashed, TrashError> {
        let mut item = Trashed {
            id: String::new(),
            path,
            files: contents.files,
            bytes: contents.bytes,
            deleted_at: now(),
        };
        let options = OpenOptions::new().write(true).create_new(true).clone();
        let mut attempts = 0;
        let write = |item: &Trashed| {
            // A path that is not UTF-8 has no JSON text.
            let record = serde_json::to_vec(item)?;
            let mut file = folder.open_with(record_name(&item.id), &options)?;
            file.write_all(&record)?;
            file.sync_all()
        };
        loop {
            item.id = fresh_id();
            match write(&item) {
                Ok(()) => return Ok(item),
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists && attempts < ATTEMPTS =>
                {
                    attempts += 1;
                }
                Err(cause) => return Err(self.failed(cause)),
            }
        }
    }

    fn open_existing(&self) -> Result<Option<Dir>, TrashError> {
        match Dir::open_ambient_dir(&self.folder, ambient_authority()) {
            Ok(folder) => Ok(Some(folder)),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(self.failed(cause)),
        }
    }

    /// Nobody else looks into it: what was deleted may have been private.
    fn open_or_make(&self) -> io::Result<Dir> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        std::fs::set_permissions(&self.folder, Permissions::from_mode(0o700))?;
        Dir::open_ambient_dir(&self.folder, ambient_authority())
    }

    fn explain(&self, interrupted: Interrupted, item: &Trashed) -> TrashError {
        let path = item.path.clone();
        match interrupted {
            Interrupted::Occupied => TrashError::Occupied { path },
            Interrupted::TooLarge => TrashError::TooLarge { path },
            Interrupted::Special => TrashError::NotCopied { path },
            Interrupted::NotRemoved(cause) => TrashError::NotRemoved {
                path,
                id: item.id.clone(),
                cause,
            },
            Interrupted::Failed(cause) => self.failed(cause),
        }
    }

    fn failed(&self, cause: io::Error) -> TrashError {
        TrashError::Failed {
            folder: self.folder.clone(),
            cause,
        }
    }
}

/// The record of an id, if it is one and the thing itself is there too.
fn read_record(folder: &Dir, id: &str) -> Option<Trashed> {
    let is_id = id.len() == ID_LENGTH && id.bytes().all(|byte| ID_ALPHABET.contains(&byte));
    if !is_id {
        return None;
    }
    folder.symlink_metadata(id).ok()?;
    let record = folder.read(record_name(id)).ok()?;
    let item: Trashed = serde_json::from_slice(&record).ok()?;
    (item.id == id).then_some(item)
}

fn record_name(id: &str) -> String {
    format!("{id}.json")
}

fn fresh_id() -> String {
    let mut number = random_number();
    let mut letter = || {
        let at = (number % ID_ALPHABET.len() as u64) as usize;
        number /= ID_ALPHABET.len() as u64;
        char::from(ID_ALPHABET[at])
    };
    (0..ID_LENGTH).map(|_| letter()).collect()
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp(since.map_or(0, |since| since.as_millis() as u64))
}
