//! The file of an export: an incomplete file never gets the final name.

use crate::app::Failure;
use lango_store::archive::line::MAX_LINE_BYTES;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Fails if a line is too long to be imported again.
pub fn check_line(line: &str) -> Result<(), Failure> {
    if line.len() <= MAX_LINE_BYTES {
        return Ok(());
    }
    let message = "an event of a session is too long for an export line";
    Err(Failure::failed(message).next("`lango store backup FILE` copies the database unchanged"))
}

/// A file that has a temporary name until it is complete, and then gets its final name. If this is dropped before
/// that, the file is deleted.
pub struct PartFile {
    path: PathBuf,
    part: PathBuf,
    out: BufWriter<File>,
}

impl PartFile {
    /// Creates the temporary file. Fails if there is a file with the final name.
    pub fn open(path: PathBuf) -> Result<Self, Failure> {
        let mut part = path.as_os_str().to_owned();
        part.push(format!(".{}.part", std::process::id()));
        let part = PathBuf::from(part);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = check_not_taken(&path).and_then(|()| options.open(&part));
        let file = file.map_err(|error| unwritable(&path, &error))?;
        Ok(Self {
            path,
            part,
            out: BufWriter::new(file),
        })
    }

    /// Writes a line.
    pub fn write_line(&mut self, line: &str) -> Result<(), Failure> {
        let written = writeln!(self.out, "{line}");
        written.map_err(|error| unwritable(&self.path, &error))
    }

    /// Gives the complete file its final name, and returns that. Never replaces a file.
    pub fn finish(mut self) -> Result<PathBuf, Failure> {
        let renamed = self.commit();
        renamed.map_err(|error| unwritable(&self.path, &error))?;
        Ok(self.path.clone())
    }

    fn commit(&mut self) -> io::Result<()> {
        self.out.flush()?;
        self.out.get_ref().sync_all()?;
        check_not_taken(&self.path)?;
        fs::rename(&self.part, &self.path)
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        // After the rename there is nothing to remove.
        let _ = fs::remove_file(&self.part);
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("`{}` cannot be written: {error}", path.display());
    let next = match error.kind() {
        ErrorKind::AlreadyExists => "choose a file name that does not exist yet",
        _ => "choose another file with --output FILE",
    };
    Failure::usage(message).next(next)
}

fn check_not_taken(path: &Path) -> io::Result<()> {
    if path.try_exists()? {
        return Err(io::Error::new(
            ErrorKind::AlreadyExists,
            "it already exists",
        ));
    }
    Ok(())
}
