//! What is remembered: observations of turns, reflections on them, and what a user wanted saved.
//!
//! These are plain values. How they come about is for `lango-knowledge`, how they are stored for [`MemoryRows`].

mod rows;
mod stored;

pub use rows::MemoryRows;
pub(crate) use stored::exchange_within;

use lango_core::{Exchange, SessionId, Source, Text, Timestamp, Trust, UserId};
use std::fmt;
use std::str::FromStr;

/// Whose memory it is. Nothing of it may come from a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryOwner {
    /// The user.
    pub user: UserId,
    /// One of their sessions.
    pub session: SessionId,
}

/// What something that is remembered is called: `o_7` is an observation, `r_8` a reflection, `m_9` was saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryId {
    /// An observation.
    Observation(u64),
    /// A reflection.
    Reflection(u64),
    /// A saved memory.
    Saved(u64),
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
    type Err = NotAMemoryId;

    fn from_str(text: &str) -> Result<Self, NotAMemoryId> {
        let (kind, digits) = text.trim().split_once('_').ok_or(NotAMemoryId)?;
        let number = digits.parse().map_err(|_| NotAMemoryId)?;
        match kind {
            "o" => Ok(Self::Observation(number)),
            "r" => Ok(Self::Reflection(number)),
            "m" => Ok(Self::Saved(number)),
            _ => Err(NotAMemoryId),
        }
    }
}

/// The text is no [`MemoryId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAMemoryId;

/// How often what was said has been condensed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// Made of turns.
    Observation,
    /// Made of observations.
    First,
    /// Made of reflections of the first generation.
    Second,
}

/// An observation or a reflection that is about to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecollection {
    /// The ordinals of the first and the last turn it covers, from 0.
    pub turns: (u64, u64),
    /// The words.
    pub text: String,
    /// Who made it, and whether it may be believed.
    pub source: Source,
    /// When.
    pub created: Timestamp,
}

/// An observation or a reflection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recollection {
    /// Its name.
    pub id: MemoryId,
    /// Which generation.
    pub generation: Generation,
    /// The ordinals of the first and the last turn it covers, from 0.
    pub turns: (u64, u64),
    /// The words.
    pub text: Text,
    /// Who made it, and whether it may be believed.
    pub source: Source,
    /// When.
    pub created: Timestamp,
    /// Whether it went into a reflection of the next generation.
    pub is_part: bool,
}

/// Something that is to be remembered of a user in every session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSavedMemory {
    /// The words.
    pub text: String,
    /// Words under which it can be found.
    pub tags: Vec<String>,
    /// Who saved it, and whether it may be believed.
    pub source: Source,
    /// When.
    pub created: Timestamp,
}

/// Something that is remembered of a user in every session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedMemory {
    /// Its name.
    pub id: MemoryId,
    /// The words.
    pub text: Text,
    /// Words under which it can be found.
    pub tags: Vec<String>,
    /// Who saved it, and whether it may be believed.
    pub source: Source,
    /// When.
    pub created: Timestamp,
}

/// What became of something to save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    /// It is new.
    New(MemoryId),
    /// These very words were there; they have the new tags now.
    Again(MemoryId),
    /// There are as many as there may be.
    Full,
}

/// How far the memory of a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermark {
    /// How many turns are observed, which is the ordinal of the next one.
    pub observed: u64,
    /// Grows with every step and with everything forgotten.
    pub revision: u64,
    /// Whether all that the session was shown up to `observed` may be believed.
    pub trust: Trust,
    /// How often in a row the model failed.
    pub failures: u32,
}

/// A turn that may be observed.
#[derive(Debug, Clone, PartialEq)]
pub struct UnobservedTurn {
    /// Its number in the session, from 0.
    pub ordinal: u64,
    /// When it began.
    pub began: Timestamp,
    /// What was said. None if the turn was left unfinished for good, or must not be observed.
    pub exchange: Option<Exchange>,
}

/// One step of the memory of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryStep {
    /// Turns were observed.
    Observe {
        /// The ordinal of the next one.
        observed: u64,
        /// Whether all that was seen up to there may be believed.
        trust: Trust,
        /// What came of it; none if nothing was worth it.
        observation: Option<NewRecollection>,
    },
    /// Recollections of one generation were condensed into one of the next.
    Condense {
        /// What went in.
        parts: Vec<MemoryId>,
        /// Which generation came out.
        generation: Generation,
        /// What came out.
        reflection: NewRecollection,
    },
}

/// What became of a change that holds for one revision only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit<T> {
    /// It was made.
    Done(T),
    /// Somebody else was faster: nothing was changed.
    Stale,
}

/// What is to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forget {
    /// The rows. A reflection that was made of one of them goes too.
    pub ids: Vec<MemoryId>,
    /// Whether what they were made of goes as well.
    pub with_parts: bool,
    /// Turns that must not be observed any more.
    pub turns: Vec<u64>,
}

/// Which turns to read for an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnsToRead {
    /// The ordinal of the first.
    pub from: u64,
    /// How many at most.
    pub limit: usize,
    /// How many bytes a question or an answer keeps.
    pub text_bytes: usize,
}

/// What a prompt shows of memory, the newest first: of recollections those that went into no later one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShownMemory {
    /// Of the second generation, of the first, and observations.
    pub recollections: [Vec<Recollection>; 3],
    /// What was saved for the user.
    pub saved: Vec<SavedMemory>,
}

/// Which recollections of a generation to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// All, the newest first.
    Newest,
    /// Those that went into no later one, the oldest first.
    OldestLoose,
}
