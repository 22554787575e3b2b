//! Forgetting deletes memories together with every reflection that was condensed from them.
//!
//! The other parts of a deleted reflection become uncondensed again and will be condensed without the forgotten ones.
//! Unobserved turns that contain what should be forgotten will never be observed, and neither will the turn that asks
//! for it. The log of the session is append-only and still contains the conversation.

use super::Memory;
use super::search::{MemoryQuery, searchable_text};
use lango_core::{StoreError, Text, TurnId};
use lango_store::{CommitOutcome, ForgetRequest, MemoryId, MemoryOwner, TurnRange};
use sha2::{Digest as _, Sha256};

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

/// A call of a tool that forgets.
pub(super) struct ForgetCall<'a> {
    /// The turn that asks for it.
    pub turn: &'a TurnId,
    /// The digest of the memories that may be deleted; see [`digest_of`].
    pub approved: &'a Text,
}

/// The result of forgetting.
pub(super) enum ForgetOutcome {
    /// The memories with these ids were deleted.
    Done(Vec<MemoryId>),
    /// Nothing was deleted: other memories match than those that may be deleted.
    Changed,
    /// Nothing was deleted: concurrent changes interfered in every attempt.
    Stale,
}

/// Returns a digest that identifies a set of memories, given their sorted ids.
pub(super) fn digest_of(ids: &[MemoryId]) -> Text {
    let ids: Vec<String> = ids.iter().map(MemoryId::to_string).collect();
    let digest = Sha256::digest(ids.join(" "));
    base16ct::lower::encode_string(&digest).into()
}

impl Memory {
    /// Returns the ids of the memories that would be deleted, sorted.
    pub(super) async fn to_forget(
        &self,
        owner: &MemoryOwner,
        what: &ForgetTarget,
    ) -> Result<Vec<MemoryId>, StoreError> {
        let (ids, with_parts) = self.targets(owner, what).await?;
        let request = ForgetRequest {
            ids,
            with_parts,
            turns: Vec::new(),
        };
        self.rows().memories_to_forget(owner, request).await
    }

    /// Deletes memories. `call` is the tool call that asks for it, if there is one.
    pub(super) async fn forget(
        &self,
        owner: &MemoryOwner,
        call: Option<ForgetCall<'_>>,
        what: &ForgetTarget,
    ) -> Result<ForgetOutcome, StoreError> {
        for _ in 0..MAX_TRIES {
            let watermark = self.rows().watermark(owner).await?;
            let (ids, with_parts) = self.targets(owner, what).await?;
            let turns = match what {
                ForgetTarget::One(_) => Vec::new(),
                ForgetTarget::All(query) => self.turns_of(owner, watermark.observed, query).await?,
            };
            let mut forget = ForgetRequest {
                ids,
                with_parts,
                turns,
            };
            if let Some(ForgetCall { turn, approved }) = &call {
                // The revision ensures that exactly these are deleted.
                let found = self
                    .rows()
                    .memories_to_forget(owner, forget.clone())
                    .await?;
                if digest_of(&found) != **approved {
                    return Ok(ForgetOutcome::Changed);
                }
                let current = self.rows().current_turn(owner, turn).await?;
                forget.turns.extend(current);
            }
            let done = self
                .rows()
                .forget_memories(owner, watermark.revision, forget)
                .await?;
            if let CommitOutcome::Done(gone) = done {
                return Ok(ForgetOutcome::Done(gone));
            }
        }
        Ok(ForgetOutcome::Stale)
    }

    /// Returns the selected memories, and whether to delete their parts too.
    async fn targets(
        &self,
        owner: &MemoryOwner,
        what: &ForgetTarget,
    ) -> Result<(Vec<MemoryId>, bool), StoreError> {
        Ok(match what {
            ForgetTarget::One(id) => (vec![*id], true),
            ForgetTarget::All(query) => (self.ids_of(owner, query).await?, false),
        })
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
