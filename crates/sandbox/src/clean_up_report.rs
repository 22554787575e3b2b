//! The result of a clean-up, for whoever started the command.

use std::path::PathBuf;

/// How many paths of each kind a report names.
const NAMED: usize = 50;

/// The result of a clean-up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CleanUpReport {
    /// Protected files that the command created, and that are in the trash now; or deleted, if it cannot be reached.
    pub removed: Vec<PathBuf>,
    /// Protected files that appeared and are still in place; the user has to look at them.
    pub left: Vec<PathBuf>,
    /// Files whose setuid or setgid bits were cleared.
    pub cleared: Vec<PathBuf>,
    /// Protected links that the command removed or replaced; they are not created again.
    pub lost: Vec<PathBuf>,
    /// How many more there are of all four.
    pub unnamed: u64,
    /// Why a part of the writable directories was not checked, if so.
    pub incomplete: Option<String>,
}

impl CleanUpReport {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
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

    pub(crate) fn add_incomplete(&mut self, why: impl Into<String>) {
        self.incomplete.get_or_insert(why.into());
    }

    pub(crate) fn add_lost(&mut self, path: PathBuf) {
        Self::add(&mut self.lost, &mut self.unnamed, path);
    }
}
