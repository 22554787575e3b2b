//! Ambient inputs of a turn: the time, new ids and a description of the machine. They are injected so that tests
//! control them.

use crate::TurnEnvironment;
use serde::{Deserialize, Serialize};

/// A point in time, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

/// The wall clock.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}

/// A description of the machine that agents work on, with its local date.
pub trait Environment: Send + Sync {
    /// Describes the machine as of `time`.
    fn at(&self, time: Timestamp) -> TurnEnvironment;
}

/// A generator of unique ids.
pub trait IdGenerator: Send + Sync {
    /// Returns a new id that starts with `prefix`, such as `s_1k2m…` for `s_`.
    fn fresh(&self, prefix: &str) -> String;
}
