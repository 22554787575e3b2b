//! Why a file tool gave nothing back, in words for the model: what is wrong and what to call instead.

use crate::kind::Kind;
use lango_core::ToolError;

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
    #[error("lango has no permission to open `{path}`; its owner has to allow it")]
    Forbidden { path: String },
    #[error("`{path}` cannot be opened: {cause}")]
    Failed { path: String, cause: std::io::Error },
}

impl From<FileError> for ToolError {
    fn from(error: FileError) -> Self {
        Self::new(error.to_string())
    }
}
