//! The content of a file before it is changed, and the fingerprint by which a later change is noticed.

use crate::attributes::Attributes;
use crate::file_error::FileError;
use crate::folder::open_regular;
use crate::target_path::TargetPath;
use cap_std::fs::{Dir, Metadata, MetadataExt};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::ffi::OsStr;
use std::io::{self, Read};

/// Maximum size of an original that is read into memory. Larger files are changed, but not saved.
pub(super) const MAX_FILE_BYTES: u64 = 4 << 20;

/// A file as it is before a change.
#[derive(Debug)]
pub(crate) enum Original {
    Absent,
    File {
        bytes: Vec<u8>,
        mode: u32,
    },
    /// Too large to be saved.
    Large {
        size: u64,
        version: FileVersion,
    },
}

/// What tells a file that was not read from other files and from later versions of itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileVersion {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl FileVersion {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

impl Original {
    /// Reads the file at `target`. Fails if something else is there.
    pub(crate) fn read(target: &TargetPath<'_>) -> Result<Self, FileError> {
        if target.kind()?.is_none() {
            return Ok(Self::Absent);
        }
        let (file, metadata) = target.open_with_metadata()?;
        let large = |size| {
            let version = FileVersion::of(&metadata);
            Ok(Self::Large { size, version })
        };
        if metadata.len() > MAX_FILE_BYTES {
            return large(metadata.len());
        }
        let mut bytes = Vec::new();
        let read = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|cause| target.explain(cause))?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return large(bytes.len() as u64);
        }
        Ok(Self::File {
            bytes,
            mode: Attributes::from(&metadata).mode,
        })
    }

    /// Returns the content if it is text. An absent file is empty.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Absent => Some(""),
            Self::File { bytes, .. } if !bytes.contains(&0) => std::str::from_utf8(bytes).ok(),
            Self::File { .. } | Self::Large { .. } => None,
        }
    }

    /// Whether this content was read. Says nothing about a file that is too large.
    pub(crate) fn has_content(&self, content: &[u8]) -> bool {
        match self {
            Self::Absent => false,
            Self::File { bytes, .. } => bytes == content,
            Self::Large { .. } => true,
        }
    }

    /// Whether the regular file `name` has the content that was read. A file that is too large must be the same one, not
    /// written to since.
    pub(crate) fn is_at(&self, folder: &Dir, name: &OsStr) -> bool {
        match self {
            Self::Absent => false,
            Self::File { bytes, .. } => Fingerprint::of(bytes).matches(folder, name),
            Self::Large { version, .. } => folder
                .symlink_metadata(name)
                .is_ok_and(|metadata| FileVersion::of(&metadata) == *version),
        }
    }
}

/// The size and the SHA-256 of a file's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fingerprint {
    pub(super) size: u64,
    pub(super) hash: String,
}

impl Fingerprint {
    pub(super) fn of(content: &[u8]) -> Self {
        Self {
            size: content.len() as u64,
            hash: base16ct::lower::encode_string(&Sha256::digest(content)),
        }
    }

    /// Returns the fingerprint of the regular file `name`, or `None` if its size is none of these. Reads little
    /// more than the largest of them.
    pub(super) fn of_file(dir: &Dir, name: &OsStr, sizes: &[u64]) -> io::Result<Option<Self>> {
        let (mut file, metadata) = open_regular(dir, name)?;
        if !sizes.contains(&metadata.len()) {
            return Ok(None);
        }
        let limit = sizes.iter().max().copied().unwrap_or_default();
        let (mut hasher, mut size) = (Sha256::new(), 0);
        let mut buffer = vec![0; 64 * 1024];
        // One byte too many shows that the file has grown.
        while size <= limit {
            match file.read(&mut buffer)? {
                0 => break,
                read => {
                    hasher.update(&buffer[..read]);
                    size += read as u64;
                }
            }
        }
        let hash = base16ct::lower::encode_string(&hasher.finalize());
        Ok(sizes.contains(&size).then_some(Self { size, hash }))
    }

    /// Whether `name` is a regular file with this content.
    pub(super) fn matches(&self, dir: &Dir, name: &OsStr) -> bool {
        let found = Self::of_file(dir, name, &[self.size]);
        found.is_ok_and(|found| found.as_ref() == Some(self))
    }
}
