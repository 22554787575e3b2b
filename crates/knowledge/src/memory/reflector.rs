//! The reflector: recollections of one generation become one of the next.

use super::words::Words;
use super::{By, Memory, Progress, prompt, rules, tokens};
use lango_core::{Source, StoreError, Trust};
use lango_store::{
    Commit, Generation, MemoryOwner, MemoryStep, NewRecollection, Recollection, RecollectionOrder,
};
use serde::Serialize;

/// How many bytes a reflection has at most.
pub(super) const REFLECTION_BYTES: usize = 1800;

/// So many recollections are condensed at once, however short they are.
const MOST_PARTS: usize = 64;

/// A recollection as the reflector is shown it.
#[derive(Serialize)]
struct ShownPart<'a> {
    turns: (u64, u64),
    trust: Trust,
    text: &'a str,
}

/// When recollections are condensed.
#[derive(Debug, Clone, Copy)]
pub(super) enum When {
    /// If they have more tokens than this.
    Past(u64),
    /// If there is one; about this many tokens at once.
    Now(u64),
}

impl Memory {
    /// Condenses the oldest recollections of a generation that went into no later one, if that is due.
    pub(super) async fn condense(
        &self,
        owner: &MemoryOwner,
        generation: Generation,
        when: When,
    ) -> Result<Progress, StoreError> {
        // After most turns nothing is due, which one read tells. The revision must be read before what is condensed.
        if matches!(when, When::Past(_)) && self.due_parts(owner, generation, when).await?.is_none()
        {
            return Ok(Progress::NotDue);
        }
        let watermark = self.rows().watermark(owner).await?;
        let Some(parts) = self.due_parts(owner, generation, when).await? else {
            return Ok(Progress::NotDue);
        };
        let words = self
            .words(
                owner,
                prompt::reflector(generation, REFLECTION_BYTES),
                data(&parts),
                REFLECTION_BYTES,
                || rules::reflect(&parts, REFLECTION_BYTES),
            )
            .await?;
        let (text, by) = match words {
            Words::Failed(detail) => return Ok(Progress::Failed(detail)),
            Words::Made { text, by } => (text, by),
            // A reflector cannot find nothing in something; what there was is kept.
            Words::Nothing => match rules::reflect(&parts, REFLECTION_BYTES) {
                Some(text) => (text, By::Rules),
                None => return Ok(Progress::NotDue),
            },
        };
        let reflection = NewRecollection {
            turns: parts.iter().fold((u64::MAX, 0), |(first, last), part| {
                (first.min(part.turns.0), last.max(part.turns.1))
            }),
            text,
            source: Source {
                name: self.maker(by).into(),
                trust: parts
                    .iter()
                    .fold(Trust::Trusted, |trust, part| trust.and(part.source.trust)),
            },
            created: self.parts.clock.now(),
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
            Commit::Done(_) => Ok(Progress::Reflected(by)),
            Commit::Stale => Ok(Progress::Dropped),
        }
    }

    /// Returns the oldest recollections of a generation that went into no later one, if there are enough to condense.
    async fn due_parts(
        &self,
        owner: &MemoryOwner,
        generation: Generation,
        when: When,
    ) -> Result<Option<Vec<Recollection>>, StoreError> {
        let order = RecollectionOrder::OldestUncondensed;
        let parts = self
            .rows()
            .recollections(owner, generation, order, MOST_PARTS);
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

/// How many parts from the oldest on are condensed, if there are enough.
fn batch(parts: &[Recollection], when: When) -> Option<usize> {
    let (When::Past(threshold) | When::Now(threshold)) = when;
    let mut sum = 0;
    for (index, part) in parts.iter().enumerate() {
        sum += tokens(&part.text);
        if sum > threshold {
            return Some(index + 1);
        }
    }
    let is_due = match when {
        When::Past(_) => parts.len() >= MOST_PARTS,
        When::Now(_) => !parts.is_empty(),
    };
    is_due.then_some(parts.len())
}

fn data(parts: &[Recollection]) -> String {
    let shown: Vec<ShownPart<'_>> = parts
        .iter()
        .map(|part| ShownPart {
            turns: (part.turns.0 + 1, part.turns.1 + 1),
            trust: part.source.trust,
            text: &part.text,
        })
        .collect();
    // Texts and numbers always have a JSON form.
    serde_json::to_string(&shown).unwrap_or_default()
}
