//! A path as a model gave it, and the ways to what it names.
//!
//! The text alone decides nothing: each way goes from handle to handle, see [`walk`](crate::walk), and ends at a
//! [`Spot`] that can be acted on.

use crate::file_error::FileError;
use crate::folder::Folder;
use crate::roots::Roots;
use crate::show;
use crate::spot::Spot;
use crate::walk::{Last, Stop, walk};
use std::path::{Component, Path, PathBuf};

/// The longest path the operating system takes on Linux.
const LONGEST_PATH_BYTES: usize = 4096;

/// Where something is or may be.
pub(crate) struct Place<'a> {
    roots: &'a Roots,
    path: PathBuf,
    /// Whether the text ends as only a folder's may: `a/`, `a/.`.
    ends_as_folder: bool,
}

impl<'a> Place<'a> {
    /// `path` is relative to the workspace, or absolute; it may contain `..`.
    pub(crate) fn new(roots: &'a Roots, path: &str) -> Result<Self, FileError> {
        let problem = if path.contains('\0') {
            Some("it contains a NUL character")
        } else if path.len() > LONGEST_PATH_BYTES {
            Some("it is longer than 4096 bytes")
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(FileError::UnusablePath { problem });
        }
        let short = roots.short(Path::new(path));
        let normal: PathBuf = short
            .components()
            .filter(|part| *part != Component::CurDir)
            .collect();
        Ok(Self {
            roots,
            path: match normal.as_os_str().is_empty() {
                true => PathBuf::from("."),
                false => normal,
            },
            ends_as_folder: path.ends_with('/') || path.ends_with("/."),
        })
    }

    /// The path for a reader's eyes.
    pub(crate) fn shown(&self) -> String {
        show::name(self.path.as_os_str())
    }

    /// What is here; a link is not followed.
    pub(crate) fn entry(&self) -> Result<Spot<'a>, FileError> {
        self.spot(Last::Itself).map_err(|stop| self.explain(stop))
    }

    /// What is here; a link is followed.
    pub(crate) fn target(&self) -> Result<Spot<'a>, FileError> {
        self.spot(Last::Followed).map_err(|stop| self.explain(stop))
    }

    /// Where something new comes to be, or something is replaced; a link is followed.
    pub(crate) fn destination(&self) -> Result<Spot<'a>, FileError> {
        let spot = self.spot(Last::Followed).map_err(|stop| match stop {
            // That it is not there would be no reason not to make it.
            Stop::Hidden => FileError::Reserved { path: self.shown() },
            stop => self.explain(stop),
        })?;
        spot.expect_changeable()?;
        Ok(spot)
    }

    /// The same for a file.
    pub(crate) fn file_destination(&self) -> Result<Spot<'a>, FileError> {
        match self.ends_as_folder {
            true => Err(FileError::NamesAFolder { path: self.shown() }),
            false => self.destination(),
        }
    }

    /// Opens the folder that is here.
    pub(crate) fn open_folder(&self) -> Result<Folder<'a>, FileError> {
        self.target()?.open_folder()
    }

    fn spot(&self, last: Last) -> Result<Spot<'a>, Stop> {
        Ok(Spot::new(walk(self.roots, &self.path, last)?, self.shown()))
    }

    fn explain(&self, stop: Stop) -> FileError {
        let path = self.shown();
        match stop {
            Stop::Outside => FileError::Outside { path },
            Stop::Hidden => FileError::Missing { path },
            Stop::Missing { link } => FileError::missing(path, link.as_deref()),
            Stop::TooLong => FileError::UnusablePath {
                problem: "it goes through too many folders",
            },
            Stop::Failed(cause) => FileError::explain(path, None, cause),
        }
    }
}
