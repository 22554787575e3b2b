//! Pseudo-random numbers that are reproducible by their seed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A generator of pseudo-random numbers (SplitMix64).
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the seed of this run: `CHAOS_SEED`, or a new one each time.
    pub(crate) fn seed() -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(1, |now| now.subsec_nanos().into());
        match std::env::var("CHAOS_SEED") {
            Ok(seed) => seed.parse().expect("CHAOS_SEED is a number"),
            Err(_) => now,
        }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number less than `bound`, which must not be zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Returns true in this percentage of calls.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let at = self.below(of.len() as u64);
        &of[usize::try_from(at).expect("an index")]
    }

    /// Returns a duration less than `max`.
    pub(crate) fn within(&mut self, max: Duration) -> Duration {
        let micros = u64::try_from(max.as_micros()).expect("a short time");
        Duration::from_micros(self.below(micros.max(1)))
    }
}
