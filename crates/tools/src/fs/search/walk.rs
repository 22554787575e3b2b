//! The files below a folder, one after the other in the order of their names.
//!
//! Each folder is opened from the handle of the one above it. `.gitignore` files are read the same way, those above
//! the folder included, and obeyed as git does: the nearest that speaks of an entry decides, and none speaks across
//! the border of a repository.

use crate::file_error::FileError;
use crate::folder::Folder;
use crate::kind::Kind;
use crate::spot::Spot;
use crate::tree::DEEPEST;
use cap_std::fs::DirEntry;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

/// How many entries are looked at.
const MOST_ENTRIES: u64 = 200_000;

/// How much of a `.gitignore` is read.
const GITIGNORE_BYTES: u64 = 1_000_000;

/// A file that was come across.
pub(super) struct Candidate<'f, 'a> {
    /// The folder it is in.
    pub(super) folder: &'f Folder<'a>,
    pub(super) name: &'f OsStr,
    /// Its path below the folder that is searched.
    pub(super) below: &'f Path,
}

/// What there was on the way.
#[derive(Default)]
pub(super) struct Walk {
    pub(super) files: u64,
    pub(super) ignored: u64,
    pub(super) unreadable: u64,
    /// What ended it too early.
    pub(super) stopped_at: Option<&'static str>,
    entries: u64,
}

type Visit<'v> = &'v mut dyn FnMut(&Candidate<'_, '_>) -> ControlFlow<()>;

impl Walk {
    /// Visits the file at `spot`, or all files below the folder there.
    pub(super) fn over(spot: &Spot<'_>, visit: Visit<'_>) -> Result<Self, FileError> {
        let mut walk = Self::default();
        let kind = Kind::from(spot.metadata()?.file_type());
        if kind != Kind::Folder {
            // Anything but a regular file is refused here, with the reason.
            spot.open_file()?;
            if let Some((folder, name)) = spot.parent_and_name() {
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
        let folder = spot.open_folder()?;
        let ignores = ignores_above(&folder);
        // Who is told to stop knows why.
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
        if depth > DEEPEST {
            self.stopped_at = Some("some folders lie too deep");
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
            if is_ignored(&ignores, &path, kind == Kind::Folder) {
                self.ignored += 1;
                continue;
            }
            match kind {
                Kind::Folder if name.eq_ignore_ascii_case(".git") => {}
                Kind::Folder => match folder.child(&name) {
                    Ok(child) => self.go_into(&child, &below, &ignores, depth + 1, visit)?,
                    Err(_) => self.unreadable += 1,
                },
                Kind::File => {
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
        match self.entries > MOST_ENTRIES {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// The entries that may be seen, as many as may still be looked at.
    fn sorted_entries(&mut self, folder: &Folder<'_>) -> io::Result<Vec<(OsString, Kind)>> {
        let mut entries = Vec::new();
        for entry in folder.entries()? {
            self.entries += 1;
            if self.entries > MOST_ENTRIES {
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

fn kind_of(entry: &DirEntry) -> Kind {
    match entry.file_type().map_or(Kind::Other, Kind::from) {
        // Not every file system tells the kind along with the name.
        Kind::Other => entry
            .metadata()
            .map_or(Kind::Other, |metadata| metadata.file_type().into()),
        known => known,
    }
}

/// What the `.gitignore` files above a folder say, the outermost first.
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

/// What holds in a folder: what its own `.gitignore` says, after what holds above unless a repository begins here.
fn with_own_ignores(folder: &Folder<'_>, above: &[Gitignore]) -> Vec<Gitignore> {
    let is_repository = folder.dir().symlink_metadata(".git").is_ok();
    let mut ignores = match is_repository {
        true => Vec::new(),
        false => above.to_vec(),
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
        // A line that says nothing sensible says nothing, as for git.
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
