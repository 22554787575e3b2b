//! What a clean-up has to know: what existed before the command started.

use super::directory::Identity;
use crate::NewNames;
use crate::codec::{Reader, Writer};
use std::path::PathBuf;

/// What existed in the writable directories before a command started, and what to do with what is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checklist {
    /// When the scan began, in nanoseconds since 1970.
    pub(crate) started_ns: u64,
    /// Which start of the machine it was.
    pub(crate) boot: String,
    pub(crate) new_names: NewNames,
    pub(crate) allow_git_init: bool,
    /// Protected files and repositories that existed.
    pub(crate) known: Vec<Identity>,
    pub(crate) roots: Vec<Root>,
    /// Why the scan is incomplete, if it is.
    pub(crate) incomplete: Option<String>,
}

/// One writable directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
    /// Every directory below it, and itself first, by its path relative to it.
    pub(crate) directories: Vec<KnownDirectory>,
    /// Relative paths that the policy protects or hides.
    pub(crate) listed: Vec<PathBuf>,
    /// Those of them that are hidden, and not looked into.
    pub(crate) hidden: Vec<PathBuf>,
    /// Protected links, which no mount can cover.
    pub(crate) links: Vec<PathBuf>,
}

/// A directory as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownDirectory {
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) changed_ns: u64,
}

impl Checklist {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.number(self.started_ns);
        out.bytes(self.boot.as_bytes());
        out.number((self.new_names == NewNames::Reported).into());
        out.number(self.allow_git_init.into());
        out.bytes(self.incomplete.as_deref().unwrap_or_default().as_bytes());
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
            }
            out.paths(root.listed.iter());
            out.paths(root.hidden.iter());
            out.paths(root.links.iter());
        }
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Reader(bytes);
        let started_ns = input.number()?;
        let boot = String::from_utf8(input.bytes()?).ok()?;
        let new_names = if input.flag()? {
            NewNames::Reported
        } else {
            NewNames::TakenAway
        };
        let allow_git_init = input.flag()?;
        let incomplete = String::from_utf8(input.bytes()?).ok()?;
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
                    })
                })?,
                listed: input.paths()?,
                hidden: input.paths()?,
                links: input.paths()?,
            })
        })?;
        Some(Self {
            started_ns,
            boot,
            new_names,
            allow_git_init,
            known,
            roots,
            incomplete: Some(incomplete).filter(|why| !why.is_empty()),
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
    fn a_checklist_arrives_as_it_was_stored() {
        let identity = |inode| Identity {
            device: 1,
            inode,
            born_ns: 7,
        };
        let checklist = Checklist {
            started_ns: 5,
            boot: "b".into(),
            new_names: NewNames::TakenAway,
            allow_git_init: true,
            known: vec![identity(3)],
            roots: vec![Root {
                path: "/w".into(),
                identity: identity(1),
                directories: vec![KnownDirectory {
                    path: "a/b".into(),
                    identity: identity(2),
                    changed_ns: 4,
                }],
                listed: vec!["x".into()],
                hidden: vec!["y".into()],
                links: vec!["z".into()],
            }],
            incomplete: Some("too large".into()),
        };
        let bytes = checklist.encode();
        assert_eq!(Checklist::decode(&bytes), Some(checklist));
        for length in 0..bytes.len() {
            assert_eq!(Checklist::decode(&bytes[..length]), None);
        }
    }
}
