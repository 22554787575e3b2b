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
    /// The files there are, the oldest first; nothing until the folder is first used.
    kept: Mutex<Option<VecDeque<Kept>>>,
}

#[derive(Debug)]
struct Kept {
    path: PathBuf,
    /// Alive while the command or someone who reads its output is.
    output: Weak<Output>,
}

impl Outputs {
    /// The outputs in this folder. It is made when the first one is created, and closed to other users of the machine.
    pub(crate) fn at(folder: PathBuf, room: Room) -> Self {
        Self {
            folder,
            room,
            kept: Mutex::new(None),
        }
    }

    /// A new output, named after the call.
    pub(crate) fn create(&self, caller: &Caller) -> io::Result<Arc<Output>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = match &mut *kept {
            Some(kept) => kept,
            None => kept.insert(self.open()?),
        };
        self.make_room(kept)?;
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
        let new = Kept {
            path,
            output: Arc::downgrade(&output),
        };
        kept.push_back(new);
        Ok(output)
    }

    /// Makes the folder, or finds what an earlier run left there.
    fn open(&self) -> io::Result<VecDeque<Kept>> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o700))?;
        let left = files_of(&self.folder)?.into_iter().map(|path| Kept {
            path,
            output: Weak::new(),
        });
        Ok(left.collect())
    }

    /// Removes the oldest outputs until one more fits. Those of running commands stay.
    fn make_room(&self, kept: &mut VecDeque<Kept>) -> io::Result<()> {
        let mut bytes: u64 = kept.iter().map(Kept::size).sum();
        let mut at = 0;
        while at < kept.len() && (kept.len() + 1 > self.room.files || bytes > self.room.bytes) {
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
