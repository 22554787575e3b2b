//! Invariants of every random turn whose process ends at any point.

use crate::property::start_with_rules;
use lango_core::{ApprovalAnswer, Effect, Event, EventBody, Timestamp};
use lango_engine::{ApprovalRules, Tree, Turn, TurnInput, TurnStep};
use proptest::prelude::*;
use std::sync::Arc;

/// Simulates a crash while these steps are running. A later process resumes from the log; calls that may have had an
/// effect do not start again.
pub(crate) fn crash(
    tree: &Arc<Tree>,
    rules: &Arc<ApprovalRules>,
    events: &mut Vec<Event>,
    begun: Vec<TurnStep>,
) -> Result<Turn, TestCaseError> {
    let before = events.len();
    let mut turn = Turn::replay(Arc::clone(tree), start_with_rules(rules), events);
    events.extend(turn.accept(TurnInput::Resumed, Timestamp(2)));
    prop_assert!(events.len() > before, "taking it up again is a stored fact");
    let has_effect = |step: &&TurnStep| matches!(step, TurnStep::CallTool(tool) if tool.effect == Effect::NonIdempotent);
    let is_begun = |step: &&TurnStep| begun.iter().any(|other| other.key() == step.key());
    let ready = turn.ready();
    let again = ready.iter().filter(has_effect).find(is_begun);
    prop_assert!(
        again.is_none(),
        "what may have happened runs again: {:?}",
        again
    );
    Ok(turn)
}

/// Returns how many calls were repeated on the user's request.
pub(crate) fn retries(events: &[Event]) -> usize {
    let is_retry = |event: &&Event| {
        let body = &event.body;
        matches!(
            body,
            EventBody::ApprovalAnswered {
                answer: ApprovalAnswer::Retry,
                ..
            }
        )
    };
    events.iter().filter(is_retry).count()
}
