//! The reflector: condenses memories of one generation into one of the next.

use super::summary::Summary;
use super::{Author, Memory, StepOutcome, prompt, rules, tokens};
use lango_core::{Provenance, StoreError, Trust};
use lango_store::{
    CommitOutcome, Generation, MemoryOrder, MemoryOwner, MemoryRecord, MemoryStep, NewMemoryRecord,
};
use serde::Serialize;

/// Maximum length of a reflection.
pub(super) const REFLECTION_BYTES: usize = 1800;

/// Maximum number of memories that are condensed together, however short they are.
const MAX_PARTS: usize = 64;

/// A memory as the reflector sees it.
#[derive(Serialize)]
struct ShownPart<'a> {
    turns: (u64, u64),
    trust: Trust,
    text: &'a str,
}

/// When memories are condensed.
#[derive(Debug, Clone, Copy)]
pub(super) enum CondenseTrigger {
    /// Once they have more tokens than this.
    Above(u64),
    /// Immediately, if there are any, in batches of about this many tokens.
    Now(u64),
}

impl Memory {
    /// Condenses the oldest uncondensed memories of a generation, if that is due.
    pub(super) async fn condense(
        &self,
        owner: &MemoryOwner,
        generation: Generation,
        when: CondenseTrigger,
    ) -> Result<StepOutcome, StoreError> {
        // After most turns nothing is due, and this read alone shows it. Otherwise read again, because the revision
        // must be read before the memories.
        if matches!(when, CondenseTrigger::Above(_))
            && self.due_parts(owner, generation, when).await?.is_none()
        {
            return Ok(StepOutcome::NotDue);
        }
        let watermark = self.rows().watermark(owner).await?;
        let Some(parts) = self.due_parts(owner, generation, when).await? else {
            return Ok(StepOutcome::NotDue);
        };
        let summary = self
            .summarize(
                owner,
                prompt::reflector(generation, REFLECTION_BYTES),
                data(&parts),
                REFLECTION_BYTES,
                || rules::reflect(&parts, REFLECTION_BYTES),
            )
            .await?;
        let (text, author) = match summary {
            Summary::Failed(detail) => return Ok(StepOutcome::Failed(detail)),
            Summary::Text { text, author } => (text, author),
            // Every memory contains something, so the reply is wrong and the rules condense instead.
            Summary::Nothing => match rules::reflect(&parts, REFLECTION_BYTES) {
                Some(text) => (text, Author::Rules),
                None => return Ok(StepOutcome::NotDue),
            },
        };
        let reflection = NewMemoryRecord {
            turns: parts.iter().fold((u64::MAX, 0), |(first, last), part| {
                (first.min(part.turns.0), last.max(part.turns.1))
            }),
            text,
            source: Provenance {
                name: self.author_name(author).into(),
                trust: parts
                    .iter()
                    .fold(Trust::Trusted, |trust, part| trust.and(part.source.trust)),
            },
            created: self.inner.clock.now(),
        };
        let step = MemoryStep::Condense {
            parts: parts.iter().map(|part| part.id).collect(),
            generation: next(generation),
            reflection,
        };
        match self
            .rows()
            .commit_step(owner, watermark.revision, step)
            .await?
        {
            CommitOutcome::Done(_) => Ok(StepOutcome::Reflected(author)),
            CommitOutcome::Stale => Ok(StepOutcome::Dropped),
        }
    }

    /// Returns the oldest uncondensed memories of a generation, if there are enough.
    async fn due_parts(
        &self,
        owner: &MemoryOwner,
        generation: Generation,
        when: CondenseTrigger,
    ) -> Result<Option<Vec<MemoryRecord>>, StoreError> {
        let order = MemoryOrder::OldestUncondensed;
        let parts = self
            .rows()
            .recollections(owner, generation, order, MAX_PARTS);
        let mut parts = parts.await?;
        let size = batch(&parts, when);
        Ok(size.map(|size| {
            parts.truncate(size);
            parts
        }))
    }
}

fn next(generation: Generation) -> Generation {
    match generation {
        Generation::Observation => Generation::First,
        Generation::First | Generation::Second => Generation::Second,
    }
}

/// Returns how many of the oldest parts to condense, if there are enough.
fn batch(parts: &[MemoryRecord], when: CondenseTrigger) -> Option<usize> {
    let (CondenseTrigger::Above(threshold) | CondenseTrigger::Now(threshold)) = when;
    let mut sum = 0;
    for (index, part) in parts.iter().enumerate() {
        sum += tokens(&part.text);
        if sum > threshold {
            return Some(index + 1);
        }
    }
    let is_due = match when {
        CondenseTrigger::Above(_) => parts.len() >= MAX_PARTS,
        CondenseTrigger::Now(_) => !parts.is_empty(),
    };
    is_due.then_some(parts.len())
}

fn data(parts: &[MemoryRecord]) -> String {
    let shown: Vec<ShownPart<'_>> = parts
        .iter()
        .map(|part| ShownPart {
            turns: (part.turns.0 + 1, part.turns.1 + 1),
            trust: part.source.trust,
            text: &part.text,
        })
        .collect();
    // Serializing texts and numbers cannot fail.
    serde_json::to_string(&shown).unwrap_or_default()
}
