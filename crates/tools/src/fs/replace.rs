//! Creates or replaces a file, for `fs_write` and `fs_edit`.

use crate::file_error::FileError;
use crate::replace::{self, ExecutableBits, ReplaceError};
use crate::target_path::TargetPath;
use crate::undo::{FileWrite, Original, Recorder};
use std::io;

/// Records the change of a file, then makes it. Fails if the file is not as it was `before`.
pub(super) fn replace(
    recorder: &Recorder<'_>,
    target: &mut TargetPath<'_>,
    before: &Original,
    content: &[u8],
    bits: ExecutableBits,
) -> Result<(), FileError> {
    let write = FileWrite {
        path: target.path(),
        new_folders: target.missing_parents(),
        before,
        content,
    };
    let recorded = recorder.write(write);
    recorded.map_err(|error| FileError::not_recorded(target.display_path(), &error))?;
    recorder.expect_running()?;
    target.create_parents()?;
    let path = target.display_path().to_owned();
    let Some((folder, name)) = target.parent_and_name() else {
        return Err(FileError::IsFolder { path });
    };
    let folder = folder.dir();
    let replaced = match before {
        Original::Absent => replace::create(folder, name, content),
        Original::File { .. } | Original::Large { .. } => {
            let is_same = |name: &_| before.is_at(folder, name);
            replace::replace(folder, name, content, bits, is_same)
        }
    };
    replaced.map_err(|error| match error {
        ReplaceError::Changed => FileError::ChangedSinceQuestion { path },
        ReplaceError::Moved(name) => {
            let problem =
                format!("it changed at this moment; one version of it is now named `{name}`");
            let cause = io::Error::other(problem);
            FileError::NotWritten { path, cause }
        }
        ReplaceError::Failed(cause) => match target.explain(cause) {
            FileError::Failed { path, cause } => FileError::NotWritten { path, cause },
            error => error,
        },
    })
}
