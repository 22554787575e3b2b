//! All files of a skill as one content: its digest is what an approval of a script is bound to, and a private copy of the
//! files with that digest is what runs. A file that changes in between changes nothing of the copy.
//!
//! Links to files of the skill are copied as files. Other links, and folders that programs write by themselves, are left
//! out of both the digest and the copy.

use super::SkillCard;
use super::files::SkillFiles;
use crate::kind::Kind;
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

/// How many entries a skill with scripts has, how many bytes, and how deep they lie.
const MOST_ENTRIES: usize = 10_000;
const MOST_BYTES: u64 = 64 * 1024 * 1024;
const DEEPEST: usize = 32;

/// Folders whose content nobody wrote for the skill.
const LEFT_OUT: [&str; 2] = [".git", "__pycache__"];

/// The SHA-256 of a skill's files, with their names.
pub(super) fn digest(files: &SkillFiles<'_>) -> Result<Text, ToolError> {
    let mut pass = Pass::new(files);
    pass.folder(files.folder(), None, Path::new(""), 0)
        .map_err(|problem| unusable(files.card(), &problem))?;
    Ok(pass.finish())
}

/// A private copy of a skill's files.
pub(super) struct SkillCopy {
    folder: TempDir,
    pub(super) digest: Text,
}

impl SkillCopy {
    /// Copies the files to where commands under this policy can only read them.
    pub(super) fn make(files: &SkillFiles<'_>, policy: &Policy) -> Result<Self, ToolError> {
        let card = files.card();
        let failed = |error: io::Error| unusable(card, &Problem::Failed(error));
        let place = private_place(policy).ok_or_else(|| {
            ToolError::new(format!(
                "the scripts of the skill `{}` cannot be run: the folders for temporary files can be reached by commands",
                card.name
            ))
        })?;
        let folder = tempfile::Builder::new()
            .prefix("lango-skill-")
            .tempdir_in(place)
            .map_err(failed)?;
        let copy = Dir::open_ambient_dir(folder.path(), ambient_authority()).map_err(failed)?;
        let mut pass = Pass::new(files);
        pass.folder(files.folder(), Some(&copy), Path::new(""), 0)
            .map_err(|problem| unusable(card, &problem))?;
        Ok(Self {
            folder,
            digest: pass.finish(),
        })
    }

    /// The card of the copied skill.
    pub(super) fn card(&self, original: &SkillCard) -> Result<SkillCard, ToolError> {
        let folder = self.folder.path().to_owned();
        let above = folder.parent().unwrap_or(&folder);
        let above = Dir::open_ambient_dir(above, ambient_authority());
        let above = above.map_err(|error| unusable(original, &Problem::Failed(error)))?;
        Ok(SkillCard {
            folder,
            above: Arc::new(above),
            ..original.clone()
        })
    }
}

/// A folder for temporary files that commands neither see nor change.
fn private_place(policy: &Policy) -> Option<PathBuf> {
    let places = [std::env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()];
    let places = places
        .into_iter()
        .filter_map(|place| place.canonicalize().ok());
    let is_private = |place: &PathBuf| policy.access(&place.join("lango-skill")) == Access::None;
    let is_hidden = |place: &PathBuf| policy.hidden.iter().any(|hidden| place.starts_with(hidden));
    places
        .into_iter()
        .find(|place| is_private(place) && !is_hidden(place))
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("it has more than {MOST_ENTRIES} files and folders")]
    TooMany,
    #[error("its files have more than {} MB", MOST_BYTES / 1_000_000)]
    TooLarge,
    #[error("its folders lie deeper than {DEEPEST} within each other")]
    TooDeep,
    #[error("{0}")]
    Failed(#[from] io::Error),
}

fn unusable(card: &SkillCard, problem: &Problem) -> ToolError {
    ToolError::new(format!(
        "the scripts of the skill `{}` cannot be run: {problem}; do without, and say so",
        card.name
    ))
}

/// One pass over the files.
struct Pass<'a> {
    /// The skill's folder, below which links are followed.
    top: &'a Dir,
    hash: Sha256,
    entries: usize,
    bytes: u64,
}

impl<'a> Pass<'a> {
    fn new(files: &'a SkillFiles<'_>) -> Self {
        Self {
            top: files.folder(),
            hash: Sha256::new(),
            entries: 0,
            bytes: 0,
        }
    }

    fn folder(
        &mut self,
        folder: &Dir,
        copy: Option<&Dir>,
        path: &Path,
        depth: usize,
    ) -> Result<(), Problem> {
        if depth > DEEPEST {
            return Err(Problem::TooDeep);
        }
        for name in self.names(folder)? {
            let own = path.join(&name);
            if LEFT_OUT.iter().any(|left_out| own.ends_with(left_out)) {
                continue;
            }
            match Kind::from(folder.symlink_metadata(&name)?.file_type()) {
                Kind::Folder => {
                    self.note(b"folder", &own);
                    let below = folder.open_dir_nofollow(&name)?;
                    let copy = match copy {
                        Some(copy) => {
                            copy.create_dir(&name)?;
                            Some(copy.open_dir(&name)?)
                        }
                        None => None,
                    };
                    self.folder(&below, copy.as_ref(), &own, depth + 1)?;
                }
                Kind::File | Kind::Link => self.file(copy, &own, &name)?,
                Kind::NamedPipe | Kind::Socket | Kind::Device | Kind::Other => {}
            }
        }
        Ok(())
    }

    /// A file, or the file of the skill that a link leads to.
    fn file(&mut self, copy: Option<&Dir>, path: &Path, name: &OsString) -> Result<(), Problem> {
        let Some((mut file, mode)) = open(self.top, path) else {
            return Ok(());
        };
        self.note(b"file", path);
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
            if self.bytes + length > MOST_BYTES {
                return Err(Problem::TooLarge);
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

    fn names(&mut self, folder: &Dir) -> Result<Vec<OsString>, Problem> {
        let mut names = Vec::new();
        for entry in folder.entries()? {
            names.push(entry?.file_name());
            self.entries += 1;
            if self.entries > MOST_ENTRIES {
                return Err(Problem::TooMany);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn note(&mut self, kind: &[u8], path: &Path) {
        let path = path.as_os_str().as_encoded_bytes();
        self.hash.update(kind);
        self.hash.update((path.len() as u64).to_le_bytes());
        self.hash.update(path);
    }

    fn finish(self) -> Text {
        let bytes = self.hash.finalize();
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        digits.into()
    }
}

/// The regular file of this path below the skill's folder, with its permissions; none if it leads out of the folder or
/// to something else.
fn open(top: &Dir, path: &Path) -> Option<(cap_std::fs::File, u32)> {
    use cap_fs_ext::OpenOptionsSyncExt;
    let is_file = |metadata: &cap_std::fs::Metadata| Kind::from(metadata.file_type()) == Kind::File;
    top.metadata(path).ok().filter(is_file)?;
    let options = OpenOptions::new().read(true).nonblock(true).clone();
    let file = top.open_with(path, &options).ok()?;
    let metadata = file.metadata().ok().filter(is_file)?;
    Some((file, metadata.permissions().mode()))
}
