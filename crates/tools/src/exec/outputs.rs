//! The folder with the outputs of commands. It is private to lango, so commands cannot see it. The oldest files are
//! removed to make room for new ones.

use super::output::Output;
use lango_core::Caller;
use std::collections::VecDeque;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

/// Extension of output files. Other files in the folder are left alone.
const EXTENSION: &str = "out";

/// Limits of the stored outputs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputQuota {
    /// Maximum size of one output.
    pub(crate) output_bytes: u64,
    /// Maximum number of outputs.
    pub(crate) files: usize,
    /// Maximum size of all outputs together.
    pub(crate) bytes: u64,
}

/// The stored outputs of commands.
#[derive(Debug)]
pub(crate) struct Outputs {
    folder: PathBuf,
    quota: OutputQuota,
    /// The stored files, oldest first; `None` until the folder is first used.
    stored: Mutex<Option<VecDeque<StoredOutput>>>,
}

#[derive(Debug)]
struct StoredOutput {
    path: PathBuf,
    /// Alive while the command runs or its output is being read.
    output: Weak<Output>,
}

impl Outputs {
    /// Stores outputs in this folder. The first output creates the folder, with access for its owner only.
    pub(crate) fn at(folder: PathBuf, quota: OutputQuota) -> Self {
        Self {
            folder,
            quota,
            stored: Mutex::new(None),
        }
    }

    /// Creates an output, named after the call.
    pub(crate) fn create(&self, caller: &Caller) -> io::Result<Arc<Output>> {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = match &mut *stored {
            Some(stored) => stored,
            None => stored.insert(self.open()?),
        };
        self.make_room(stored)?;
        let stem = format!(
            "{}-{}",
            file_name_part(caller.turn.as_str()),
            file_name_part(caller.call.as_str())
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
                // A call that is run again does not overwrite its first output.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        };
        let output = Arc::new(Output::new(path.clone(), file, self.quota.output_bytes));
        let new = StoredOutput {
            path,
            output: Arc::downgrade(&output),
        };
        stored.push_back(new);
        Ok(output)
    }

    /// Creates the folder, or finds the files of an earlier run.
    fn open(&self) -> io::Result<VecDeque<StoredOutput>> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o700))?;
        let left = output_files(&self.folder)?
            .into_iter()
            .map(|path| StoredOutput {
                path,
                output: Weak::new(),
            });
        Ok(left.collect())
    }

    /// Removes the oldest outputs until one more fits. Outputs of running commands stay.
    fn make_room(&self, stored: &mut VecDeque<StoredOutput>) -> io::Result<()> {
        let mut bytes: u64 = stored.iter().map(StoredOutput::size).sum();
        let mut at = 0;
        while at < stored.len() && (stored.len() + 1 > self.quota.files || bytes > self.quota.bytes)
        {
            if stored[at].is_growing() {
                at += 1;
                continue;
            }
            let Some(oldest) = stored.remove(at) else {
                break;
            };
            bytes = bytes.saturating_sub(oldest.size());
            match fs::remove_file(&oldest.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl StoredOutput {
    fn size(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }

    fn is_growing(&self) -> bool {
        self.output
            .upgrade()
            .is_some_and(|output| output.is_growing())
    }
}

/// Lists the files of an earlier run, oldest first.
fn output_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
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

/// Makes an id usable in a file name. Call ids come from the model provider and can contain anything.
fn file_name_part(id: &str) -> String {
    let replace = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => c,
        _ => '_',
    };
    id.chars().take(60).map(replace).collect()
}
