//! Errors of the file tools, written for the model: what is wrong and what to do instead.

use crate::entry_kind::EntryKind;
use crate::show;
use crate::trash::TrashError;
use crate::undo::UndoError;
use lango_core::ToolError;
use std::io;
use std::path::Path;

/// A refused or failed file operation. Paths are shown relative to the workspace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error(
        "`{path}` is outside the workspace; only files inside it can be reached, pass a path inside it"
    )]
    Outside { path: String },
    #[error("the path is invalid: {problem}")]
    UnusablePath { problem: &'static str },
    #[error("`{path}` does not exist; list the folder with `fs_list`")]
    Missing { path: String },
    #[error("`{path}` is a link to `{target}`, which does not exist")]
    Dangling { path: String, target: String },
    #[error("`{path}` is a folder; list its entries with `fs_list`")]
    IsFolder { path: String },
    #[error("`{path}`, or a parent of it, is not a folder; check with `fs_stat`")]
    NotAFolder { path: String },
    #[error("`{path}` is a {kind}; only regular files can be read")]
    NotAFile { path: String, kind: EntryKind },
    #[error("`{path}` is not UTF-8 text: {size}, probably {guess}; only text can be read")]
    NotText {
        path: String,
        size: String,
        guess: &'static str,
    },
    #[error("`{path}` is an image of {size}; only images of up to {limit} can be read")]
    ImageTooLarge {
        path: String,
        size: String,
        limit: String,
    },
    #[error("`{path}` has {content}; pass a smaller `{argument}`")]
    PastTheEnd {
        path: String,
        content: String,
        argument: &'static str,
    },
    #[error(
        "line {line} of `{path}` starts more than {limit} into the file; only lines before that can be read"
    )]
    TooFar {
        path: String,
        line: u64,
        limit: String,
    },
    #[error(
        "`{path}` is protected: it can be read but not changed; leave it, or ask the user to change it"
    )]
    Protected { path: String },
    #[error(
        "`{path}` was not changed: {reason}, and the user has not approved this change; call again to ask the user"
    )]
    NotApproved { path: String, reason: String },
    #[error(
        "nothing was done, because `{path}` leads to another place than when the call was checked; call again, so that \
         it is checked again"
    )]
    Redirected { path: String },
    #[error(
        "`{path}` was not changed: it is not as it was when the user was asked; read it again, then call again to ask \
         the user"
    )]
    ChangedSinceQuestion { path: String },
    #[error("nothing was changed, because the call was cancelled")]
    Cancelled,
    #[error("`{path}` is in a read-only folder; write inside the workspace")]
    ReadOnly { path: String },
    #[error("`{path}` cannot be used; choose another path")]
    Reserved { path: String },
    #[error("`{path}` ends like the path of a folder; end it with the file's name")]
    NamesAFolder { path: String },
    #[error("`{path}` is a {kind}; only regular files can be written")]
    NotWritable { path: String, kind: EntryKind },
    #[error("`{path}` is write-protected; leave it, or ask the user to change it")]
    WriteProtected { path: String },
    #[error("`{path}`, or a parent of it, exists and is not a folder; choose another path")]
    Occupied { path: String },
    #[error("`{path}` would need more than {limit} new folders; choose a shorter path")]
    TooManyFolders { path: String, limit: usize },
    #[error("`{path}` {problem}; {hint}")]
    NotEdited {
        path: String,
        problem: String,
        hint: &'static str,
    },
    #[error("`{path}` was not deleted: {reason}")]
    NotDeleted { path: String, reason: String },
    #[error("`{argument}` is invalid: {problem}")]
    InvalidArgument {
        argument: &'static str,
        problem: String,
    },
    #[error(transparent)]
    Trash(#[from] TrashError),
    #[error("lango has no permission to open `{path}`; ask the user to change the permissions")]
    Forbidden { path: String },
    #[error(
        "`{path}` was not changed, because the change could not be undone: {problem}; tell the user"
    )]
    NotRecorded { path: String, problem: String },
    #[error("`{path}` cannot be written: {cause}")]
    NotWritten { path: String, cause: io::Error },
    #[error("`{path}` cannot be opened: {cause}")]
    Failed { path: String, cause: io::Error },
}

impl FileError {
    /// Translates an error of the operating system for `path`. `link` is the target if the path ends at a link.
    pub(crate) fn explain(path: String, link: Option<&Path>, cause: io::Error) -> Self {
        match cause.kind() {
            io::ErrorKind::NotFound => Self::missing(path, link),
            io::ErrorKind::PermissionDenied => Self::Forbidden { path },
            io::ErrorKind::NotADirectory => Self::NotAFolder { path },
            io::ErrorKind::InvalidFilename => Self::UnusablePath {
                problem: "a name in it is too long",
            },
            _ => Self::Failed { path, cause },
        }
    }

    /// The error for a change that is not made because its original cannot be saved.
    pub(crate) fn not_recorded(path: &str, error: &UndoError) -> Self {
        Self::NotRecorded {
            path: path.to_owned(),
            problem: error.to_string(),
        }
    }

    /// The error for a path that does not exist, or that ends at a link whose target does not exist.
    pub(crate) fn missing(path: String, link: Option<&Path>) -> Self {
        match link {
            Some(target) => Self::Dangling {
                path,
                target: show::name(target.as_os_str()),
            },
            None => Self::Missing { path },
        }
    }
}

impl From<FileError> for ToolError {
    fn from(error: FileError) -> Self {
        Self::new(error.to_string())
    }
}
