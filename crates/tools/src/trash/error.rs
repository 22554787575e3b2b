//! Why the trash could not do something, as the user reads it.

use super::transfer::TransferError;
use super::{MAX_COPIED_BYTES, Trash, TrashItem};
use crate::show;
use std::io;
use std::path::PathBuf;

/// Why an item could not be moved to the trash, restored or removed.
#[derive(Debug, thiserror::Error)]
pub enum TrashError {
    #[error("`{id}` is not in the trash")]
    NotFound { id: String },
    /// The original path exists again.
    #[error("`{}` exists again and is not overwritten; move it away first", path.display())]
    Occupied { path: PathBuf },
    /// The policy does not allow restoring the item to its original path.
    #[error("`{}` cannot be restored: {reason}", path.display())]
    Refused { path: PathBuf, reason: String },
    /// The item is on another file system and too large to copy.
    #[error(
        "`{}` is on another file system than the trash and larger than {}; ask the user to delete it",
        path.display(),
        show::size(MAX_COPIED_BYTES)
    )]
    TooLarge { path: PathBuf },
    /// The item is on another file system and contains something that cannot be copied.
    #[error(
        "`{}` is on another file system than the trash and contains a special file, which cannot be copied; \
         ask the user to delete it",
        path.display()
    )]
    NotCopied { path: PathBuf },
    /// The item is on another file system and changed while it was copied.
    #[error("`{}` changed while it was copied to the trash, so it was not deleted", path.display())]
    Changed { path: PathBuf },
    /// Like [`Changed`](Self::Changed), and another program has created the path again meanwhile.
    #[error(
        "`{}` changed while it was copied to the trash, and exists again; what was there is now named `{name}`",
        path.display()
    )]
    Moved { path: PathBuf, name: String },
    /// The item is on another file system, and its copy changed or was removed before the original was.
    #[error(
        "`{}` was not deleted, because its copy in the trash was removed or changed meanwhile; try again",
        path.display()
    )]
    CopyChanged { path: PathBuf },
    /// The item was copied to the trash, but at least a part of the original could not be removed.
    #[error("`{}` is in the trash as `{id}`, but not all of it could be removed: {cause}", path.display())]
    NotRemoved {
        path: PathBuf,
        id: String,
        cause: io::Error,
    },
    #[error("the trash `{}` cannot be used: {cause}", folder.display())]
    Failed { folder: PathBuf, cause: io::Error },
}

impl Trash {
    /// Explains why an item was not moved.
    pub(super) fn explain(&self, error: TransferError, item: &TrashItem) -> TrashError {
        let path = item.path.clone();
        match error {
            TransferError::Occupied => TrashError::Occupied { path },
            TransferError::TooLarge => TrashError::TooLarge { path },
            TransferError::Special => TrashError::NotCopied { path },
            TransferError::Changed => TrashError::Changed { path },
            TransferError::Moved(name) => TrashError::Moved { path, name },
            TransferError::CopyChanged => TrashError::CopyChanged { path },
            TransferError::NotRemoved(cause) => TrashError::NotRemoved {
                path,
                id: item.id.clone(),
                cause,
            },
            TransferError::Failed(cause) => self.failed(cause),
        }
    }
}
