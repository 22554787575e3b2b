//! The way from a path's text to a folder's handle and a name in it.
//!
//! One component at a time, each opened from the handle before it and none followed: a link is read and its text put
//! in its own place, so it obeys the same rules as the path it stands in. What another process swaps meanwhile can
//! make the way end, not lead it out. Every step is held against the policy, links on the way included.

use crate::folder::Folder;
use crate::roots::Roots;
use cap_fs_ext::DirExt;
use lango_sandbox::Access;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};

/// How many links one path may pass, as on Linux.
const MOST_LINKS: usize = 40;

/// How many folders one path may open; going up opens the folders above again.
const MOST_STEPS: usize = 20_000;

/// What to do with a link that a path ends at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    /// It is what was meant.
    Itself,
    /// What it leads to was meant.
    Followed,
}

/// Where a path leads.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    /// The last folder on the way.
    pub(crate) folder: Folder<'a>,
    /// What comes below it: nothing if it is the folder that was meant; a name that is no folder, was not to be
    /// followed, or is not there; or a name that is not there and names below that.
    pub(crate) rest: Vec<OsString>,
    /// The least access of all links on the way.
    pub(crate) ceiling: Access,
    /// What the link at the end of the path says, if there was one.
    pub(crate) link: Option<PathBuf>,
}

/// Why a path leads nowhere.
#[derive(Debug)]
pub(crate) enum Stop {
    Outside,
    /// It passes something that is as if it were not there.
    Hidden,
    Missing {
        link: Option<PathBuf>,
    },
    TooLong,
    Failed(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Follows `path`, relative to the workspace or absolute.
pub(crate) fn walk<'a>(roots: &'a Roots, path: &Path, last: Last) -> Result<Found<'a>, Stop> {
    let (here, rest) = roots.start(path)?.ok_or(Stop::Outside)?;
    let mut walk = Walk {
        roots,
        here,
        ahead: VecDeque::new(),
        links: 0,
        steps: 0,
        ceiling: Access::Write,
        link: None,
    };
    walk.put_ahead(rest);
    while let Some(part) = walk.ahead.pop_front() {
        let rest = match part {
            Part::Up => {
                walk.go_up()?;
                continue;
            }
            Part::Name(name) => match walk.go_to(name, last)? {
                Some(rest) => rest,
                None => continue,
            },
        };
        return Ok(walk.found(rest));
    }
    walk.expect_visible(walk.here.path())?;
    Ok(walk.found(Vec::new()))
}

#[derive(Debug)]
enum Part {
    Up,
    Name(OsString),
}

struct Walk<'a> {
    roots: &'a Roots,
    here: Folder<'a>,
    ahead: VecDeque<Part>,
    links: usize,
    steps: usize,
    ceiling: Access,
    link: Option<PathBuf>,
}

impl<'a> Walk<'a> {
    /// Goes one name on; if the way ends there, says with which names.
    fn go_to(&mut self, name: OsString, last: Last) -> Result<Option<Vec<OsString>>, Stop> {
        let path = self.here.path().join(&name);
        let access = self.expect_visible(&path)?;
        if self.ahead.is_empty() && last == Last::Itself {
            return Ok(Some(vec![name]));
        }
        self.count_steps(1)?;
        let error = match self.here.dir().open_dir_nofollow(&name) {
            Ok(dir) => {
                self.here = Folder::new(self.roots, dir, path);
                return Ok(None);
            }
            Err(error) => error,
        };
        if let Ok(target) = self.here.dir().read_link_contents(&name) {
            self.ceiling = self.ceiling.min(access);
            self.follow(target)?;
            return Ok(None);
        }
        match error.kind() {
            io::ErrorKind::NotFound => self.missing(name).map(Some),
            io::ErrorKind::NotADirectory if self.ahead.is_empty() => Ok(Some(vec![name])),
            _ => Err(error.into()),
        }
    }

    /// Puts what a link says in its place.
    fn follow(&mut self, target: PathBuf) -> Result<(), Stop> {
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Stop::Failed(rustix::io::Errno::LOOP.into()));
        }
        if target.is_absolute() {
            let (root, rest) = self.roots.start(&target)?.ok_or(Stop::Outside)?;
            self.here = root;
            self.put_ahead_of_a_link(rest, &target);
        } else {
            self.put_ahead_of_a_link(&target, &target);
        }
        Ok(())
    }

    fn put_ahead_of_a_link(&mut self, rest: &Path, target: &Path) {
        if self.ahead.is_empty() && self.link.is_none() {
            self.link = Some(target.to_owned());
        }
        self.put_ahead(rest);
    }

    fn put_ahead(&mut self, path: &Path) {
        for component in path.components().rev() {
            match component {
                Component::Normal(name) => self.ahead.push_front(Part::Name(name.to_owned())),
                Component::ParentDir => self.ahead.push_front(Part::Up),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
    }

    /// The folder above is opened from its root again: one that was moved meanwhile has another folder above it.
    fn go_up(&mut self) -> Result<(), Stop> {
        let above = self.here.path().parent().ok_or(Stop::Outside)?.to_owned();
        let (root, rest) = self.roots.start(&above)?.ok_or(Stop::Outside)?;
        self.count_steps(rest.iter().count())?;
        let mut folder = root;
        for name in rest {
            folder = folder.child(name)?;
        }
        self.here = folder;
        Ok(())
    }

    /// What is ahead of something that is not there: names alone, or the way is lost.
    fn missing(&mut self, name: OsString) -> Result<Vec<OsString>, Stop> {
        let mut rest = vec![name];
        for part in self.ahead.drain(..) {
            match part {
                Part::Name(name) => rest.push(name),
                Part::Up => {
                    return Err(Stop::Missing {
                        link: self.link.take(),
                    });
                }
            }
        }
        let path = rest.iter().fold(self.here.path().to_owned(), join);
        self.expect_visible(&path)?;
        Ok(rest)
    }

    fn expect_visible(&self, path: &Path) -> Result<Access, Stop> {
        match self.roots.access(path) {
            Access::None if self.roots.covers(path) => Err(Stop::Hidden),
            Access::None => Err(Stop::Outside),
            access => Ok(access),
        }
    }

    fn count_steps(&mut self, steps: usize) -> Result<(), Stop> {
        self.steps += steps;
        match self.steps > MOST_STEPS {
            true => Err(Stop::TooLong),
            false => Ok(()),
        }
    }

    fn found(self, rest: Vec<OsString>) -> Found<'a> {
        Found {
            folder: self.here,
            rest,
            ceiling: self.ceiling,
            link: self.link,
        }
    }
}

fn join(path: PathBuf, name: impl AsRef<OsStr>) -> PathBuf {
    path.join(name.as_ref())
}
