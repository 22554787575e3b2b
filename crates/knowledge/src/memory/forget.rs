//! Forgetting deletes memories together with every reflection that was condensed from them.
//!
//! The other parts of a deleted reflection become uncondensed again and will be condensed without the forgotten ones.
//! Unobserved turns that contain what should be forgotten will never be observed, and neither will the turn that asks
//! for it. The log of the session is append-only and still contains the conversation.

use super::Memory;
use super::search::{MemoryQuery, searchable_text};
use lango_core::{StoreError, TurnId};
use lango_store::{CommitOutcome, ForgetRequest, MemoryId, MemoryOwner, TurnRange};

/// Maximum number of attempts if concurrent changes interfere.
const MAX_TRIES: usize = 8;

/// The number of turns per page.
const PAGE: usize = 64;

/// How many bytes of a question and of an answer are matched against a query.
const TURN_TEXT_BYTES: usize = 64 * 1024;

/// What to forget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ForgetTarget {
    /// One memory, with the parts that it was condensed from.
    One(MemoryId),
    /// All memories that match the query.
    All(MemoryQuery),
}

impl Memory {
    /// Deletes memories and returns their ids; `turn` is the one that asks for it. `None` if concurrent changes interfered in every attempt.
    pub(super) async fn forget(
        &self,
        owner: &MemoryOwner,
        turn: Option<&TurnId>,
        what: &ForgetTarget,
    ) -> Result<Option<Vec<MemoryId>>, StoreError> {
        for _ in 0..MAX_TRIES {
            let watermark = self.rows().watermark(owner).await?;
            let mut forget = match what {
                ForgetTarget::One(id) => ForgetRequest {
                    ids: vec![*id],
                    with_parts: true,
                    turns: Vec::new(),
                },
                ForgetTarget::All(query) => ForgetRequest {
                    ids: self.ids_of(owner, query).await?,
                    with_parts: false,
                    turns: self.turns_of(owner, watermark.observed, query).await?,
                },
            };
            if let Some(turn) = turn {
                let current = self.rows().current_turn(owner, turn).await?;
                forget.turns.extend(current);
            }
            let done = self
                .rows()
                .forget_memories(owner, watermark.revision, forget)
                .await?;
            if let CommitOutcome::Done(gone) = done {
                return Ok(Some(gone));
            }
        }
        Ok(None)
    }

    async fn ids_of(
        &self,
        owner: &MemoryOwner,
        query: &MemoryQuery,
    ) -> Result<Vec<MemoryId>, StoreError> {
        let entries = self.entries(owner).await?;
        let fitting = entries
            .iter()
            .filter(|entry| query.matches(&searchable_text(entry)));
        Ok(fitting.map(|entry| entry.id).collect())
    }

    /// Returns the turns from `from` on that match the query.
    async fn turns_of(
        &self,
        owner: &MemoryOwner,
        mut from: u64,
        query: &MemoryQuery,
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
                if query.matches(&format!("{} {answer}", exchange.question)) {
                    found.push(turn.ordinal);
                }
            }
            if turns.len() < PAGE {
                return Ok(found);
            }
        }
    }
}
