//! Downloads: the browser writes them into its private directory, and lango copies a finished one into the workspace. Only
//! a call that was allowed to act on the site may cause one; all others are cancelled.

use crate::notice::{Notices, shorten};
use lango_core::ToolError;
use lango_tools::Workspace;
use rustix::fs::{AtFlags, Mode, OFlags};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The largest download in bytes.
const MOST_BYTES: u64 = 100 << 20;
/// Downloads at the same time.
const MOST_DOWNLOADS: usize = 10;
/// The folder of the workspace that downloads are copied into.
const FOLDER: &str = "downloads";
/// The longest name of a file, in characters.
const LONGEST_NAME: usize = 100;

/// The downloads of a browser.
#[derive(Debug, Default)]
pub(crate) struct Downloads {
    pub(crate) are_allowed: bool,
    /// How many were started so far, those that were cancelled included.
    pub(crate) starts: u64,
    running: BTreeMap<Arc<str>, String>,
    finished: Vec<FinishedDownload>,
}

/// A download that is complete, under the browser's name in its private directory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FinishedDownload {
    id: Arc<str>,
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DownloadStart {
    guid: Arc<str>,
    suggested_filename: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DownloadProgress {
    guid: Arc<str>,
    received_bytes: f64,
    state: String,
}

/// What to do about a download.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DownloadReaction {
    Nothing,
    Cancel(Arc<str>),
}

impl Downloads {
    pub(crate) fn start(
        &mut self,
        start: DownloadStart,
        notices: &mut Notices,
    ) -> DownloadReaction {
        self.starts += 1;
        let name = safe_name(&start.suggested_filename);
        if !self.are_allowed {
            notices.add(format!(
                "the download of `{name}` was not saved: it was not asked for; use `browser_navigate` with `download`, or \
                 click its link with `browser_act`"
            ));
            return DownloadReaction::Cancel(start.guid);
        }
        if self.running.len() >= MOST_DOWNLOADS {
            notices.add(format!(
                "the download of `{name}` was not saved: too many run already"
            ));
            return DownloadReaction::Cancel(start.guid);
        }
        self.running.insert(start.guid, name);
        DownloadReaction::Nothing
    }

    pub(crate) fn progress(
        &mut self,
        progress: DownloadProgress,
        notices: &mut Notices,
    ) -> DownloadReaction {
        let Some(name) = self.running.get(&progress.guid) else {
            return DownloadReaction::Nothing;
        };
        if progress.received_bytes > MOST_BYTES as f64 {
            notices.add(format!(
                "the download of `{name}` was not saved: it is larger than 100 MiB"
            ));
            self.running.remove(&progress.guid);
            return DownloadReaction::Cancel(progress.guid);
        }
        match progress.state.as_str() {
            "completed" => {
                if let Some((id, name)) = self.running.remove_entry(&progress.guid) {
                    self.finished.push(FinishedDownload { id, name });
                }
            }
            "canceled" => {
                notices.add(format!(
                    "the download of `{name}` broke off, and was not saved"
                ));
                self.running.remove(&progress.guid);
            }
            _ => {}
        }
        DownloadReaction::Nothing
    }

    /// Whether one is under way.
    pub(crate) fn are_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// The names of those that are under way.
    pub(crate) fn running(&self) -> impl Iterator<Item = &str> {
        self.running.values().map(String::as_str)
    }

    /// Takes those that are complete.
    pub(crate) fn take_finished(&mut self) -> Vec<FinishedDownload> {
        std::mem::take(&mut self.finished)
    }
}

impl FinishedDownload {
    /// Copies it from the browser's directory into the workspace, and removes it there. Says where it is now, or why not.
    pub(crate) fn save(&self, directory: &OwnedFd, workspace: &Workspace) -> String {
        let saved = self.copy(directory, workspace);
        match saved {
            Ok((path, size)) => format!("downloaded `{path}` ({size} bytes)"),
            Err(error) => format!("the download of `{}` was not saved: {error}", self.name),
        }
    }

    fn copy(&self, directory: &OwnedFd, workspace: &Workspace) -> Result<(String, u64), ToolError> {
        let unreadable = |error: &dyn ToString| ToolError::new(error.to_string());
        // The browser may be taken over by a page: its names and files are not trusted.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if self.id.is_empty() || !self.id.chars().all(is_plain) {
            return Err(ToolError::trusted("the browser gave it no usable name"));
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, &*self.id, flags, Mode::empty())
            .map_err(|error| unreadable(&error))?;
        let file = File::from(file);
        let metadata = file.metadata().map_err(|error| unreadable(&error))?;
        if !metadata.is_file() || metadata.len() > MOST_BYTES {
            return Err(ToolError::trusted("it is not a file of up to 100 MiB"));
        }
        let saved = workspace.save_new(FOLDER, &self.name, &mut file.take(MOST_BYTES))?;
        // The directory goes with the browser anyway.
        let _ = rustix::fs::unlinkat(directory, &*self.id, AtFlags::empty());
        Ok((saved, metadata.len()))
    }
}

/// A name for a file, whatever the site calls it: one component, no leading dot, nothing that needs quotes.
pub(crate) fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = |c: char| {
        if c.is_alphanumeric() || "._- ()".contains(c) {
            c
        } else {
            '_'
        }
    };
    let plain: String = shorten(last).chars().map(plain).collect();
    let plain = plain.trim_matches(['.', ' ', '-']);
    let surplus = plain.chars().count().saturating_sub(LONGEST_NAME);
    // The ending stays.
    let cut: String = plain.chars().skip(surplus).collect();
    if cut.is_empty() {
        "download".to_owned()
    } else {
        cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_downloads_are_made_safe() {
        assert_eq!(safe_name("report.pdf"), "report.pdf");
        assert_eq!(safe_name("../../.git/config"), "config");
        assert_eq!(safe_name("..\\..\\.bashrc"), "bashrc");
        assert_eq!(safe_name("\u{202e}a\n;b.txt"), "_a _b.txt");
        assert_eq!(safe_name("..."), "download");
        let long = safe_name(&format!("{}.zip", "a".repeat(250)));
        assert!(long.chars().count() <= LONGEST_NAME && long.ends_with(".zip"));
    }

    #[test]
    fn a_download_that_was_not_asked_for_is_cancelled() {
        let (mut downloads, mut notices) = (Downloads::default(), Notices::default());
        let start = || DownloadStart {
            guid: "a-1".into(),
            suggested_filename: "x.zip".to_owned(),
        };
        let cancelled = downloads.start(start(), &mut notices);
        assert_eq!(cancelled, DownloadReaction::Cancel("a-1".into()));
        assert!(notices.take()[0].contains("was not saved"));
        downloads.are_allowed = true;
        let started = downloads.start(start(), &mut notices);
        assert_eq!(started, DownloadReaction::Nothing);
        let done = DownloadProgress {
            guid: "a-1".into(),
            received_bytes: 5.0,
            state: "completed".to_owned(),
        };
        downloads.progress(done, &mut notices);
        assert!(!downloads.are_running());
        assert_eq!(downloads.take_finished().len(), 1);
    }
}
