//! Derives a key from a passphrase with Argon2id. The cost is calibrated when the method is created.

use crate::cipher;
use crate::encoding::{Reader, Writer};
use crate::error::VaultError;
use crate::key::Key;
use argon2::{Algorithm, Argon2, Params, Version};
use lango_secrets::SecretValue;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Minimum length of a passphrase in characters.
pub const MIN_PASSPHRASE_CHARACTERS: usize = 8;

/// Minimum duration of one guess on the machine that creates the method.
const MIN_TIME: Duration = Duration::from_millis(150);

/// Accepted costs of a stored method. Lower costs protect too little; higher ones would exhaust this machine's memory
/// or time.
const MEMORY_KIB: RangeInclusive<u32> = (64 << 10)..=(1 << 20);
const PASSES: RangeInclusive<u32> = 3..=64;
const LANES: RangeInclusive<u32> = 1..=4;

/// The Argon2id parameters and the salt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PassphraseCost {
    salt: [u8; 16],
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

impl PassphraseCost {
    /// Calibrates the cost with the passphrase itself.
    pub(super) fn measure(passphrase: &SecretValue) -> Result<Self, VaultError> {
        let text = passphrase.expose_text().unwrap_or_default();
        if text.chars().count() < MIN_PASSPHRASE_CHARACTERS {
            let min_characters = MIN_PASSPHRASE_CHARACTERS;
            return Err(VaultError::ShortPassphrase { min_characters });
        }
        let mut cost = Self {
            salt: [0; 16],
            memory_kib: *MEMORY_KIB.start(),
            passes: *PASSES.start(),
            lanes: *LANES.start(),
        };
        cipher::fill_random(&mut cost.salt)?;
        loop {
            let started = Instant::now();
            cost.derive(passphrase)?;
            if started.elapsed() >= MIN_TIME || cost.passes >= *PASSES.end() {
                return Ok(cost);
            }
            cost.passes = cost.passes.saturating_mul(2).min(*PASSES.end());
        }
    }

    /// Derives a key from a passphrase. Takes at least [`MIN_TIME`] on the machine that calibrated the cost.
    pub(super) fn derive(&self, passphrase: &SecretValue) -> Result<Key, VaultError> {
        let failed = |error: argon2::Error| {
            VaultError::System(format!("the passphrase cannot be used: {error}"))
        };
        let params = Params::new(self.memory_kib, self.passes, self.lanes, Some(Key::BYTES));
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.map_err(failed)?);
        let mut key = Key::zero();
        argon
            .hash_password_into(passphrase.expose(), &self.salt, key.expose_mut())
            .map_err(failed)?;
        Ok(key)
    }

    pub(super) fn write(&self, to: &mut Writer) {
        to.array(&self.salt);
        to.int(self.memory_kib);
        to.int(self.passes);
        to.int(self.lanes);
    }

    /// Reads a cost. Fails if it is outside the range that lango chooses from.
    pub(super) fn read(from: &mut Reader<'_>) -> Result<Self, VaultError> {
        let cost = Self {
            salt: from.array()?,
            memory_kib: from.int()?,
            passes: from.int()?,
            lanes: from.int()?,
        };
        if MEMORY_KIB.contains(&cost.memory_kib)
            && PASSES.contains(&cost.passes)
            && LANES.contains(&cost.lanes)
        {
            Ok(cost)
        } else {
            Err(VaultError::changed(
                "the cost of a passphrase is outside the range that lango uses",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(memory_kib: u32, passes: u32, lanes: u32) -> Vec<u8> {
        let cost = PassphraseCost {
            salt: [7; 16],
            memory_kib,
            passes,
            lanes,
        };
        let mut to = Writer::default();
        cost.write(&mut to);
        to.into_bytes()
    }

    #[test]
    fn a_cost_outside_the_accepted_range_is_refused() {
        let is_read = |bytes: Vec<u8>| PassphraseCost::read(&mut Reader::new(&bytes)).is_ok();
        assert!(is_read(bytes(64 << 10, 3, 1)));
        assert!(is_read(bytes(1 << 20, 64, 4)));
        assert!(!is_read(bytes((64 << 10) - 1, 3, 1)));
        assert!(!is_read(bytes(64 << 10, 2, 1)));
        assert!(!is_read(bytes(64 << 10, 3, 0)));
        assert!(!is_read(bytes((1 << 20) + 1, 3, 1)));
        assert!(!is_read(bytes(64 << 10, 65, 1)));
        assert!(!is_read(bytes(64 << 10, 3, 5)));
    }

    #[test]
    fn a_guess_takes_at_least_a_hundred_milliseconds() {
        let passphrase = SecretValue::new("correct horse");
        let cost = PassphraseCost::measure(&passphrase).unwrap();
        let fastest = (0..3).map(|_| {
            let started = Instant::now();
            cost.derive(&SecretValue::new("wrong horse!!")).unwrap();
            started.elapsed()
        });
        let fastest = fastest.min().unwrap();
        assert!(
            fastest >= Duration::from_millis(100),
            "{fastest:?} for {cost:?}"
        );
    }

    #[test]
    fn a_short_passphrase_is_refused() {
        let refused = PassphraseCost::measure(&SecretValue::new("seven77"));
        assert!(matches!(refused, Err(VaultError::ShortPassphrase { .. })));
    }
}
