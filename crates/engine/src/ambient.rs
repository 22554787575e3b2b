//! The real clock and real fresh names.

use lango_core::{Clock, Ids, Timestamp};
use std::time::{SystemTime, UNIX_EPOCH};

/// The clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// Names from the system's random source: 60 bits, in letters that are hard to confuse.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn fresh(&self, prefix: &str) -> String {
        const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        let mut bytes = [0_u8; 12];
        // Without a random source nothing on the machine works; the clock at least never gives the same name twice in a row.
        if getrandom::fill(&mut bytes).is_err() {
            bytes[..8].copy_from_slice(&SystemClock.now().0.to_le_bytes());
        }
        let letters = bytes
            .iter()
            .map(|byte| char::from(LETTERS[usize::from(byte % 32)]));
        prefix.chars().chain(letters).collect()
    }
}
