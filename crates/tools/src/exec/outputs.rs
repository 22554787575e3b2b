//! The folder with the outputs of commands. It is lango's own: no command sees it. The oldest files make room for new
//! ones.

use super::output::Output;
use lango_core::Caller;
use std::collections::VecDeque;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

/// How a file of this folder ends; others are left alone.
const EXTENSION: &str = "out";

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Of one command.
    pub(crate) output_bytes: u64,
    /// Of all.
    pub(crate) files: usize,
    pub(crate) bytes: u64,
}

/// The outputs of commands.
#[derive(Debug)]
pub(crate) struct Outputs {
    folder: PathBuf,
    room: Room,
    /// The files there are, the oldest first.
    kept: Mutex<VecDeque<Kept>>,
}

#[derive(Debug)]
struct Kept {
    path: PathBuf,
    /// Alive while the command or someone who reads its output is.
    output: Weak<Output>,
}

impl Outputs {
    /// Opens the folder, which is made if it is not there, and closed to other users of the machine.
    pub(crate) fn open(folder: PathBuf, room: Room) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        let kept = files_of(&folder)?
            .into_iter()
            .map(|path| Kept {
                path,
                output: Weak::new(),
            })
            .collect();
        let outputs = Self {
            folder,
            room,
            kept: Mutex::new(kept),
        };
        outputs.make_room(0)?;
        Ok(outputs)
    }

    /// A new output, named after the call.
    pub(crate) fn create(&self, caller: &Caller) -> io::Result<Arc<Output>> {
        self.make_room(1)?;
        let stem = format!(
            "{}-{}",
            plain(caller.turn.as_str()),
            plain(caller.call.as_str())
        );
        let mut attempt = 1;
        let (path, file) = loop {
            let name = match attempt {
                1 => format!("{stem}.{EXTENSION}"),
                _ => format!("{stem}-{attempt}.{EXTENSION}"),
            };
            let path = self.folder.join(name);
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o600);
            match options.open(&path) {
                Ok(file) => break (path, file),
                // A call that is run once more keeps its first output.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        };
        let output = Arc::new(Output::new(path.clone(), file, self.room.output_bytes));
        let kept = Kept {
            path,
            output: Arc::downgrade(&output),
        };
        self.kept().push_back(kept);
        Ok(output)
    }

    /// Removes the oldest outputs until `files` more fit. Those of running commands stay.
    fn make_room(&self, files: usize) -> io::Result<()> {
        let mut kept = self.kept();
        let mut bytes: u64 = kept.iter().map(Kept::size).sum();
        let mut at = 0;
        while at < kept.len() && (kept.len() + files > self.room.files || bytes > self.room.bytes) {
            if kept[at].is_growing() {
                at += 1;
                continue;
            }
            let Some(oldest) = kept.remove(at) else { break };
            bytes = bytes.saturating_sub(oldest.size());
            match fs::remove_file(&oldest.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, VecDeque<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn size(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }

    fn is_growing(&self) -> bool {
        self.output
            .upgrade()
            .is_some_and(|output| output.is_growing())
    }
}

/// The files that an earlier run left, the oldest first.
fn files_of(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let is_output = path.extension().is_some_and(|end| end == EXTENSION);
        if is_output && entry.file_type()?.is_file() {
            let changed = entry
                .metadata()?
                .modified()
                .unwrap_or(SystemTime::UNIX_EPOCH);
            files.push((changed, path));
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

/// An id as a part of a file's name. Ids of calls come from a model's server and can be anything.
fn plain(id: &str) -> String {
    let plain = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => c,
        _ => '_',
    };
    id.chars().take(60).map(plain).collect()
}
