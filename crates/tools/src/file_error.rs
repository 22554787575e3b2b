//! Why a file tool gave nothing back, in words for the model: what is wrong and what to call instead.

use crate::kind::Kind;
use crate::show;
use crate::trash::TrashError;
use lango_core::ToolError;
use std::io;
use std::path::Path;

/// A refused or failed file operation. Paths are shown relative to the workspace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error(
        "`{path}` leads outside the workspace; files outside it cannot be reached, give a path inside it"
    )]
    Outside { path: String },
    #[error("the path is not usable: {problem}")]
    UnusablePath { problem: &'static str },
    #[error("`{path}` does not exist; see what there is with `fs_list`")]
    Missing { path: String },
    #[error("`{path}` is a link to `{target}`, which does not exist")]
    Dangling { path: String, target: String },
    #[error("`{path}` is a folder; see its entries with `fs_list`")]
    IsFolder { path: String },
    #[error(
        "`{path}` is not a folder, or leads through something that is not one; see its kind with `fs_stat`"
    )]
    NotAFolder { path: String },
    #[error("`{path}` is a {kind}; only regular files can be read")]
    NotAFile { path: String, kind: Kind },
    #[error("`{path}` is not UTF-8 text: {size}, by the look of it {guess}; only text can be read")]
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
        "`{path}` is kept as it is: it can be read, not changed; leave it, or ask the person to change it"
    )]
    Kept { path: String },
    #[error(
        "`{path}` is not changed: {reason}, and the user was not asked about it; make the call again to have it asked for"
    )]
    NotAsked { path: String, reason: String },
    #[error("`{path}` is in a folder that may be read, not changed; write inside the workspace")]
    ReadOnly { path: String },
    #[error("`{path}` cannot be used; choose another path")]
    Reserved { path: String },
    #[error("`{path}` ends like the path of a folder; leave out what comes after the file's name")]
    NamesAFolder { path: String },
    #[error("`{path}` is a {kind}; only regular files can be written")]
    NotWritable { path: String, kind: Kind },
    #[error("`{path}` is write-protected; leave it, or ask the person to change it")]
    WriteProtected { path: String },
    #[error(
        "`{path}`, or something on the way to it, is there and not a folder; choose another path"
    )]
    Occupied { path: String },
    #[error("`{path}` {problem}; {way_out}")]
    NotEdited {
        path: String,
        problem: String,
        way_out: &'static str,
    },
    #[error("`{path}` is not deleted: {reason}")]
    NotDeleted { path: String, reason: String },
    #[error("the `{argument}` cannot be used: {problem}")]
    UnusableArgument {
        argument: &'static str,
        problem: String,
    },
    #[error(transparent)]
    Trash(#[from] TrashError),
    #[error("lango has no permission to open `{path}`; its owner has to allow it")]
    Forbidden { path: String },
    #[error("`{path}` cannot be written: {cause}")]
    NotWritten { path: String, cause: io::Error },
    #[error("`{path}` cannot be opened: {cause}")]
    Failed { path: String, cause: io::Error },
}

impl FileError {
    /// What an error of the operating system means for `path`. `link` is what a link at its end says.
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

    /// Nothing is there, or nothing is where the link at the end of the path leads.
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
