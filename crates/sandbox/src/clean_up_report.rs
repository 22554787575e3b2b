//! The result of a clean-up, for the caller who started the command.

use std::path::{Path, PathBuf};

/// The result of a clean-up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CleanUpReport {
    /// Protected files that the command created. They are in the trash now, or deleted if the launcher has no trash.
    pub removed: Vec<PathBuf>,
    /// Protected files that appeared and are still in place; the user should review them.
    pub remaining: Vec<PathBuf>,
    /// Files whose setuid or setgid bits were cleared.
    pub cleared: Vec<PathBuf>,
    /// Protected links that the command removed or replaced; they are not restored.
    pub lost_links: Vec<PathBuf>,
    /// Number of paths, of all four kinds, that did not fit into the lists.
    pub omitted: u64,
    /// Why part of the writable directories was not checked; `None` if all of them were.
    pub incomplete: Option<String>,
}

impl CleanUpReport {
    /// Whether there is nothing to report.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the report with paths inside `directory` made relative to it.
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
            remaining: relative(&self.remaining),
            cleared: relative(&self.cleared),
            lost_links: relative(&self.lost_links),
            ..self.clone()
        }
    }

    /// Formats the report for a user, one line for each kind of finding.
    pub fn remarks(&self) -> Vec<String> {
        let kinds = [
            (
                &self.removed,
                "moved to the trash, because other programs act on files with these names",
            ),
            (
                &self.remaining,
                "appeared while a command ran and were left in place; other programs act on files with these names, so review them",
            ),
            (
                &self.cleared,
                "setuid and setgid bits were cleared, because commands may not set them",
            ),
            (
                &self.lost_links,
                "links that a command removed or replaced; they are not restored",
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
        if self.omitted > 0 {
            remarks.push(format!("and {} more files", self.omitted));
        }
        if let Some(why) = &self.incomplete {
            remarks.push(format!(
                "the check for files that other programs act on is incomplete: {why}"
            ));
        }
        remarks
    }
}
