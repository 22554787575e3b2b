//! Invariants of every turn with an answer schema.

use lango_core::{Event, EventBody, Outcome};
use lango_engine::Tree;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

/// A schema that one of the random texts matches.
pub(crate) fn array_schema() -> Arc<Value> {
    Arc::new(json!({ "type": "array" }))
}

/// Checks that an agent's answer comes from the root and matches the schema.
pub(crate) fn check_answer(tree: &Tree, events: &[Event]) -> Result<(), TestCaseError> {
    let has_schema = matches!(
        events.first().map(|event| &event.body),
        Some(EventBody::UserMessage { settings: Some(settings), .. }) if settings.answer_schema.is_some()
    );
    let Some(EventBody::TurnFinished {
        outcome: Outcome::Answered { .. },
        answer: Some(seq),
        ..
    }) = events.last().map(|event| &event.body)
    else {
        return Ok(());
    };
    if !has_schema {
        return Ok(());
    }
    let answer = events.iter().find(|event| event.seq == *seq);
    let Some(Event {
        author,
        body: EventBody::AgentMessage { text, .. },
        ..
    }) = answer
    else {
        return Err(TestCaseError::fail(format!("{answer:?} is not an answer")));
    };
    prop_assert_eq!(author, &tree.root.name);
    let value: Result<Value, _> = serde_json::from_str(text);
    prop_assert!(value.is_ok_and(|value| value.is_array()), "{text}");
    Ok(())
}
