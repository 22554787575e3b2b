//! The memory of agents: observations of turns, reflections on them, and what a user wanted saved.
//!
//! `lango-knowledge` decides what is remembered; [`Store`](crate::Store) stores it.

#![allow(missing_docs, reason = "the names say it")]

mod changes;
mod rows;
mod statements;

#[cfg(test)]
pub(crate) use statements::ALL as EVERYDAY;

use lango_core::{Exchange, SessionId, Source, Text, Timestamp, Trust, UserId};
use std::fmt;
use std::str::FromStr;

/// Owner of a memory. None of its fields may come from a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryOwner {
    /// Every session of theirs shares the saved memories.
    pub user: UserId,
    pub session: SessionId,
}

/// Id of a memory: `o_7` is an observation, `r_8` a reflection, `m_9` was saved.
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

/// A text is not a [`MemoryId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseMemoryIdError;

/// How often the content was condensed, which is the number that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// Made of turns.
    Observation,
    /// Made of observations.
    First,
    /// Made of reflections of the first generation.
    Second,
}

/// An observation or a reflection to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecollection {
    /// The ordinals of the first and the last turn it covers, from 0.
    pub turns: (u64, u64),
    pub text: String,
    pub source: Source,
    pub created: Timestamp,
}

/// An observation or a reflection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recollection {
    pub id: MemoryId,
    pub generation: Generation,
    /// The ordinals of the first and the last turn it covers, from 0.
    pub turns: (u64, u64),
    pub text: Text,
    pub source: Source,
    pub created: Timestamp,
    /// Whether it was condensed into a reflection of the next generation.
    pub is_part: bool,
}

/// A memory to save for a user, for all sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSavedMemory {
    pub text: String,
    pub tags: Vec<String>,
    pub source: Source,
    pub created: Timestamp,
}

/// A memory that every session of a user sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedMemory {
    pub id: MemoryId,
    pub text: Text,
    pub tags: Vec<String>,
    pub source: Source,
    pub created: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveOutcome {
    New(MemoryId),
    /// The same text was saved before; it has the new tags now.
    Updated(MemoryId),
    /// The user has reached the limit.
    Full,
}

/// How far a session is observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermark {
    /// How many turns are observed, which is the ordinal of the next one.
    pub observed: u64,
    /// Grows with every step and every deletion.
    pub revision: u64,
    /// The lowest trust of all that the session has seen up to `observed`.
    pub trust: Trust,
    /// Consecutive failures of the model.
    pub failures: u32,
}

/// A turn that may be observed.
#[derive(Debug, Clone, PartialEq)]
pub struct UnobservedTurn {
    /// Its number in the session, from 0.
    pub ordinal: u64,
    pub started: Timestamp,
    /// Nothing if the turn was never finished, or must not be observed.
    pub exchange: Option<Exchange>,
}

/// One step of the memory of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryStep {
    Observe {
        /// The ordinal of the next one.
        observed: u64,
        /// The lowest trust of all that was seen up to there.
        trust: Trust,
        /// Nothing if there was nothing worth remembering.
        observation: Option<NewRecollection>,
    },
    /// Recollections of one generation were condensed into one of the next.
    Condense {
        parts: Vec<MemoryId>,
        generation: Generation,
        reflection: NewRecollection,
    },
}

/// The result of a change that is valid for one revision only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit<T> {
    Done(T),
    /// Another step was committed first: nothing was changed.
    Stale,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ForgetRequest {
    /// Reflections that were made of one of them are deleted too.
    pub ids: Vec<MemoryId>,
    /// Whether to delete what they were made of as well.
    pub with_parts: bool,
    /// Turns that must never be observed.
    pub turns: Vec<u64>,
}

/// The turns to read for an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnRange {
    pub from: u64,
    pub limit: usize,
    /// Bytes to which questions and answers are cut.
    pub text_bytes: usize,
}

/// The memory that a prompt shows, the newest first: recollections that are not condensed yet, and saved memories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptMemory {
    /// Of the second generation, of the first, and observations.
    pub recollections: [Vec<Recollection>; 3],
    pub saved: Vec<SavedMemory>,
}

/// Selects and orders recollections of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecollectionOrder {
    /// All, the newest first.
    Newest,
    /// Those that are not condensed yet, the oldest first.
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
