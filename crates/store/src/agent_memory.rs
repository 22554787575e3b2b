//! The memory of agents: observations of turns, reflections on them, and memories that a user asked to save.
//!
//! `lango-knowledge` decides what to remember; [`Store`](crate::Store) stores it.

mod changes;
mod of_user;
mod rows;
mod statements;

#[cfg(test)]
pub(crate) use statements::ALL as STATEMENTS;

use lango_core::{Exchange, Provenance, SessionId, Text, Timestamp, Trust, UserId};
use std::fmt;
use std::str::FromStr;

/// The owner of a memory. None of its fields may come from a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryOwner {
    /// All sessions of the user share the saved memories.
    pub user: UserId,
    pub session: SessionId,
}

/// The id of a memory: `o_7` is an observation, `r_8` a reflection, `m_9` a saved memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryId {
    Observation(u64),
    Reflection(u64),
    Saved(u64),
}

impl MemoryId {
    fn number(&self) -> &u64 {
        let (Self::Observation(number) | Self::Reflection(number) | Self::Saved(number)) = self;
        number
    }
}

impl fmt::Display for MemoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Observation(number) => write!(f, "o_{number}"),
            Self::Reflection(number) => write!(f, "r_{number}"),
            Self::Saved(number) => write!(f, "m_{number}"),
        }
    }
}

impl FromStr for MemoryId {
    type Err = ParseMemoryIdError;

    fn from_str(text: &str) -> Result<Self, ParseMemoryIdError> {
        let (kind, digits) = text.trim().split_once('_').ok_or(ParseMemoryIdError)?;
        let number = digits.parse().map_err(|_| ParseMemoryIdError)?;
        match kind {
            "o" => Ok(Self::Observation(number)),
            "r" => Ok(Self::Reflection(number)),
            "m" => Ok(Self::Saved(number)),
            _ => Err(ParseMemoryIdError),
        }
    }
}

/// The error that a text is not a [`MemoryId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseMemoryIdError;

/// How often the content was condensed. The discriminant is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// Summarizes turns.
    Observation,
    /// Summarizes observations.
    First,
    /// Summarizes reflections of the first generation.
    Second,
}

/// An observation or a reflection to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMemoryRecord {
    /// The ordinals of the first and last turn that it covers, counted from 0.
    pub turns: (u64, u64),
    pub text: String,
    pub source: Provenance,
    pub created: Timestamp,
}

/// An observation or a reflection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRecord {
    pub id: MemoryId,
    pub generation: Generation,
    /// The ordinals of the first and last turn that it covers, counted from 0.
    pub turns: (u64, u64),
    pub text: Text,
    pub source: Provenance,
    pub created: Timestamp,
    /// Whether it was condensed into a reflection of the next generation.
    pub is_part: bool,
}

/// A memory to save for all sessions of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSavedMemory {
    pub text: String,
    pub tags: Vec<String>,
    pub source: Provenance,
    pub created: Timestamp,
}

/// A memory that every session of a user sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedMemory {
    pub id: MemoryId,
    pub text: Text,
    pub tags: Vec<String>,
    pub source: Provenance,
    pub created: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveOutcome {
    New(MemoryId),
    /// The same text was already saved. It now has the new tags.
    Updated(MemoryId),
    /// The user has reached the limit.
    Full,
}

/// How far a session has been observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermark {
    /// Number of observed turns, which is the ordinal of the next turn to observe.
    pub observed: u64,
    /// Increases with every step and every deletion.
    pub revision: u64,
    /// The lowest trust of everything in the session up to `observed`.
    pub trust: Trust,
    /// Number of consecutive failures of the model.
    pub failures: u32,
}

/// A turn that may be observed.
#[derive(Debug, Clone, PartialEq)]
pub struct UnobservedTurn {
    /// The number of the turn in the session, counted from 0.
    pub ordinal: u64,
    pub started: Timestamp,
    /// `None` if the turn never finished, or must not be observed.
    pub exchange: Option<Exchange>,
}

/// One step of the memory of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryStep {
    Observe {
        /// The ordinal of the next turn to observe.
        observed: u64,
        /// The lowest trust of everything before that turn.
        trust: Trust,
        /// `None` if nothing was worth remembering.
        observation: Option<NewMemoryRecord>,
    },
    /// Condenses recollections of one generation into one recollection of the next.
    Condense {
        parts: Vec<MemoryId>,
        generation: Generation,
        reflection: NewMemoryRecord,
    },
}

/// The result of a change that applies to one revision only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitOutcome<T> {
    Done(T),
    /// Another step was committed first, so nothing was changed.
    Stale,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ForgetRequest {
    /// The memories to delete. Reflections that contain one of them are deleted too.
    pub ids: Vec<MemoryId>,
    /// Whether to also delete the recollections that they were condensed from.
    pub with_parts: bool,
    /// Turns that must never be observed again.
    pub turns: Vec<u64>,
}

/// The turns to read for an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnRange {
    pub from: u64,
    pub limit: usize,
    /// Maximum number of bytes of a question or answer. Longer ones are truncated.
    pub text_bytes: usize,
}

/// The memory that a prompt includes, newest first: recollections that are not condensed yet, and saved memories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptMemory {
    /// Reflections of the second generation, reflections of the first generation, and observations.
    pub recollections: [Vec<MemoryRecord>; 3],
    pub saved: Vec<SavedMemory>,
}

/// The selection and order of recollections of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryOrder {
    /// All, newest first.
    Newest,
    /// Those that are not condensed yet, oldest first.
    OldestUncondensed,
}

impl Generation {
    fn id(self, number: u64) -> MemoryId {
        match self {
            Self::Observation => MemoryId::Observation(number),
            Self::First | Self::Second => MemoryId::Reflection(number),
        }
    }
}
