//! The observer: turns a batch of finished turns into one observation.
//!
//! A batch is the shortest run of turns, starting at the first unobserved one, with more tokens than the threshold. So
//! the batches depend only on the log, not on when the observer runs.

use super::summary::Summary;
use super::{Author, Memory, StepOutcome, prompt, rules, tokens};
use crate::date::date;
use lango_core::{Exchange, MessageOrigin, Provenance, StoreError, Trust};
use lango_store::{
    CommitOutcome, MemoryOwner, MemoryStep, NewMemoryRecord, TurnRange, UnobservedTurn,
};
use serde::Serialize;

/// Maximum length of an observation.
pub(super) const OBSERVATION_BYTES: usize = 1200;

/// How many bytes of a question and of an answer the observer sees.
const TURN_TEXT_BYTES: usize = 3000;

/// Maximum number of turns per batch, however short they are.
const MAX_TURNS: usize = 64;

/// A turn as the observer sees it.
#[derive(Serialize)]
struct ShownTurn<'a> {
    turn: u64,
    date: String,
    person: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a str>,
}

impl Memory {
    /// Observes one batch of turns, if one is due.
    pub(super) async fn observe(&self, owner: &MemoryOwner) -> Result<StepOutcome, StoreError> {
        let watermark = self.rows().watermark(owner).await?;
        let from_there = TurnRange {
            from: watermark.observed,
            limit: MAX_TURNS,
            text_bytes: TURN_TEXT_BYTES,
        };
        let mut turns = self.rows().unobserved_turns(owner, from_there).await?;
        let threshold = self.inner.settings.message_token_threshold;
        let Some(size) = batch(&turns, threshold) else {
            return Ok(StepOutcome::NotDue);
        };
        turns.truncate(size);
        let (Some(first), Some(last)) = (turns.first(), turns.last()) else {
            return Ok(StepOutcome::NotDue);
        };
        let shown = || turns.iter().filter_map(|turn| turn.exchange.as_ref());
        let trust = shown()
            .map(Exchange::trust)
            .fold(watermark.trust, Trust::and);
        let typed_trust = shown().map(trust_of_typed).fold(Trust::Trusted, Trust::and);
        let is_empty = turns.iter().all(|turn| turn.exchange.is_none());
        let summary = if is_empty {
            Summary::Nothing
        } else {
            self.summarize(
                owner,
                prompt::observer(OBSERVATION_BYTES),
                data(&turns),
                OBSERVATION_BYTES,
                || rules::observe(&turns),
            )
            .await?
        };
        let observed = match summary {
            Summary::Failed(detail) => return Ok(StepOutcome::Failed(detail)),
            Summary::Nothing => None,
            Summary::Text { text, author } => Some((text, author)),
        };
        let author = observed.as_ref().map(|(_, author)| *author);
        let observation = observed.map(|(text, author)| NewMemoryRecord {
            turns: (first.ordinal, last.ordinal),
            text,
            source: Provenance {
                name: self.author_name(author).into(),
                trust: match author {
                    Author::Model => trust,
                    Author::Rules => typed_trust,
                },
            },
            created: self.inner.clock.now(),
        });
        let step = MemoryStep::Observe {
            observed: last.ordinal + 1,
            trust,
            observation,
        };
        match self
            .rows()
            .commit_step(owner, watermark.revision, step)
            .await?
        {
            CommitOutcome::Done(_) => Ok(StepOutcome::Observed {
                turns: last.ordinal + 1 - watermark.observed,
                observation: author,
            }),
            CommitOutcome::Stale => Ok(StepOutcome::Dropped),
        }
    }
}

/// Returns the size of the first batch, if there are enough turns.
fn batch(turns: &[UnobservedTurn], threshold: u64) -> Option<usize> {
    let mut sum = 0;
    for (index, turn) in turns.iter().enumerate() {
        sum += turn.exchange.as_ref().map_or(0, exchange_tokens);
        if sum > threshold {
            return Some(index + 1);
        }
    }
    (turns.len() >= MAX_TURNS).then_some(turns.len())
}

/// Returns the trust label of the text that rules quote: trusted if the user typed it, untrusted if a program sent it
/// or an older log does not say.
fn trust_of_typed(exchange: &Exchange) -> Trust {
    match exchange.origin {
        Some(MessageOrigin::Person | MessageOrigin::Pipe { .. }) => Trust::Trusted,
        Some(MessageOrigin::Program) | None => Trust::Untrusted,
    }
}

fn exchange_tokens(exchange: &Exchange) -> u64 {
    let answer = exchange.answer.as_ref();
    tokens(&exchange.question) + answer.map_or(0, |answer| tokens(&answer.text))
}

fn data(turns: &[UnobservedTurn]) -> String {
    let shown: Vec<ShownTurn<'_>> = turns
        .iter()
        .filter_map(|turn| {
            let exchange = turn.exchange.as_ref()?;
            let answer = exchange.answer.as_ref();
            Some(ShownTurn {
                turn: turn.ordinal + 1,
                date: date(turn.started),
                person: &exchange.question,
                agent: answer.map(|answer| answer.author.as_str()),
                answer: answer.map(|answer| &*answer.text),
            })
        })
        .collect();
    // Serializing texts and numbers cannot fail.
    serde_json::to_string(&shown).unwrap_or_default()
}
