//! Forgetting: rows are deleted, and what was made of them goes too, so that it cannot be read there.
//!
//! What else went into a deleted reflection is loose again and will be condensed without it. Turns that are not observed
//! yet are kept from being observed if they hold what is to be forgotten, and so is the turn that asks for it. The log of
//! the session is append-only and keeps what was said.

use super::Memory;
use super::search::{Query, searched};
use lango_core::{StoreError, TurnId};
use lango_store::{Commit, ForgetRequest, MemoryId, MemoryOwner, TurnRange};

/// How often a change is tried that others overtake.
const MOST_TRIES: usize = 8;

/// How many turns are read at once.
const PAGE: usize = 64;

/// How many bytes of a question and of an answer are held against a query.
const TURN_TEXT_BYTES: usize = 64 * 1024;

/// What is to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// One thing, with what it was made of.
    One(MemoryId),
    /// Whatever holds all of these words.
    All(Query),
}

impl Memory {
    /// Forgets; gives the names of all that is gone. None if others kept being faster.
    pub(super) async fn forget(
        &self,
        owner: &MemoryOwner,
        turn: &TurnId,
        what: &What,
    ) -> Result<Option<Vec<MemoryId>>, StoreError> {
        for _ in 0..MOST_TRIES {
            let watermark = self.rows().watermark(owner).await?;
            let mut forget = match what {
                What::One(id) => ForgetRequest {
                    ids: vec![*id],
                    with_parts: true,
                    turns: Vec::new(),
                },
                What::All(query) => ForgetRequest {
                    ids: self.ids_of(owner, query).await?,
                    with_parts: false,
                    turns: self.turns_of(owner, watermark.observed, query).await?,
                },
            };
            forget
                .turns
                .extend(self.rows().current_turn(owner, turn).await?);
            let done = self
                .rows()
                .forget_memories(owner, watermark.revision, forget)
                .await?;
            if let Commit::Done(gone) = done {
                return Ok(Some(gone));
            }
        }
        Ok(None)
    }

    async fn ids_of(
        &self,
        owner: &MemoryOwner,
        query: &Query,
    ) -> Result<Vec<MemoryId>, StoreError> {
        let entries = self.entries(owner).await?;
        let fitting = entries.iter().filter(|entry| query.is_in(&searched(entry)));
        Ok(fitting.map(|entry| entry.id).collect())
    }

    /// The turns from one on that hold what is to be forgotten.
    async fn turns_of(
        &self,
        owner: &MemoryOwner,
        mut from: u64,
        query: &Query,
    ) -> Result<Vec<u64>, StoreError> {
        let mut found = Vec::new();
        loop {
            let page = TurnRange {
                from,
                limit: PAGE,
                text_bytes: TURN_TEXT_BYTES,
            };
            let turns = self.rows().unobserved_turns(owner, page).await?;
            for turn in &turns {
                from = turn.ordinal + 1;
                let Some(exchange) = &turn.exchange else {
                    continue;
                };
                let answer = exchange.answer.as_ref().map_or("", |answer| &answer.text);
                if query.is_in(&format!("{} {answer}", exchange.question)) {
                    found.push(turn.ordinal);
                }
            }
            if turns.len() < PAGE {
                return Ok(found);
            }
        }
    }
}
