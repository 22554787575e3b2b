//! Clean-up after a command: moves protected files that it created to the trash and clears setuid bits.
//!
//! Read-only mounts cover protected files that exist before the command starts. A file that does not exist yet cannot
//! be covered without leaving files on disk, so new ones are removed afterwards. This takes two passes:
//!
//! 1. [`scan`] runs in lango before the command starts, and only reads. Its result is a [`Checklist`] of the existing
//!    protected files and directories, which is stored in a [`pending`] record until the clean-up is done.
//! 2. [`sweep`] runs in the command's guard, inside the same sandbox, when all processes of the command have ended.
//!    Other commands may be renaming files at the same time. Therefore it works only with open handles of the writable
//!    directories and the trash, and never resolves a path from the outside. Landlock restricts it to these
//!    directories.
//!
//! The guard cleans up however the command ended, even if lango was killed. If the guard itself was killed, lango
//! starts another one for the same record, immediately or at its next start.

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

/// Maximum number of paths of each kind in a report.
const MAX_PATHS: usize = 50;
/// Once the reasons for an incomplete check have this length in bytes, no more reasons are added.
const MAX_REASON_BYTES: usize = 1000;

impl CleanUpReport {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        for list in [
            &self.removed,
            &self.remaining,
            &self.cleared,
            &self.lost_links,
        ] {
            out.paths(list.iter());
        }
        out.number(self.omitted);
        out.bytes(self.incomplete.as_deref().unwrap_or_default().as_bytes());
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Reader(bytes);
        let (removed, remaining) = (input.paths()?, input.paths()?);
        let (cleared, lost_links) = (input.paths()?, input.paths()?);
        let omitted = input.number()?;
        let incomplete = String::from_utf8(input.bytes()?).ok()?;
        Some(Self {
            removed,
            remaining,
            cleared,
            lost_links,
            omitted,
            incomplete: Some(incomplete).filter(|why| !why.is_empty()),
        })
    }

    fn add(list: &mut Vec<PathBuf>, omitted: &mut u64, path: PathBuf) {
        if list.len() < MAX_PATHS {
            list.push(path);
        } else {
            *omitted += 1;
        }
    }

    pub(crate) fn add_removed(&mut self, path: PathBuf) {
        Self::add(&mut self.removed, &mut self.omitted, path);
    }

    pub(crate) fn add_remaining(&mut self, path: PathBuf) {
        Self::add(&mut self.remaining, &mut self.omitted, path);
    }

    pub(crate) fn add_cleared(&mut self, path: PathBuf) {
        Self::add(&mut self.cleared, &mut self.omitted, path);
    }

    /// Merges the result of a later attempt.
    pub(crate) fn merge(&mut self, later: Self) {
        later
            .removed
            .into_iter()
            .for_each(|path| self.add_removed(path));
        self.remaining = later.remaining;
        later
            .cleared
            .into_iter()
            .for_each(|path| self.add_cleared(path));
        self.lost_links = later.lost_links;
        self.omitted += later.omitted;
        self.incomplete = later.incomplete;
    }

    pub(crate) fn add_incomplete(&mut self, why: &str) {
        match &mut self.incomplete {
            Some(reasons) if reasons.len() < MAX_REASON_BYTES => {
                reasons.push_str("; ");
                reasons.push_str(why);
            }
            Some(_) => {}
            none => *none = Some(why.to_owned()),
        }
    }

    pub(crate) fn add_lost_link(&mut self, path: PathBuf) {
        Self::add(&mut self.lost_links, &mut self.omitted, path);
    }
}
