//! The digest and the private copy of a skill's files. The approval of a script is bound to the digest of all files,
//! and the script runs from a copy with that digest. So a file that changes after the approval has no effect on the
//! run.
//!
//! Links to files of the skill are copied as files. Other links, and folders with generated files, are left out of both
//! the digest and the copy.

use super::SkillCard;
use super::files::SkillFiles;
use crate::entry_kind::EntryKind;
use cap_fs_ext::DirExt;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, Permissions, PermissionsExt};
use lango_core::{Text, ToolError};
use lango_sandbox::{Access, Policy};
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// Limits for a skill with scripts: number of entries, total size, and nesting depth of folders.
const MAX_ENTRIES: usize = 10_000;
const MAX_BYTES: u64 = 64 * 1024 * 1024;
const MAX_DEPTH: usize = 32;

/// Folders with generated files, which are not part of the skill.
const EXCLUDED: [&str; 2] = [".git", "__pycache__"];

/// Computes the SHA-256 of the names and contents of a skill's files.
pub(super) fn digest(files: &SkillFiles<'_>) -> Result<Text, ToolError> {
    let mut scan = FileScan::new(files);
    scan.add_folder(files.folder(), None, Path::new(""), 0)
        .map_err(|error| unusable(files.card(), &error))?;
    Ok(scan.finish())
}

/// A private copy of a skill's files.
pub(super) struct SkillCopy {
    folder: TempDir,
    pub(super) digest: Text,
}

impl SkillCopy {
    /// Copies the files to a temporary folder that commands under this policy cannot write to.
    pub(super) fn make(files: &SkillFiles<'_>, policy: &Policy) -> Result<Self, ToolError> {
        let card = files.card();
        let failed = |error: io::Error| unusable(card, &ContentError::Failed(error));
        let temporary = private_temporary_folder(policy).ok_or_else(|| {
            ToolError::new(format!(
                "the scripts of the skill `{}` cannot be run: commands have access to all folders for temporary files",
                card.name
            ))
        })?;
        let folder = tempfile::Builder::new()
            .prefix("lango-skill-")
            .tempdir_in(temporary)
            .map_err(failed)?;
        let copy = Dir::open_ambient_dir(folder.path(), ambient_authority()).map_err(failed)?;
        let mut scan = FileScan::new(files);
        scan.add_folder(files.folder(), Some(&copy), Path::new(""), 0)
            .map_err(|error| unusable(card, &error))?;
        Ok(Self {
            folder,
            digest: scan.finish(),
        })
    }

    /// Returns the card of the copied skill.
    pub(super) fn card(&self, original: &SkillCard) -> Result<SkillCard, ToolError> {
        let folder = self.folder.path().to_owned();
        let parent = folder.parent().unwrap_or(&folder);
        let parent = Dir::open_ambient_dir(parent, ambient_authority());
        let parent = parent.map_err(|error| unusable(original, &ContentError::Failed(error)))?;
        Ok(SkillCard {
            folder,
            parent: Arc::new(parent),
            ..original.clone()
        })
    }
}

/// Finds a folder for temporary files that commands can neither see nor change.
fn private_temporary_folder(policy: &Policy) -> Option<PathBuf> {
    let folders = [std::env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()];
    let folders = folders
        .into_iter()
        .filter_map(|folder| folder.canonicalize().ok());
    let is_private = |folder: &PathBuf| policy.access(&folder.join("lango-skill")) == Access::None;
    let is_hidden = |folder: &PathBuf| {
        policy
            .hidden
            .iter()
            .any(|hidden| folder.starts_with(hidden))
    };
    folders
        .into_iter()
        .find(|folder| is_private(folder) && !is_hidden(folder))
}

#[derive(Debug, thiserror::Error)]
enum ContentError {
    #[error("it has more than {MAX_ENTRIES} files and folders")]
    TooMany,
    #[error("its files are larger than {} MB together", MAX_BYTES / 1_000_000)]
    TooLarge,
    #[error("its folders are nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    #[error("{0}")]
    Failed(#[from] io::Error),
}

fn unusable(card: &SkillCard, error: &ContentError) -> ToolError {
    ToolError::new(format!(
        "the scripts of the skill `{}` cannot be run: {error}; continue without them, and tell the user",
        card.name
    ))
}

/// One pass over the files of a skill, which hashes and optionally copies them.
struct FileScan<'a> {
    /// The skill's folder; links are followed only below it.
    top: &'a Dir,
    hash: Sha256,
    entries: usize,
    bytes: u64,
}

impl<'a> FileScan<'a> {
    fn new(files: &'a SkillFiles<'_>) -> Self {
        Self {
            top: files.folder(),
            hash: Sha256::new(),
            entries: 0,
            bytes: 0,
        }
    }

    fn add_folder(
        &mut self,
        folder: &Dir,
        copy: Option<&Dir>,
        path: &Path,
        depth: usize,
    ) -> Result<(), ContentError> {
        if depth > MAX_DEPTH {
            return Err(ContentError::TooDeep);
        }
        for name in self.names(folder)? {
            let own = path.join(&name);
            if EXCLUDED.iter().any(|excluded| own.ends_with(excluded)) {
                continue;
            }
            match EntryKind::from(folder.symlink_metadata(&name)?.file_type()) {
                EntryKind::Folder => {
                    self.hash_entry(b"folder", &own);
                    let below = folder.open_dir_nofollow(&name)?;
                    let copy = match copy {
                        Some(copy) => {
                            copy.create_dir(&name)?;
                            Some(copy.open_dir(&name)?)
                        }
                        None => None,
                    };
                    self.add_folder(&below, copy.as_ref(), &own, depth + 1)?;
                }
                EntryKind::File | EntryKind::Link => self.add_file(copy, &own, &name)?,
                EntryKind::NamedPipe | EntryKind::Socket | EntryKind::Device | EntryKind::Other => {
                }
            }
        }
        Ok(())
    }

    /// Adds a file. For a link, adds the file of the skill that the link points to.
    fn add_file(
        &mut self,
        copy: Option<&Dir>,
        path: &Path,
        name: &OsString,
    ) -> Result<(), ContentError> {
        let Some((mut file, mode)) = open(self.top, path) else {
            return Ok(());
        };
        self.hash_entry(b"file", path);
        let mut written = match copy {
            Some(copy) => {
                let options = OpenOptions::new().write(true).create_new(true).clone();
                Some(copy.open_with(name, &options)?)
            }
            None => None,
        };
        let mut length = 0;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            length += count as u64;
            if self.bytes + length > MAX_BYTES {
                return Err(ContentError::TooLarge);
            }
            self.hash.update(&buffer[..count]);
            if let Some(written) = &mut written {
                written.write_all(&buffer[..count])?;
            }
        }
        self.bytes += length;
        self.hash.update(length.to_le_bytes());
        if let Some(written) = written {
            written.set_permissions(Permissions::from_mode(mode & 0o555))?;
        }
        Ok(())
    }

    fn names(&mut self, folder: &Dir) -> Result<Vec<OsString>, ContentError> {
        let mut names = Vec::new();
        for entry in folder.entries()? {
            names.push(entry?.file_name());
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(ContentError::TooMany);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn hash_entry(&mut self, kind: &[u8], path: &Path) {
        let path = path.as_os_str().as_encoded_bytes();
        self.hash.update(kind);
        self.hash.update((path.len() as u64).to_le_bytes());
        self.hash.update(path);
    }

    fn finish(self) -> Text {
        base16ct::lower::encode_string(&self.hash.finalize()).into()
    }
}

/// Opens a regular file below the skill's folder and returns it with its mode; `None` if the path leads outside or to
/// something other than a regular file.
fn open(top: &Dir, path: &Path) -> Option<(cap_std::fs::File, u32)> {
    use cap_fs_ext::OpenOptionsSyncExt;
    let is_file =
        |metadata: &cap_std::fs::Metadata| EntryKind::from(metadata.file_type()) == EntryKind::File;
    top.metadata(path).ok().filter(is_file)?;
    let options = OpenOptions::new().read(true).nonblock(true).clone();
    let file = top.open_with(path, &options).ok()?;
    let metadata = file.metadata().ok().filter(is_file)?;
    Some((file, metadata.permissions().mode()))
}
