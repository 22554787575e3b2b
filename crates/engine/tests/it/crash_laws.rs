//! Invariants of every random turn whose process ends at any point.

use crate::property::{Permissions, start_with};
use lango_core::{ApprovalAnswer, Effect, Event, EventBody, Timestamp};
use lango_engine::{Tree, Turn, TurnInput, TurnStep};
use proptest::prelude::*;
use std::sync::Arc;

/// Simulates a crash while these steps are running. A later process resumes from the log; calls that may have had an
/// effect do not start again.
pub(crate) fn crash(
    tree: &Arc<Tree>,
    permissions: &Permissions,
    events: &mut Vec<Event>,
    begun: Vec<TurnStep>,
) -> Result<Turn, TestCaseError> {
    let before = events.len();
    let mut turn = Turn::replay(Arc::clone(tree), start_with(permissions), events);
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
    let is_retry = |pair: &&[Event]| {
        // In a mode that forbids changes, the answer has no effect.
        let is_called = matches!(&pair[1].body, EventBody::ToolCalled { .. });
        let retry = ApprovalAnswer::Retry;
        matches!(&pair[0].body, EventBody::ApprovalAnswered { answer, .. } if *answer == retry)
            && is_called
    };
    events.windows(2).filter(is_retry).count()
}
