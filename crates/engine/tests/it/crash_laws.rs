//! What holds for every random turn whose process ends anywhere.

use crate::property::ruled;
use lango_core::{Answer, Effect, Event, EventBody, Timestamp};
use lango_engine::{Input, Rules, Step, Tree, Turn};
use proptest::prelude::*;
use std::sync::Arc;

/// The process ends while these steps are under way, and a later one goes on from the log: what may have had an effect is
/// not begun again.
pub fn crash(
    tree: &Arc<Tree>,
    rules: &Arc<Rules>,
    events: &mut Vec<Event>,
    begun: Vec<Step>,
) -> Result<Turn, TestCaseError> {
    let before = events.len();
    let mut turn = Turn::replay(Arc::clone(tree), ruled(rules), events);
    events.extend(turn.accept(Input::Resumed, Timestamp(2)));
    prop_assert!(events.len() > before, "taking it up again is a stored fact");
    let has_effect =
        |step: &&Step| matches!(step, Step::CallTool(tool) if tool.effect == Effect::Effect);
    let is_begun = |step: &&Step| begun.iter().any(|other| other.key() == step.key());
    let ready = turn.ready();
    let again = ready.iter().filter(has_effect).find(is_begun);
    prop_assert!(
        again.is_none(),
        "what may have happened runs again: {:?}",
        again
    );
    Ok(turn)
}

/// How often a person had a call run again.
pub fn retries(events: &[Event]) -> usize {
    let is_retry = |event: &&Event| {
        let body = &event.body;
        matches!(
            body,
            EventBody::ApprovalAnswered {
                answer: Answer::Retry,
                ..
            }
        )
    };
    events.iter().filter(is_retry).count()
}
