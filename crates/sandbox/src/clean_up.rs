//! Clean-up after a command: protected files that it created are moved to the trash, and setuid bits are cleared.
//!
//! What exists beforehand is covered by read-only mounts. What does not exist cannot be covered without leaving files on
//! the disk, so a second look removes what was created. The two looks:
//!
//! 1. [`scan`] runs in lango before the command starts, and only reads. Its result is a [`Checklist`]: which protected
//!    files exist and which directories there are. It is stored in a [`pending`] record until the clean-up is done.
//! 2. [`sweep`] runs in the command's own guard, inside of the same sandbox, once all processes of the command are gone.
//!    It holds open handles of the writable directories and of the trash, and nothing else: other commands may be
//!    renaming files at that very moment, so it never resolves a path from the outside, and the kernel's Landlock keeps
//!    it to these directories.
//!
//! The guard cleans up whatever ended the command, the death of lango included. If the guard itself was killed, lango
//! starts another one for the same record, at once or at its next start.

pub(crate) mod checklist;
mod copy;
pub(crate) mod directory;
pub(crate) mod pending;
mod remove;
pub(crate) mod scan;
pub(crate) mod sweep;

pub(crate) use checklist::Checklist;

use crate::CleanUpReport;
use crate::codec::{Reader, Writer};
use std::path::PathBuf;

/// How many paths of each kind a report names.
const NAMED: usize = 50;
/// Longest text, in bytes, of all reasons for an incomplete check together.
const LONGEST_REASON: usize = 1000;

impl CleanUpReport {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        for list in [&self.removed, &self.left, &self.cleared, &self.lost] {
            out.paths(list.iter());
        }
        out.number(self.unnamed);
        out.bytes(self.incomplete.as_deref().unwrap_or_default().as_bytes());
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Reader(bytes);
        let (removed, left) = (input.paths()?, input.paths()?);
        let (cleared, lost) = (input.paths()?, input.paths()?);
        let unnamed = input.number()?;
        let incomplete = String::from_utf8(input.bytes()?).ok()?;
        Some(Self {
            removed,
            left,
            cleared,
            lost,
            unnamed,
            incomplete: Some(incomplete).filter(|why| !why.is_empty()),
        })
    }

    fn add(list: &mut Vec<PathBuf>, unnamed: &mut u64, path: PathBuf) {
        if list.len() < NAMED {
            list.push(path);
        } else {
            *unnamed += 1;
        }
    }

    pub(crate) fn add_removed(&mut self, path: PathBuf) {
        Self::add(&mut self.removed, &mut self.unnamed, path);
    }

    pub(crate) fn add_left(&mut self, path: PathBuf) {
        Self::add(&mut self.left, &mut self.unnamed, path);
    }

    pub(crate) fn add_cleared(&mut self, path: PathBuf) {
        Self::add(&mut self.cleared, &mut self.unnamed, path);
    }

    /// Adds the result of a further try.
    pub(crate) fn absorb(&mut self, later: Self) {
        later
            .removed
            .into_iter()
            .for_each(|path| self.add_removed(path));
        self.left = later.left;
        later
            .cleared
            .into_iter()
            .for_each(|path| self.add_cleared(path));
        self.lost = later.lost;
        self.unnamed += later.unnamed;
        self.incomplete = later.incomplete;
    }

    pub(crate) fn add_incomplete(&mut self, why: &str) {
        match &mut self.incomplete {
            Some(reasons) if reasons.len() < LONGEST_REASON => {
                reasons.push_str("; ");
                reasons.push_str(why);
            }
            Some(_) => {}
            none => *none = Some(why.to_owned()),
        }
    }

    pub(crate) fn add_lost(&mut self, path: PathBuf) {
        Self::add(&mut self.lost, &mut self.unnamed, path);
    }
}
