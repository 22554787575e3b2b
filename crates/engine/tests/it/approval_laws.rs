//! What holds for questions and answers in every random turn.

use crate::property::Choices;
use crate::support::rule;
use lango_core::{Answer, AnsweredBy, ApprovalRequest, Asks, Effect, Event, EventBody, Waiting};
use lango_engine::{Action, Input, Rules};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// What is asked for, and what never runs.
pub fn rules() -> Arc<Rules> {
    Arc::new(Rules::new(vec![
        rule(Action::Ask, "exec_*"),
        rule(Action::AskEachTime, "payment_*"),
        rule(Action::Deny, "search_*"),
    ]))
}

/// A random answer, or the end.
pub fn answer(waiting: &Waiting, choices: &mut Choices<'_>) -> Input {
    match choices.next(20) {
        18 => return Input::Cancelled,
        19 => return Input::Interrupted,
        _ => {}
    }
    let answer = match (waiting.request.asks, choices.next(3)) {
        (_, 1) => Answer::No { reason: None },
        (Asks::Permission, 0) => Answer::Once,
        (Asks::Permission, _) => Answer::Session {
            pattern: "*".into(),
        },
        (Asks::Fate | Asks::Turn, 0) => Answer::Retry,
        (Asks::Fate | Asks::Turn, _) => Answer::Happened {
            text: "it did".into(),
        },
    };
    Input::Answered {
        request: waiting.request.id.clone(),
        answer,
        by: AnsweredBy::Person,
    }
}

/// What is denied never runs; what is asked for runs only after a yes to that very call; every question has one answer.
pub fn check_approvals(events: &[Event]) -> Result<(), TestCaseError> {
    let mut asked: HashMap<&str, &ApprovalRequest> = HashMap::new();
    let mut allowed: Vec<&ApprovalRequest> = Vec::new();
    for event in events {
        match &event.body {
            EventBody::ApprovalRequested(request) => {
                prop_assert!(asked.insert(request.id.as_str(), request).is_none());
                let same = |other: &&ApprovalRequest| other.digest == request.digest;
                prop_assert!(
                    request.pattern.is_none() || !allowed.iter().any(same),
                    "asked again"
                );
            }
            EventBody::ApprovalAnswered {
                request, answer, ..
            } => {
                let request = asked.remove(request.as_str());
                prop_assert!(request.is_some(), "an answer to nothing");
                allowed.extend(request.filter(|_| answer.allows()));
            }
            EventBody::ToolCalled {
                call,
                tool,
                arguments,
                effect,
                ..
            } => {
                let fits = |request: &&ApprovalRequest| {
                    request.tool == *tool
                        && request.arguments == *arguments
                        && request.agent == event.author
                };
                let mut yes = allowed.iter().filter(|request| fits(request));
                let is_allowed = yes.next().is_some();
                let is_asked_for = allowed.iter().any(|yes| fits(yes) && yes.call == *call);
                if *effect != Effect::Pure {
                    allowed.retain(|request| fits(request));
                }
                match tool.as_str() {
                    "exec_shell" => prop_assert!(is_allowed, "not asked for"),
                    "payment_send" => prop_assert!(is_asked_for),
                    "search_web" => return Err(TestCaseError::fail("denied, and ran")),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    prop_assert!(asked.is_empty(), "left without an answer");
    Ok(())
}
