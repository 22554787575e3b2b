//! Visits the files below a folder in the order of their names.
//!
//! Each folder is opened from its parent's handle. `.gitignore` files are read the same way, including those above the
//! folder, and apply as in git: the nearest file with a matching rule decides, and rules do not apply across the border
//! of a repository.

use crate::entry_kind::EntryKind;
use crate::file_error::FileError;
use crate::folder::Folder;
use crate::target_path::TargetPath;
use crate::tree::MAX_DEPTH;
use cap_std::fs::DirEntry;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

/// Maximum number of entries that are visited.
const MAX_ENTRIES: u64 = 200_000;

/// Maximum number of bytes that are read of a `.gitignore`.
const GITIGNORE_BYTES: u64 = 1_000_000;

/// A file to search.
pub(super) struct Candidate<'f, 'a> {
    pub(super) folder: &'f Folder<'a>,
    pub(super) name: &'f OsStr,
    /// The path relative to the searched folder.
    pub(super) below: &'f Path,
}

/// The counts of a finished walk.
#[derive(Default)]
pub(super) struct FileWalk {
    pub(super) files: u64,
    pub(super) ignored: u64,
    pub(super) unreadable: u64,
    /// The limit that ended the walk early.
    pub(super) stopped_at: Option<&'static str>,
    entries: u64,
}

type Visit<'v> = &'v mut dyn FnMut(&Candidate<'_, '_>) -> ControlFlow<()>;

impl FileWalk {
    /// Visits the file at `target`, or all files below the folder there.
    pub(super) fn run(target: &TargetPath<'_>, visit: Visit<'_>) -> Result<Self, FileError> {
        let mut walk = Self::default();
        let kind = EntryKind::from(target.metadata()?.file_type());
        if kind != EntryKind::Folder {
            // Fails with the reason for anything but a regular file.
            target.open_file()?;
            if let Some((folder, name)) = target.parent_and_name() {
                walk.files = 1;
                let below = Path::new(name);
                let _ = visit(&Candidate {
                    folder,
                    name,
                    below,
                });
            }
            return Ok(walk);
        }
        let folder = target.open_folder()?;
        let ignores = ignores_above(&folder);
        // `stopped_at`, or the visitor, knows why the walk stopped.
        let _ = walk.go_into(&folder, Path::new(""), &ignores, 1, visit);
        Ok(walk)
    }

    fn go_into(
        &mut self,
        folder: &Folder<'_>,
        below: &Path,
        ignores_above: &[Gitignore],
        depth: usize,
        visit: Visit<'_>,
    ) -> ControlFlow<()> {
        if depth > MAX_DEPTH {
            self.stopped_at = Some("some folders are nested too deeply");
            return ControlFlow::Continue(());
        }
        let Ok(entries) = self.sorted_entries(folder) else {
            self.unreadable += 1;
            return ControlFlow::Continue(());
        };
        let ignores = with_own_ignores(folder, ignores_above);
        for (name, kind) in entries {
            let path = folder.path().join(&name);
            let below = below.join(&name);
            if is_ignored(&ignores, &path, kind == EntryKind::Folder) {
                self.ignored += 1;
                continue;
            }
            match kind {
                EntryKind::Folder if name.eq_ignore_ascii_case(".git") => {}
                EntryKind::Folder => match folder.child(&name) {
                    Ok(child) => self.go_into(&child, &below, &ignores, depth + 1, visit)?,
                    Err(_) => self.unreadable += 1,
                },
                EntryKind::File => {
                    self.files += 1;
                    visit(&Candidate {
                        folder,
                        name: &name,
                        below: &below,
                    })?;
                }
                _ => {}
            }
        }
        if self.entries > MAX_ENTRIES {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Returns the sorted entries of a folder, up to the limit, without those that the policy hides.
    fn sorted_entries(&mut self, folder: &Folder<'_>) -> io::Result<Vec<(OsString, EntryKind)>> {
        let mut entries = Vec::new();
        for entry in folder.entries()? {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                self.stopped_at = Some("it has more than 200000 entries");
                break;
            }
            let entry = entry?;
            entries.push((entry.file_name(), kind_of(&entry)));
        }
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(entries)
    }
}

fn kind_of(entry: &DirEntry) -> EntryKind {
    match entry.file_type().map_or(EntryKind::Other, EntryKind::from) {
        // Not every file system returns the kind along with the name.
        EntryKind::Other => entry
            .metadata()
            .map_or(EntryKind::Other, |metadata| metadata.file_type().into()),
        known => known,
    }
}

/// Reads the `.gitignore` files above a folder, outermost first.
fn ignores_above(folder: &Folder<'_>) -> Vec<Gitignore> {
    let roots = folder.roots();
    let mut above: Vec<_> = folder
        .path()
        .ancestors()
        .skip(1)
        .take_while(|path| roots.covers(path))
        .collect();
    above.reverse();
    let mut ignores = Vec::new();
    for path in above {
        if let Ok(folder) = roots.open_without_links(path) {
            ignores = with_own_ignores(&folder, &ignores);
        }
    }
    ignores
}

/// Adds a folder's own `.gitignore` to the rules from above, which do not apply if a repository starts here.
fn with_own_ignores(folder: &Folder<'_>, above: &[Gitignore]) -> Vec<Gitignore> {
    let is_repository = folder.dir().symlink_metadata(".git").is_ok();
    let mut ignores = if is_repository {
        Vec::new()
    } else {
        above.to_vec()
    };
    ignores.extend(read_gitignore(folder));
    ignores
}

fn read_gitignore(folder: &Folder<'_>) -> Option<Gitignore> {
    let (file, _) = folder.open_file(".gitignore".as_ref()).ok()?;
    let mut bytes = Vec::new();
    file.take(GITIGNORE_BYTES).read_to_end(&mut bytes).ok()?;
    let mut builder = GitignoreBuilder::new(folder.path());
    for line in String::from_utf8_lossy(&bytes).lines() {
        // Like git, ignore invalid lines.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}

fn is_ignored(ignores: &[Gitignore], path: &Path, is_folder: bool) -> bool {
    for ignore in ignores.iter().rev() {
        match ignore.matched(path, is_folder) {
            Match::None => {}
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
        }
    }
    false
}
