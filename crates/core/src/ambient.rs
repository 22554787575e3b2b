//! What a turn would otherwise take from the air: the time and fresh names. Injected, so that tests decide both.

use crate::TurnEnvironment;
use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

/// Tells the time of day.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// Describes the machine that agents work on, and the date there.
pub trait Environment: Send + Sync {
    /// Describes it as of this time.
    fn at(&self, time: Timestamp) -> TurnEnvironment;
}

/// Makes names that were not used before.
pub trait Ids: Send + Sync {
    /// A fresh name that starts with `prefix`, such as `s_1k2m…` for `s_`.
    fn fresh(&self, prefix: &str) -> String;
}
