//! Kinds of file-system entries.

use cap_fs_ext::FileTypeExt;
use cap_std::fs::FileType;
use std::fmt;

/// The kind of a file-system entry. Links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Folder,
    Link,
    NamedPipe,
    Socket,
    Device,
    /// Anything else, or unknown because the file system does not report it.
    Other,
}

impl From<FileType> for EntryKind {
    fn from(file_type: FileType) -> Self {
        if file_type.is_file() {
            Self::File
        } else if file_type.is_dir() {
            Self::Folder
        } else if file_type.is_symlink() {
            Self::Link
        } else if file_type.is_fifo() {
            Self::NamedPipe
        } else if file_type.is_socket() {
            Self::Socket
        } else if file_type.is_char_device() || file_type.is_block_device() {
            Self::Device
        } else {
            Self::Other
        }
    }
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "file",
            Self::Folder => "folder",
            Self::Link => "link",
            Self::NamedPipe => "named pipe",
            Self::Socket => "socket",
            Self::Device => "device",
            Self::Other => "special file",
        })
    }
}
