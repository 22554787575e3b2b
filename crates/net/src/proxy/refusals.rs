//! The refusals of a proxy: each destination and reason once, with a count, up to a limit.

use crate::error::{Reason, Refusal};

/// Number of distinct refusals to collect.
const MOST_REFUSALS: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Refusals {
    listed: Vec<Refusal>,
    /// Refusals beyond the limit of the list.
    unlisted: u64,
}

impl Refusals {
    pub fn add(&mut self, refusal: &Refusal) {
        let is_same = |known: &Refusal| {
            known.destination == refusal.destination && known.reason == refusal.reason
        };
        match self.listed.iter().position(is_same) {
            Some(known) => self.listed[known].count += 1,
            None if self.listed.len() < MOST_REFUSALS => self.listed.push(refusal.clone()),
            None => self.unlisted += 1,
        }
    }

    pub fn take(&mut self) -> Vec<Refusal> {
        let mut taken = std::mem::take(&mut self.listed);
        let unlisted = std::mem::take(&mut self.unlisted);
        if unlisted > 0 {
            taken.push(Refusal::new(format!("{unlisted} requests"), Reason::More));
        }
        taken
    }
}
