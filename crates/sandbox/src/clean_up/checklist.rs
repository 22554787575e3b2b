//! The checklist of a clean-up: what existed before the command started.

use super::directory::Identity;
use crate::NewFiles;
use crate::codec::{Reader, Writer};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What existed in the writable directories before a command started, and what to do with new files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checklist {
    /// Start of the scan, in nanoseconds since 1970.
    pub(crate) started_ns: u64,
    /// The boot id of the machine at that time.
    pub(crate) boot: String,
    pub(crate) new_files: NewFiles,
    pub(crate) allow_git_init: bool,
    /// Existing protected files and repositories. Links are not included, because a command can move them.
    pub(crate) known: Vec<Identity>,
    pub(crate) roots: Vec<Root>,
}

/// One writable directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
    /// The root itself and every directory below it, by their paths relative to the root.
    pub(crate) directories: Vec<KnownDirectory>,
    /// Relative paths that the policy itself protects or hides.
    pub(crate) listed: Vec<PathBuf>,
    /// The hidden paths in `listed`. Their contents are not scanned.
    pub(crate) hidden: Vec<PathBuf>,
    /// Paths of existing protected files. A mount covers each of them, so no command can have replaced it.
    pub(crate) covered: Vec<PathBuf>,
    /// Protected links, which no mount can cover.
    pub(crate) links: Vec<KnownLink>,
    /// Protected files that appeared while another command ran; that command's clean-up removes them.
    pub(crate) foreign: Vec<ForeignFile>,
    /// Directories of other users that the scan could not read. The command cannot read them either.
    pub(crate) unscanned: Vec<PathBuf>,
    /// Whether this is the user's home, where names with a leading dot are hidden.
    pub(crate) hides_dotfiles: bool,
}

impl Checklist {
    /// Whether a protected file, given by its absolute path, existed before the command of this checklist started.
    /// `None` for files outside of its directories.
    pub(crate) fn existed_before(&self, path: &Path, identity: Identity) -> Option<bool> {
        let mut inside = self
            .roots
            .iter()
            .filter_map(|root| Some((root, path.strip_prefix(&root.path).ok()?)));
        let (root, inside) = inside.next()?;
        let is_link = |link: &KnownLink| link.path == inside && link.identity == identity;
        Some(
            self.known.contains(&identity)
                || root.covered.iter().any(|covered| covered == inside)
                || root.links.iter().any(is_link),
        )
    }
}

impl Root {
    /// Whether an entry is hidden because it is a dotfile in the user's home.
    pub(crate) fn hides(&self, inside: &Path, name: &OsStr) -> bool {
        let is_dotfile = name.as_encoded_bytes().starts_with(b".");
        self.hides_dotfiles && is_dotfile && inside.as_os_str().is_empty()
    }
}

/// A protected link that existed before the command started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownLink {
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
}

/// A protected file of another command, as the scan found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForeignFile {
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) changed_ns: u64,
}

/// A directory as the scan found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownDirectory {
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) changed_ns: u64,
    /// Whether the directory's mode denied its owner permission to read or search it.
    pub(crate) is_closed: bool,
}

impl Checklist {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.number(self.started_ns);
        out.bytes(self.boot.as_bytes());
        out.number((self.new_files == NewFiles::Report).into());
        out.number(self.allow_git_init.into());
        out.number(self.known.len() as u64);
        self.known.iter().for_each(|known| known.encode(&mut out));
        out.number(self.roots.len() as u64);
        for root in &self.roots {
            out.path(&root.path);
            root.identity.encode(&mut out);
            out.number(root.directories.len() as u64);
            for directory in &root.directories {
                out.path(&directory.path);
                directory.identity.encode(&mut out);
                out.number(directory.changed_ns);
                out.number(directory.is_closed.into());
            }
            out.paths(root.listed.iter());
            out.paths(root.hidden.iter());
            out.paths(root.covered.iter());
            out.number(root.links.len() as u64);
            for link in &root.links {
                out.path(&link.path);
                link.identity.encode(&mut out);
            }
            out.number(root.foreign.len() as u64);
            for file in &root.foreign {
                out.path(&file.path);
                file.identity.encode(&mut out);
                out.number(file.changed_ns);
            }
            out.paths(root.unscanned.iter());
            out.number(root.hides_dotfiles.into());
        }
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Reader(bytes);
        let started_ns = input.number()?;
        let boot = String::from_utf8(input.bytes()?).ok()?;
        let new_files = if input.flag()? {
            NewFiles::Report
        } else {
            NewFiles::Remove
        };
        let allow_git_init = input.flag()?;
        let known = input.list(Identity::decode)?;
        let roots = input.list(|input| {
            Some(Root {
                path: input.path()?,
                identity: Identity::decode(input)?,
                directories: input.list(|input| {
                    Some(KnownDirectory {
                        path: input.path()?,
                        identity: Identity::decode(input)?,
                        changed_ns: input.number()?,
                        is_closed: input.flag()?,
                    })
                })?,
                listed: input.paths()?,
                hidden: input.paths()?,
                covered: input.paths()?,
                links: input.list(|input| {
                    Some(KnownLink {
                        path: input.path()?,
                        identity: Identity::decode(input)?,
                    })
                })?,
                foreign: input.list(|input| {
                    Some(ForeignFile {
                        path: input.path()?,
                        identity: Identity::decode(input)?,
                        changed_ns: input.number()?,
                    })
                })?,
                unscanned: input.paths()?,
                hides_dotfiles: input.flag()?,
            })
        })?;
        Some(Self {
            started_ns,
            boot,
            new_files,
            allow_git_init,
            known,
            roots,
        })
    }
}

impl Identity {
    fn encode(&self, out: &mut Writer) {
        out.number(self.device);
        out.number(self.inode);
        out.number(self.born_ns);
    }

    fn decode(input: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            device: input.number()?,
            inode: input.number()?,
            born_ns: input.number()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_checklist_decodes_to_the_same_checklist() {
        let identity = |inode| Identity {
            device: 1,
            inode,
            born_ns: 7,
        };
        let checklist = Checklist {
            started_ns: 5,
            boot: "b".into(),
            new_files: NewFiles::Remove,
            allow_git_init: true,
            known: vec![identity(3)],
            roots: vec![Root {
                path: "/w".into(),
                identity: identity(1),
                directories: vec![KnownDirectory {
                    path: "a/b".into(),
                    identity: identity(2),
                    changed_ns: 4,
                    is_closed: true,
                }],
                listed: vec!["x".into()],
                hidden: vec!["y".into()],
                covered: vec!["c".into()],
                links: vec![KnownLink {
                    path: "z".into(),
                    identity: identity(9),
                }],
                foreign: vec![ForeignFile {
                    path: "f".into(),
                    identity: identity(8),
                    changed_ns: 6,
                }],
                unscanned: vec!["u".into()],
                hides_dotfiles: true,
            }],
        };
        let bytes = checklist.encode();
        assert_eq!(Checklist::decode(&bytes), Some(checklist));
        for length in 0..bytes.len() {
            assert_eq!(Checklist::decode(&bytes[..length]), None);
        }
    }
}
