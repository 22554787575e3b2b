//! Resolves a path to a folder's handle and a name in it.
//!
//! Each component is opened from the handle before it, without following links. A link is read and its target replaces
//! it in the path, so the target obeys the same rules. Every step, links included, is checked against the policy. If
//! another process swaps an entry meanwhile, resolution may fail, but it cannot leave the allowed folders.

use crate::folder::Folder;
use crate::roots::Roots;
use cap_fs_ext::DirExt;
use lango_sandbox::Access;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};

/// Maximum number of links in one path, as on Linux.
const MAX_LINKS: usize = 40;

/// Maximum number of folders opened for one path. Going up with `..` reopens the folders above.
const MAX_STEPS: usize = 20_000;

/// Maximum total length of what [`FollowedLink::full_path`] returns for the links of one path. Only malicious links need
/// more.
const MAX_LINK_BYTES: usize = 64 * 1024;

/// What to do with a link at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinalLink {
    /// The path means the link itself.
    Keep,
    /// The path means the link's target.
    Follow,
}

/// The result of resolving a path.
#[derive(Debug)]
pub(crate) struct ResolvedPath<'a> {
    /// The last existing folder.
    pub(crate) folder: Folder<'a>,
    /// The names below `folder`. Empty if the path is the folder itself. One name if it is not a folder, is a link that
    /// is not followed, or does not exist. Several names if the first does not exist.
    pub(crate) names: Vec<OsString>,
    /// The lowest access that the policy gives to any link on the way.
    pub(crate) max_access: Access,
    /// All links on the way, at most [`MAX_LINKS`].
    pub(crate) links: Vec<FollowedLink>,
    /// The target of the link at the end of the path, if there was a link.
    pub(crate) link: Option<PathBuf>,
}

/// A link on the way of a path.
#[derive(Debug)]
pub(crate) struct FollowedLink {
    /// The absolute path of the link. Its folder is free of links.
    pub(crate) path: PathBuf,
    /// What follows the link in the path. It may contain `..` and further links.
    rest: PathBuf,
}

impl FollowedLink {
    /// Returns the whole path, as it was when resolution came to the link.
    pub(crate) fn full_path(&self) -> PathBuf {
        // Joining an empty path would add a slash.
        self.path.iter().chain(&self.rest).collect()
    }
}

/// Why a path could not be resolved.
#[derive(Debug)]
pub(crate) enum ResolveError {
    Outside,
    /// The path contains an entry that the policy hides.
    Hidden,
    Missing {
        link: Option<PathBuf>,
    },
    TooLong,
    Failed(io::Error),
}

impl From<io::Error> for ResolveError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Resolves `path`, which is relative to the workspace or absolute.
pub(crate) fn resolve<'a>(
    roots: &'a Roots,
    path: &Path,
    final_link: FinalLink,
) -> Result<ResolvedPath<'a>, ResolveError> {
    let (current, rest) = roots.start(path)?.ok_or(ResolveError::Outside)?;
    let mut resolver = Resolver {
        roots,
        current,
        remaining: VecDeque::new(),
        links: Vec::new(),
        link_bytes: 0,
        steps: 0,
        max_access: Access::Write,
        link: None,
    };
    resolver.push_components(rest);
    while let Some(part) = resolver.remaining.pop_front() {
        let names = match part {
            Part::Up => {
                resolver.go_up()?;
                continue;
            }
            Part::Name(name) => match resolver.enter(name, final_link)? {
                Some(names) => names,
                None => continue,
            },
        };
        return Ok(resolver.finish(names));
    }
    resolver.expect_visible(resolver.current.path())?;
    Ok(resolver.finish(Vec::new()))
}

#[derive(Debug)]
enum Part {
    Up,
    Name(OsString),
}

struct Resolver<'a> {
    roots: &'a Roots,
    current: Folder<'a>,
    remaining: VecDeque<Part>,
    links: Vec<FollowedLink>,
    /// The total length of the links with what follows them.
    link_bytes: usize,
    steps: usize,
    max_access: Access,
    link: Option<PathBuf>,
}

impl<'a> Resolver<'a> {
    /// Moves into the entry `name`. Returns the final names if resolution ends there.
    fn enter(
        &mut self,
        name: OsString,
        final_link: FinalLink,
    ) -> Result<Option<Vec<OsString>>, ResolveError> {
        let path = self.current.path().join(&name);
        let access = self.expect_visible(&path)?;
        if self.remaining.is_empty() && final_link == FinalLink::Keep {
            return Ok(Some(vec![name]));
        }
        self.count_steps(1)?;
        let error = match self.current.dir().open_dir_nofollow(&name) {
            Ok(dir) => {
                self.current = Folder::new(self.roots, dir, path);
                return Ok(None);
            }
            Err(error) => error,
        };
        if let Ok(target) = self.current.dir().read_link_contents(&name) {
            self.push_link(path, access)?;
            self.follow(target)?;
            return Ok(None);
        }
        match error.kind() {
            io::ErrorKind::NotFound => self.missing_names(name).map(Some),
            io::ErrorKind::NotADirectory if self.remaining.is_empty() => Ok(Some(vec![name])),
            _ => Err(error.into()),
        }
    }

    /// Notes a link. The policy applies to its name and to the path that it is part of, because other programs may know
    /// the target by that path.
    fn push_link(&mut self, path: PathBuf, access: Access) -> Result<(), ResolveError> {
        let rest = self.remaining.iter().map(|part| match part {
            Part::Up => OsStr::new(".."),
            Part::Name(name) => name,
        });
        let rest: PathBuf = rest.collect();
        self.link_bytes += path.as_os_str().len() + rest.as_os_str().len();
        if self.link_bytes > MAX_LINK_BYTES {
            return Err(ResolveError::TooLong);
        }
        let link = FollowedLink { path, rest };
        let has_parents = link.rest.iter().any(|part| part == "..");
        let named = if has_parents {
            access
        } else {
            self.roots.access(&link.full_path())
        };
        self.max_access = self.max_access.min(access).min(named);
        self.links.push(link);
        Ok(())
    }

    /// Replaces a link by its target in the remaining path.
    fn follow(&mut self, target: PathBuf) -> Result<(), ResolveError> {
        if self.links.len() > MAX_LINKS {
            return Err(ResolveError::Failed(rustix::io::Errno::LOOP.into()));
        }
        if target.is_absolute() {
            let (root, rest) = self.roots.start(&target)?.ok_or(ResolveError::Outside)?;
            self.current = root;
            self.push_link_target(rest, &target);
        } else {
            self.push_link_target(&target, &target);
        }
        Ok(())
    }

    fn push_link_target(&mut self, rest: &Path, target: &Path) {
        if self.remaining.is_empty() && self.link.is_none() {
            self.link = Some(target.to_owned());
        }
        self.push_components(rest);
    }

    fn push_components(&mut self, path: &Path) {
        for component in path.components().rev() {
            match component {
                Component::Normal(name) => self.remaining.push_front(Part::Name(name.to_owned())),
                Component::ParentDir => self.remaining.push_front(Part::Up),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
    }

    /// Opens the parent folder, starting from its root: if the current folder was moved meanwhile, its real parent may
    /// be a different one.
    fn go_up(&mut self) -> Result<(), ResolveError> {
        let above = self
            .current
            .path()
            .parent()
            .ok_or(ResolveError::Outside)?
            .to_owned();
        let (root, rest) = self.roots.start(&above)?.ok_or(ResolveError::Outside)?;
        self.count_steps(rest.iter().count())?;
        let mut folder = root;
        for name in rest {
            folder = folder.child(name)?;
        }
        self.current = folder;
        Ok(())
    }

    /// Returns `name`, which does not exist, and the remaining names below it. Fails if `..` is among them.
    fn missing_names(&mut self, name: OsString) -> Result<Vec<OsString>, ResolveError> {
        let mut names = vec![name];
        for part in self.remaining.drain(..) {
            match part {
                Part::Name(name) => names.push(name),
                Part::Up => {
                    return Err(ResolveError::Missing {
                        link: self.link.take(),
                    });
                }
            }
        }
        let path = names.iter().fold(self.current.path().to_owned(), join);
        self.expect_visible(&path)?;
        Ok(names)
    }

    fn expect_visible(&self, path: &Path) -> Result<Access, ResolveError> {
        match self.roots.access(path) {
            Access::None if self.roots.covers(path) => Err(ResolveError::Hidden),
            Access::None => Err(ResolveError::Outside),
            access => Ok(access),
        }
    }

    fn count_steps(&mut self, steps: usize) -> Result<(), ResolveError> {
        self.steps += steps;
        if self.steps > MAX_STEPS {
            Err(ResolveError::TooLong)
        } else {
            Ok(())
        }
    }

    fn finish(self, names: Vec<OsString>) -> ResolvedPath<'a> {
        ResolvedPath {
            folder: self.current,
            names,
            max_access: self.max_access,
            links: self.links,
            link: self.link,
        }
    }
}

fn join(path: PathBuf, name: impl AsRef<OsStr>) -> PathBuf {
    path.join(name.as_ref())
}
