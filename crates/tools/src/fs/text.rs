//! Reads whole text files into memory, for the tools that change them.

use super::guess::guess_kind;
use crate::file_error::FileError;
use crate::show;
use crate::target_path::TargetPath;
use std::io::Read;

/// Maximum size of a file that is read whole.
const MAX_BYTES: u64 = 8_000_000;

/// The current content of a file that a call would change.
pub(super) enum CurrentContent {
    /// The file does not exist.
    Missing,
    Text(String),
    /// Not text, or too large; described in words.
    Other(String),
}

impl CurrentContent {
    /// Reads the content at `target`. Fails if a file cannot be written there.
    pub(super) fn at(target: &TargetPath<'_>) -> Result<Self, FileError> {
        if expect_replaceable(target)? {
            Self::read(target)
        } else {
            Ok(Self::Missing)
        }
    }

    fn read(target: &TargetPath<'_>) -> Result<Self, FileError> {
        let (file, size) = target.open_file()?;
        if size > MAX_BYTES {
            return Ok(Self::Other(format!("a file of {}", show::size(size))));
        }
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|cause| target.explain(cause))?;
        let has_nul = bytes.contains(&0);
        let guess = guess_kind(&bytes[..bytes.len().min(512)], has_nul);
        let described = || format!("{}, probably {guess}", show::size(size));
        Ok(match String::from_utf8(bytes) {
            Ok(text) if !has_nul => Self::Text(text),
            _ => Self::Other(described()),
        })
    }
}

/// Whether a file exists at `target`. Fails if something exists there that is not a writable file.
pub(super) fn expect_replaceable(target: &TargetPath<'_>) -> Result<bool, FileError> {
    use crate::entry_kind::EntryKind;
    let path = target.display_path().to_owned();
    match target.kind()? {
        None => Ok(false),
        Some(EntryKind::Folder) => Err(FileError::IsFolder { path }),
        Some(EntryKind::File) if target.metadata()?.permissions().readonly() => {
            Err(FileError::WriteProtected { path })
        }
        Some(EntryKind::File) => Ok(true),
        Some(kind) => Err(FileError::NotWritable { path, kind }),
    }
}
