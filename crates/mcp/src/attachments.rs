//! Stores non-text results as files in a folder that belongs to lango. Deletes the oldest files to make room for new
//! ones.

use lango_core::Caller;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Maximum number of files in the folder.
const MAX_FILES: usize = 200;
/// Maximum total size of these files.
const MAX_BYTES: u64 = 256 << 20;

#[derive(Debug, Clone)]
pub(crate) struct Attachments {
    folder: PathBuf,
}

impl Attachments {
    pub(crate) fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Creates the folder. It must exist before a server starts, so that the sandbox can hide it.
    pub(crate) fn make_folder(&self) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
    }

    /// Stores these bytes and returns the path.
    pub(crate) fn store(&self, caller: &Caller, kind: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        self.make_folder()?;
        self.make_room(bytes.len() as u64)?;
        let stem = format!(
            "{}-{}",
            plain(caller.turn.as_str()),
            plain(caller.call.as_str())
        );
        for number in 1..=1000 {
            let path = self
                .folder
                .join(format!("{stem}-{number}.{}", extension(kind)));
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o600);
            match options.open(&path) {
                Ok(mut file) => {
                    file.write_all(bytes)?;
                    return Ok(path);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Deletes the oldest files until a file of this size fits.
    fn make_room(&self, bytes: u64) -> io::Result<()> {
        let mut files = files_of(&self.folder)?;
        files.sort();
        let mut left = files.len();
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in files {
            if left < MAX_FILES && total + bytes <= MAX_BYTES {
                break;
            }
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            left -= 1;
            total -= size;
        }
        Ok(())
    }
}

fn files_of(folder: &Path) -> io::Result<Vec<(SystemTime, u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if metadata.is_file() {
            let changed = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            files.push((changed, metadata.len(), entry.path()));
        }
    }
    Ok(files)
}

/// Converts an id to a safe part of a file name. Call ids come from a model provider and can contain any character.
fn plain(id: &str) -> String {
    let plain = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => c,
        _ => '_',
    };
    id.chars().take(60).map(plain).collect()
}

/// Returns the file extension for a media type that a server claims; never one that a desktop would execute.
fn extension(kind: &str) -> &'static str {
    match kind {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "text/plain" => "txt",
        _ => "bin",
    }
}
