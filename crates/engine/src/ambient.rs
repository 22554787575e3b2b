//! The system clock and random ids.

use lango_core::{Clock, IdGenerator, Timestamp};
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

/// Ids of 60 random bits from the operating system, written with 32 letters and digits that are hard to confuse.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl IdGenerator for RandomIds {
    fn fresh(&self, prefix: &str) -> String {
        const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        let mut bytes = [0_u8; 12];
        // Without a random source little works on this machine. The clock at least avoids the same id twice in a row.
        if getrandom::fill(&mut bytes).is_err() {
            bytes[..8].copy_from_slice(&SystemClock.now().0.to_le_bytes());
        }
        let letters = bytes
            .iter()
            .map(|byte| char::from(LETTERS[usize::from(byte % 32)]));
        prefix.chars().chain(letters).collect()
    }
}
