//! Numbers by chance, the same for the same seed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A source of numbers (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The seed of this run: `CHAOS_SEED`, or another one each time.
    pub fn seed() -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(1, |now| now.subsec_nanos().into());
        match std::env::var("CHAOS_SEED") {
            Ok(seed) => seed.parse().expect("CHAOS_SEED is a number"),
            Err(_) => now,
        }
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `bound`, which is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True this many times in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let at = self.below(of.len() as u64);
        &of[usize::try_from(at).expect("an index")]
    }

    /// Less than this.
    pub fn within(&mut self, longest: Duration) -> Duration {
        let micros = u64::try_from(longest.as_micros()).expect("a short time");
        Duration::from_micros(self.below(micros.max(1)))
    }
}
