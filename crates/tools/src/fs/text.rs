//! A whole text file in memory, for the tools that change it.

use super::guess::guess_kind;
use crate::file_error::FileError;
use crate::show;
use crate::spot::Spot;
use std::io::Read;

/// How large a file is still read whole.
const LARGEST_BYTES: u64 = 8_000_000;

/// What a file holds that is to be replaced.
pub(super) enum Current {
    Nothing,
    Text(String),
    /// No text, or too much; in words.
    Other(String),
}

impl Current {
    /// What is at `spot`; refuses what cannot be replaced with text.
    pub(super) fn at(spot: &Spot<'_>) -> Result<Self, FileError> {
        match expect_replaceable(spot)? {
            true => Self::read(spot),
            false => Ok(Self::Nothing),
        }
    }

    fn read(spot: &Spot<'_>) -> Result<Self, FileError> {
        let (file, size) = spot.open_file()?;
        if size > LARGEST_BYTES {
            return Ok(Self::Other(format!("a file of {}", show::size(size))));
        }
        let mut bytes = Vec::new();
        file.take(LARGEST_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|cause| spot.explain(cause))?;
        let has_nul = bytes.contains(&0);
        let guess = guess_kind(&bytes[..bytes.len().min(512)], has_nul);
        let described = || format!("{}, by the look of it {guess}", show::size(size));
        Ok(match String::from_utf8(bytes) {
            Ok(text) if !has_nul => Self::Text(text),
            _ => Self::Other(described()),
        })
    }
}

/// Whether there is a file at `spot`; refuses whatever is there and is no file that may be written.
pub(super) fn expect_replaceable(spot: &Spot<'_>) -> Result<bool, FileError> {
    use crate::kind::Kind;
    let path = spot.shown().to_owned();
    match spot.kind()? {
        None => Ok(false),
        Some(Kind::Folder) => Err(FileError::IsFolder { path }),
        Some(Kind::File) if spot.metadata()?.permissions().readonly() => {
            Err(FileError::WriteProtected { path })
        }
        Some(Kind::File) => Ok(true),
        Some(kind) => Err(FileError::NotWritable { path, kind }),
    }
}
