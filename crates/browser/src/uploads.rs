//! Uploads. lango copies a workspace file into the browser's private directory, the only one that the browser can read,
//! and passes the copy to the page. Every upload of a sensitive file needs the user's approval ([`SensitiveFiles`]).

use crate::downloads::safe_name;
use crate::observe::{one_line, quote};
use crate::{ActionKind, ActionStep};
use lango_core::{GuardedTarget, ToolError};
use lango_sandbox::protection_of_path;
use lango_tools::{Workspace, WorkspaceEntry};
use rustix::fs::{Mode, OFlags};
use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Maximum size of an uploaded file.
const MAX_BYTES: u64 = 100 << 20;

/// Extensions of key files.
const KEY_EXTENSIONS: [&str; 10] = [
    "pem", "key", "p12", "pfx", "jks", "keystore", "kdbx", "ppk", "asc", "ovpn",
];
/// Parts of file names that suggest a secret, in lower case.
const SECRET_PARTS: [&str; 8] = [
    "secret",
    "credential",
    "password",
    "passwd",
    "token",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
];

/// The sensitive files that a call uploads, as paths with links resolved. The user must approve each upload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SensitiveFiles(Vec<PathBuf>);

impl SensitiveFiles {
    /// Finds the sensitive files among the uploads of the steps. Skips files that cannot be opened; their steps fail
    /// later.
    pub(crate) fn find(workspace: &Workspace, steps: &[ActionStep]) -> Self {
        let uploads = steps
            .iter()
            .filter(|step| step.action == ActionKind::Upload);
        let mut found = Vec::new();
        for path in uploads.flat_map(|step| &step.values) {
            if let Ok(WorkspaceEntry::File { path, .. }) = workspace.open_entry(path)
                && is_sensitive(&path)
                && !found.contains(&path)
            {
                found.push(path);
            }
        }
        Self(found)
    }

    /// Returns what the user must approve; `None` if no file is sensitive.
    pub(crate) fn target(&self, host: &str) -> Option<GuardedTarget> {
        let first = self.0.first()?;
        let names: Vec<String> = self.0.iter().map(|path| quote_path(path)).collect();
        let reason = format!(
            "{} would be uploaded to `{host}` and may contain secrets",
            names.join(", ")
        );
        Some(GuardedTarget {
            path: first.to_string_lossy().into(),
            reason: reason.into(),
        })
    }

    /// Fails if a file is sensitive but not part of the approval.
    fn expect(&self, path: &Path) -> Result<(), ToolError> {
        if !is_sensitive(path) || self.0.iter().any(|known| known == path) {
            return Ok(());
        }
        let path = quote_path(path);
        Err(ToolError::new(format!(
            "{path} was not uploaded: it may contain secrets, and the user has not approved it; call again"
        )))
    }
}

/// Returns whether a file is hidden, is acted on by other programs, or is named like a key or secret.
fn is_sensitive(path: &Path) -> bool {
    let is_hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
    let name = path.file_name().unwrap_or_default();
    let name = name.to_string_lossy().to_ascii_lowercase();
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    path.iter().any(is_hidden)
        || protection_of_path(path).is_some()
        || KEY_EXTENSIONS.contains(&ending)
        || SECRET_PARTS.iter().any(|part| name.contains(part))
}

fn quote_path(path: &Path) -> String {
    quote(&one_line(&path.to_string_lossy()))
}

/// Copies a file under its own name into a new folder, and returns its path relative to `directory`. Creates everything
/// relative to open handles, because a page that has compromised the browser may rename files there.
pub(crate) fn stage(
    workspace: &Workspace,
    path: &str,
    directory: &OwnedFd,
    sensitive: &SensitiveFiles,
) -> Result<PathBuf, ToolError> {
    let (file, size) = match workspace.open_entry(path)? {
        WorkspaceEntry::File {
            file,
            size,
            path: own_path,
        } => {
            // The path may lead to a different file than at the time of the approval.
            sensitive.expect(&own_path)?;
            (file, size)
        }
        WorkspaceEntry::Folder => {
            let text = format!("`{path}` is a folder; only files can be uploaded");
            return Err(ToolError::new(text));
        }
    };
    if size > MAX_BYTES {
        let text = format!("`{path}` is larger than 100 MiB, the limit for uploads");
        return Err(ToolError::new(text));
    }
    let name = Path::new(path).file_name().unwrap_or_default();
    let name = safe_name(&name.to_string_lossy());
    let copy = || -> io::Result<PathBuf> {
        let folder = format!("{:016x}", RandomState::new().hash_one(path));
        rustix::fs::mkdirat(directory, &folder, Mode::RWXU)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(directory, &folder, flags, Mode::empty())?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let created = rustix::fs::openat(&opened, &name, flags, Mode::RUSR | Mode::WUSR)?;
        let mut created = File::from(created);
        io::copy(&mut file.take(MAX_BYTES), &mut created)?;
        Ok(Path::new(&folder).join(&name))
    };
    copy().map_err(|error| ToolError::new(format!("`{path}` could not be copied: {error}")))
}

#[cfg(test)]
mod tests {
    use crate::launch::PrivateDirectory;

    #[test]
    fn replacing_the_browsers_folders_by_links_has_no_effect() {
        let parent = tempfile::tempdir().unwrap();
        let private = PrivateDirectory::create(parent.path()).unwrap();
        let outside = tempfile::tempdir().unwrap();
        for folder in [private.uploads(), private.downloads()] {
            std::fs::rename(&folder, folder.with_extension("moved")).unwrap();
            std::os::unix::fs::symlink(outside.path(), &folder).unwrap();
        }
        let workspace = tempfile::tempdir().unwrap();
        std::fs::write(workspace.path().join("a.txt"), "a").unwrap();
        let policy = lango_sandbox::Policy::of(workspace.path().canonicalize().unwrap());
        let workspace = lango_tools::Workspace::open(policy).unwrap();
        let staged = super::stage(
            &workspace,
            "a.txt",
            &private.uploads_handle(),
            &super::SensitiveFiles::default(),
        )
        .unwrap();
        assert_eq!(outside.path().read_dir().unwrap().count(), 0);
        let moved = private.uploads().with_extension("moved").join(staged);
        assert_eq!(std::fs::read_to_string(moved).unwrap(), "a");
    }

    #[test]
    fn hidden_protected_and_secret_files_are_sensitive() {
        let is_sensitive = |path: &str| super::is_sensitive(path.as_ref());
        for path in [
            ".env",
            "a/.ssh/id_rsa",
            ".git/config",
            "lango.toml",
            "keys/Server.PEM",
            "aws_credentials.csv",
        ] {
            assert!(is_sensitive(path), "{path}");
        }
        assert!(!is_sensitive("report.pdf") && !is_sensitive("photos/cat.png"));
    }
}
