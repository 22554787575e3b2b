//! Downloads. The browser writes them into its private directory, and lango copies completed ones into the workspace.
//!
//! During a call that may act on a site, its tab, and every tab that it opens, may start a few downloads. lango cancels
//! all other downloads.

use crate::address::host_of;
use crate::notice::{Notices, shorten};
use crate::tabs::TabId;
use lango_core::ToolError;
use lango_sandbox::protection_of_path;
use lango_tools::Workspace;
use rustix::fs::{AtFlags, Mode, OFlags};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

/// Maximum size of a download.
const MAX_BYTES: u64 = 100 << 20;
/// Maximum number of downloads per call.
const MAX_PER_CALL: usize = 3;
/// Maximum number of concurrent downloads, including those of earlier calls.
const MAX_DOWNLOADS: usize = 10;
/// The workspace folder for downloads.
const FOLDER: &str = "downloads";
/// Maximum length of a file name, in characters.
const MAX_NAME_CHARS: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct Downloads {
    permit: Option<DownloadPermit>,
    /// Number of started downloads, including cancelled ones.
    pub(crate) starts: u64,
    running: BTreeMap<Arc<str>, DownloadSource>,
    finished: Vec<FinishedDownload>,
}

/// The running call's permission to save downloads.
#[derive(Debug)]
struct DownloadPermit {
    tab: TabId,
    /// The only host whose files may be saved; `None` for any.
    host: Option<String>,
    left: usize,
}

/// The name of a download and the host that sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DownloadSource {
    name: String,
    /// `None` for data that a page itself contains.
    host: Option<String>,
}

/// A completed download, stored in the browser's private directory under the browser's id for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FinishedDownload {
    id: Arc<str>,
    source: DownloadSource,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DownloadStart {
    pub(crate) frame_id: Arc<str>,
    guid: Arc<str>,
    url: String,
    suggested_filename: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DownloadProgress {
    guid: Arc<str>,
    received_bytes: f64,
    state: String,
}

/// The origin of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DownloadOrigin {
    /// The tab whose downloads are permitted.
    PermittedTab,
    /// A web page of another tab.
    OtherTab,
    /// A page of the workspace, which may not download anything.
    Workspace,
}

/// What to do about a download.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DownloadReaction {
    Nothing,
    Cancel(Arc<str>),
}

impl DownloadPermit {
    /// Returns whether the permit covers files from this source.
    fn covers(&self, source: &DownloadSource) -> bool {
        match (&self.host, &source.host) {
            (Some(permitted), Some(host)) => permitted == host,
            (None, _) | (_, None) => true,
        }
    }
}

impl Downloads {
    /// Permits downloads of a tab until [`Self::forbid`]; only those from `host`, if it is given.
    pub(crate) fn permit(&mut self, tab: TabId, host: Option<&str>) {
        self.permit = Some(DownloadPermit {
            tab,
            host: host.map(str::to_owned),
            left: MAX_PER_CALL,
        });
    }

    /// Revokes the permission: downloads that start from now on are cancelled.
    pub(crate) fn forbid(&mut self) {
        self.permit = None;
    }

    /// Returns the tab whose downloads are permitted.
    pub(crate) fn permitted_tab(&self) -> Option<TabId> {
        self.permit.as_ref().map(|permit| permit.tab)
    }

    /// Decides whether a new download may run, and adds a notice if not.
    pub(crate) fn start(
        &mut self,
        start: DownloadStart,
        origin: DownloadOrigin,
        notices: &mut Notices,
    ) -> DownloadReaction {
        self.starts += 1;
        let source = DownloadSource::of(&start);
        let is_permitted_tab = origin == DownloadOrigin::PermittedTab;
        let permit = self.permit.as_mut().filter(|_| is_permitted_tab);
        let problem = match permit {
            None if origin == DownloadOrigin::Workspace => {
                "pages of the workspace cannot download files; read the file in the workspace directly"
            }
            None => {
                "no call asked for it; use `browser_navigate` with `download`, or click its link with `browser_act`"
            }
            Some(permit) if !permit.covers(&source) => {
                "it comes from a site that the call may not act on; use `browser_navigate` with `download` and its link"
            }
            Some(permit) if permit.left == 0 => {
                "a call can save at most 3 downloads; make another call for it"
            }
            Some(_) if self.running.len() >= MAX_DOWNLOADS => {
                "10 downloads are already running, which is the limit; try again later"
            }
            Some(permit) => {
                permit.left -= 1;
                self.running.insert(start.guid, source);
                return DownloadReaction::Nothing;
            }
        };
        notices.add(source.refusal(problem));
        DownloadReaction::Cancel(start.guid)
    }

    pub(crate) fn progress(
        &mut self,
        progress: DownloadProgress,
        notices: &mut Notices,
    ) -> DownloadReaction {
        let Some(source) = self.running.get(&progress.guid) else {
            return DownloadReaction::Nothing;
        };
        if progress.received_bytes > MAX_BYTES as f64 {
            notices.add(source.refusal("it is larger than 100 MiB"));
            self.running.remove(&progress.guid);
            return DownloadReaction::Cancel(progress.guid);
        }
        match progress.state.as_str() {
            "completed" => {
                if let Some((id, source)) = self.running.remove_entry(&progress.guid) {
                    self.finished.push(FinishedDownload { id, source });
                }
            }
            "canceled" => {
                notices.add(source.refusal("the connection was lost; try again"));
                self.running.remove(&progress.guid);
            }
            _ => {}
        }
        DownloadReaction::Nothing
    }

    pub(crate) fn has_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Adds a notice for each running download.
    pub(crate) fn note_running(&self, notices: &mut Notices) {
        for source in self.running.values() {
            notices.add(format!("{source} is still running; a later call saves it"));
        }
    }

    /// Removes and returns the completed downloads.
    pub(crate) fn take_finished(&mut self) -> Vec<FinishedDownload> {
        std::mem::take(&mut self.finished)
    }
}

impl DownloadSource {
    fn of(start: &DownloadStart) -> Self {
        let url = start.url.strip_prefix("blob:").unwrap_or(&start.url);
        Self {
            name: safe_name(&start.suggested_filename),
            host: host_of(url),
        }
    }

    fn origin(&self) -> &str {
        self.host.as_deref().unwrap_or("the page itself")
    }

    fn refusal(&self, reason: &str) -> String {
        format!("{self} was not saved: {reason}")
    }
}

impl std::fmt::Display for DownloadSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the download of `{}` from `{}`",
            self.name,
            self.origin()
        )
    }
}

impl FinishedDownload {
    /// Moves the file from the browser's directory into the workspace. Returns a notice with the file's path, or with
    /// the reason why it was not saved.
    pub(crate) fn save(&self, directory: &OwnedFd, workspace: &Workspace) -> String {
        let saved = self.copy(directory, workspace);
        match saved {
            Ok((path, size)) => format!(
                "downloaded `{path}` ({size} bytes) from `{}`",
                self.source.origin()
            ),
            Err(error) => self.source.refusal(&error.to_string()),
        }
    }

    fn copy(&self, directory: &OwnedFd, workspace: &Workspace) -> Result<(String, u64), ToolError> {
        let unreadable = |error: &dyn ToString| ToolError::new(error.to_string());
        // A page may have compromised the browser, so the browser's names and files are untrusted.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if self.id.is_empty() || !self.id.chars().all(is_plain) {
            return Err(ToolError::trusted(
                "the browser stored it under an invalid name",
            ));
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, &*self.id, flags, Mode::empty())
            .map_err(|error| unreadable(&error))?;
        let file = File::from(file);
        let metadata = file.metadata().map_err(|error| unreadable(&error))?;
        if !metadata.is_file() || metadata.len() > MAX_BYTES {
            return Err(ToolError::trusted(
                "it is not a regular file, or larger than 100 MiB",
            ));
        }
        let saved = workspace.save_new(FOLDER, &self.source.name, &mut file.take(MAX_BYTES))?;
        // The directory is removed with the browser anyway.
        let _ = rustix::fs::unlinkat(directory, &*self.id, AtFlags::empty());
        Ok((saved, metadata.len()))
    }
}

/// Derives a safe file name from the one that the site suggests: one path component, no leading dot, no characters that
/// need quoting, and not a name that other programs act on.
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
    let surplus = plain.chars().count().saturating_sub(MAX_NAME_CHARS);
    // Cutting at the front keeps the extension.
    let cut: String = plain.chars().skip(surplus).collect();
    if cut.is_empty() {
        "download".to_owned()
    } else if protection_of_path(Path::new(&cut)).is_some() {
        format!("{cut}.download")
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
        assert_eq!(safe_name("\u{202e}a\n;b.txt"), "a _b.txt");
        assert_eq!(safe_name("..."), "download");
        assert_eq!(safe_name("AGENTS.md"), "AGENTS.md.download");
        assert_eq!(safe_name("x.code-workspace"), "x.code-workspace.download");
        let long = safe_name(&format!("{}.zip", "a".repeat(250)));
        assert!(long.chars().count() <= MAX_NAME_CHARS && long.ends_with(".zip"));
    }

    #[test]
    fn a_download_that_no_call_permits_is_cancelled() {
        let (mut downloads, mut notices) = (Downloads::default(), Notices::default());
        let start = || DownloadStart {
            frame_id: "f".into(),
            guid: "a-1".into(),
            url: "blob:http://a.test/1".to_owned(),
            suggested_filename: "x.zip".to_owned(),
        };
        let cancelled = downloads.start(start(), DownloadOrigin::PermittedTab, &mut notices);
        assert_eq!(cancelled, DownloadReaction::Cancel("a-1".into()));
        let notice = &notices.take()[0];
        assert!(
            notice.starts_with("the download of `x.zip` from `a.test` was not saved"),
            "{notice}"
        );
        downloads.permit(TabId::default(), Some("b.test"));
        let cancelled = downloads.start(start(), DownloadOrigin::PermittedTab, &mut notices);
        assert_eq!(cancelled, DownloadReaction::Cancel("a-1".into()));
        downloads.permit(TabId::default(), Some("a.test"));
        let cancelled = downloads.start(start(), DownloadOrigin::OtherTab, &mut notices);
        assert_eq!(cancelled, DownloadReaction::Cancel("a-1".into()));
        let cancelled = downloads.start(start(), DownloadOrigin::Workspace, &mut notices);
        assert_eq!(cancelled, DownloadReaction::Cancel("a-1".into()));
        let started = downloads.start(start(), DownloadOrigin::PermittedTab, &mut notices);
        assert_eq!(started, DownloadReaction::Nothing);
        let done = DownloadProgress {
            guid: "a-1".into(),
            received_bytes: 5.0,
            state: "completed".to_owned(),
        };
        downloads.progress(done, &mut notices);
        assert!(!downloads.has_running());
        assert_eq!(downloads.take_finished().len(), 1);
    }
}
