//! Collects the refusals of a proxy: each destination and reason once, with a count, up to a limit.

use crate::error::{Refusal, RefusalReason};

/// How many distinct refusals to collect.
const MAX_REFUSALS: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Refusals {
    listed: Vec<Refusal>,
    /// The number of refusals beyond the limit of the list.
    unlisted: u64,
}

impl Refusals {
    /// Adds a refusal. Returns whether it is new in the list.
    pub(super) fn add(&mut self, refusal: &Refusal) -> bool {
        let is_same = |known: &Refusal| {
            known.destination == refusal.destination && known.reason == refusal.reason
        };
        let known = self.listed.iter().position(is_same);
        let is_new = known.is_none() && self.listed.len() < MAX_REFUSALS;
        match known {
            Some(known) => self.listed[known].count += 1,
            None if is_new => self.listed.push(refusal.clone()),
            None => self.unlisted += 1,
        }
        is_new
    }

    pub(super) fn take(&mut self) -> Vec<Refusal> {
        let mut taken = std::mem::take(&mut self.listed);
        let unlisted = std::mem::take(&mut self.unlisted);
        if unlisted > 0 {
            taken.push(Refusal::new(
                format!("{unlisted} requests"),
                RefusalReason::More,
            ));
        }
        taken
    }
}
