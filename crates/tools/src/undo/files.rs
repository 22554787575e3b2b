//! The private files and folders of the undo store. What is written is on the disk when a function returns.

use super::record::{MAX_LINE_BYTES, RECORD_FILE, RecordLine};
use crate::show;
use cap_fs_ext::DirExt;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt, OpenOptions, OpenOptionsExt};
use lango_core::{SessionId, TurnId};
use sha2::{Digest as _, Sha256};
use std::ffi::OsString;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The place of a turn's folder. It holds no handle, because there may be many turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TurnFolder {
    store: PathBuf,
    pub(super) session: OsString,
    pub(super) turn: OsString,
}

impl TurnFolder {
    pub(super) fn of(store: &Path, session: &SessionId, turn: &TurnId) -> Self {
        let session = folder_name(session.as_str());
        let turn = folder_name(turn.as_str());
        Self::named(store, session.into(), turn.into())
    }

    pub(super) fn named(store: &Path, session: OsString, turn: OsString) -> Self {
        let store = store.to_owned();
        Self {
            store,
            session,
            turn,
        }
    }

    /// Opens the folder without following links.
    pub(super) fn open(&self) -> io::Result<Dir> {
        let store = Dir::open_ambient_dir(&self.store, ambient_authority())?;
        let session = store.open_dir_nofollow(&self.session)?;
        session.open_dir_nofollow(&self.turn)
    }
}

pub(super) fn folder_size(dir: &Dir) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in dir.entries()? {
        bytes += entry?.metadata().map_or(0, |metadata| metadata.len());
    }
    Ok(bytes)
}

/// Returns the name of the folder for an id. Ids may come from clients, so they are not used as names.
pub(super) fn folder_name(id: &str) -> String {
    base16ct::lower::encode_string(&Sha256::digest(id)[..16])
}

pub(super) fn create_folder(parent: &Dir, name: &str) -> io::Result<Dir> {
    match parent.create_dir_with(name, DirBuilder::new().mode(0o700)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    parent.open_dir_nofollow(name)
}

/// Writes a private file and waits until it is on the disk.
pub(super) fn save(dir: &Dir, name: &str, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = dir.open_with(name, &options)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Appends a line to the record in a folder and waits until it is on the disk. A line that was cut off is ended first.
/// Fails if the line is too long.
pub(super) fn append_line(dir: &Dir, line: &RecordLine) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    let mut file = dir.open_with(RECORD_FILE, &options)?;
    let mut text = Vec::new();
    if file.seek(SeekFrom::End(-1)).is_ok() {
        let mut last = [0];
        file.read_exact(&mut last)?;
        if last != [b'\n'] {
            text.push(b'\n');
        }
    }
    serde_json::to_writer(&mut text, line)?;
    text.push(b'\n');
    if text.len() as u64 > MAX_LINE_BYTES {
        let limit = show::size(MAX_LINE_BYTES);
        let problem = format!("the record of the change is larger than {limit}");
        return Err(io::Error::other(problem));
    }
    file.write_all(&text)?;
    file.sync_all()
}

/// Ignores that something does not exist.
pub(super) fn found(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{After, Before, CallLine, Change};
    use super::*;
    use lango_core::{CallId, Trust};

    #[test]
    fn a_line_that_is_too_long_is_not_appended() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        let line = |length| {
            let change = Change {
                path: "x".repeat(length).into(),
                before: Before::Absent,
                after: After::Folder,
            };
            RecordLine::Call(CallLine {
                call: CallId::from("c"),
                trust: Trust::Trusted,
                changes: vec![change],
            })
        };
        append_line(&dir, &line(1_000_000)).unwrap();
        let size = || dir.metadata(RECORD_FILE).unwrap().len();
        let before = size();
        let error = append_line(&dir, &line(1 << 20)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the record of the change is larger than 1.0 MB"
        );
        assert_eq!(size(), before);
    }
}
