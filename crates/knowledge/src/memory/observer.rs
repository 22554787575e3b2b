//! The observer: finished turns become one observation.
//!
//! A batch is the shortest run of turns, from the first that is not observed on, with more tokens than the threshold. So
//! which turns belong together depends on the log alone, not on when somebody looked.

use super::entry::date;
use super::words::Words;
use super::{By, Memory, Progress, prompt, rules, tokens};
use lango_core::{Exchange, MessageOrigin, Source, StoreError, Trust};
use lango_store::{Commit, MemoryOwner, MemoryStep, NewRecollection, TurnRange, UnobservedTurn};
use serde::Serialize;

/// How many bytes an observation has at most.
pub(super) const OBSERVATION_BYTES: usize = 1200;

/// How many bytes of a question and of an answer are looked at.
const TURN_TEXT_BYTES: usize = 3000;

/// So many turns are a batch, however short they are.
const MOST_TURNS: usize = 64;

/// A turn as the observer is shown it.
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
    /// Observes one batch of turns, if there is one.
    pub(super) async fn observe(&self, owner: &MemoryOwner) -> Result<Progress, StoreError> {
        let watermark = self.rows().watermark(owner).await?;
        let from_there = TurnRange {
            from: watermark.observed,
            limit: MOST_TURNS,
            text_bytes: TURN_TEXT_BYTES,
        };
        let mut turns = self.rows().unobserved_turns(owner, from_there).await?;
        let threshold = self.parts.settings.message_token_threshold;
        let Some(size) = batch(&turns, threshold) else {
            return Ok(Progress::NotDue);
        };
        turns.truncate(size);
        let (Some(first), Some(last)) = (turns.first(), turns.last()) else {
            return Ok(Progress::NotDue);
        };
        let shown = || turns.iter().filter_map(|turn| turn.exchange.as_ref());
        let trust = shown()
            .map(Exchange::trust)
            .fold(watermark.trust, Trust::and);
        let typed_trust = shown().map(trust_of_typed).fold(Trust::Trusted, Trust::and);
        let is_empty = turns.iter().all(|turn| turn.exchange.is_none());
        let words = if is_empty {
            Words::Nothing
        } else {
            self.words(
                owner,
                prompt::observer(OBSERVATION_BYTES),
                data(&turns),
                OBSERVATION_BYTES,
                || rules::observe(&turns),
            )
            .await?
        };
        let made = match words {
            Words::Failed(detail) => return Ok(Progress::Failed(detail)),
            Words::Nothing => None,
            Words::Made { text, by } => Some((text, by)),
        };
        let by = made.as_ref().map(|(_, by)| *by);
        let observation = made.map(|(text, by)| NewRecollection {
            turns: (first.ordinal, last.ordinal),
            text,
            source: Source {
                name: self.maker(by).into(),
                trust: match by {
                    By::Model => trust,
                    By::Rules => typed_trust,
                },
            },
            created: self.parts.clock.now(),
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
            Commit::Done(_) => Ok(Progress::Observed {
                turns: last.ordinal + 1 - watermark.observed,
                made: by,
            }),
            Commit::Stale => Ok(Progress::Dropped),
        }
    }
}

/// How many turns from the first on are a batch, if there are enough.
fn batch(turns: &[UnobservedTurn], threshold: u64) -> Option<usize> {
    let mut sum = 0;
    for (index, turn) in turns.iter().enumerate() {
        sum += turn.exchange.as_ref().map_or(0, exchange_tokens);
        if sum > threshold {
            return Some(index + 1);
        }
    }
    (turns.len() >= MOST_TURNS).then_some(turns.len())
}

/// Returns the label of the words that rules quote: they are the person's, unless a program sent them or an older log does
/// not say where they came from.
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
    // Texts and numbers always have a JSON form.
    serde_json::to_string(&shown).unwrap_or_default()
}
