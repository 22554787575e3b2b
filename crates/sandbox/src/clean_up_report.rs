//! The result of a clean-up, for whoever started the command.

use std::path::{Path, PathBuf};

/// The result of a clean-up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CleanUpReport {
    /// Protected files that the command created, and that are in the trash now; or deleted, if it cannot be reached.
    pub removed: Vec<PathBuf>,
    /// Protected files that appeared and are still in place; the user has to look at them.
    pub left: Vec<PathBuf>,
    /// Files whose setuid or setgid bits were cleared.
    pub cleared: Vec<PathBuf>,
    /// Protected links that the command removed or replaced; they are not created again.
    pub lost: Vec<PathBuf>,
    /// How many more there are of all four.
    pub unnamed: u64,
    /// Why a part of the writable directories was not checked, if so.
    pub incomplete: Option<String>,
}

impl CleanUpReport {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same with paths relative to a directory, as far as they lie in it.
    #[must_use]
    pub fn relative_to(&self, directory: &Path) -> Self {
        let relative = |paths: &[PathBuf]| -> Vec<PathBuf> {
            let paths = paths.iter();
            paths
                .map(|path| path.strip_prefix(directory).unwrap_or(path).to_path_buf())
                .collect()
        };
        Self {
            removed: relative(&self.removed),
            left: relative(&self.left),
            cleared: relative(&self.cleared),
            lost: relative(&self.lost),
            ..self.clone()
        }
    }

    /// What a user should be told, a sentence for each kind.
    pub fn remarks(&self) -> Vec<String> {
        let kinds = [
            (
                &self.removed,
                "moved to the trash, because other programs act on files of such names",
            ),
            (
                &self.left,
                "appeared while a command ran and still in place; other programs act on files of such names, so look at them",
            ),
            (
                &self.cleared,
                "setuid and setgid bits were cleared, because commands may not set them",
            ),
            (
                &self.lost,
                "links that a command removed or replaced; they are not created again",
            ),
        ];
        let mut remarks: Vec<String> = kinds
            .into_iter()
            .filter(|(paths, _)| !paths.is_empty())
            .map(|(paths, remark)| {
                let names: Vec<String> = paths
                    .iter()
                    .map(|path| format!("`{}`", path.display().to_string().escape_debug()))
                    .collect();
                format!("{}: {remark}", names.join(", "))
            })
            .collect();
        if self.unnamed > 0 {
            remarks.push(format!("and {} more files", self.unnamed));
        }
        if let Some(why) = &self.incomplete {
            remarks.push(format!(
                "the check for files that other programs act on is incomplete: {why}"
            ));
        }
        remarks
    }
}
