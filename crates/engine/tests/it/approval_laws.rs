//! Invariants of approvals in every random turn.

use crate::choices::Choices;
use crate::support::rule;
use lango_core::{
    AnswerSource, ApprovalAnswer, ApprovalQuestion, ApprovalRequest, Call, Effect, Event,
    EventBody, FileEdit, GuardedTarget, Inspection, PendingApproval,
};
use lango_engine::{ApprovalRules, RuleAction, TurnInput};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// Rules that ask about some calls and deny others.
pub(crate) fn rules() -> Arc<ApprovalRules> {
    Arc::new(ApprovalRules::new(vec![
        rule(RuleAction::Ask, "exec_*"),
        rule(RuleAction::AskEachTime, "payment_*"),
        rule(RuleAction::Deny, "search_*"),
    ]))
}

/// Returns a random inspection of a file that a call changes, and an empty one for all other calls.
pub(crate) fn inspection(call: &Call, choices: &mut Choices<'_>) -> Inspection {
    if &*call.name != "fs_edit" {
        return Inspection::default();
    }
    let edit = |caution: Option<&str>| Inspection {
        edit: Some(Box::new(FileEdit {
            caution: caution.map(Into::into),
            ..FileEdit::default()
        })),
        ..Inspection::default()
    };
    let guarded = || GuardedTarget {
        path: ".vscode/x".into(),
        reason: "`.vscode` configures other programs".into(),
    };
    match choices.next(4) {
        0 => Inspection::default(),
        1 => edit(Some("`Makefile` is executed by make")),
        2 => Inspection {
            guarded: Some(guarded()),
            ..edit(None)
        },
        _ => edit(None),
    }
}

/// Answers at random, or ends the turn.
pub(crate) fn answer(waiting: &PendingApproval, choices: &mut Choices<'_>) -> TurnInput {
    match choices.next(20) {
        18 => {
            return TurnInput::Cancelled {
                partial: Vec::new(),
                printed: Vec::new(),
            };
        }
        19 => return TurnInput::Interrupted,
        _ => {}
    }
    let answer = match (waiting.request.question, choices.next(3)) {
        (_, 1) => ApprovalAnswer::No { reason: None },
        (ApprovalQuestion::Permission, 0) => ApprovalAnswer::Once,
        (ApprovalQuestion::Permission, _) => ApprovalAnswer::Session {
            pattern: "*".into(),
        },
        (ApprovalQuestion::UnknownOutcome | ApprovalQuestion::ContinueTurn, 0) => {
            ApprovalAnswer::Retry
        }
        (ApprovalQuestion::UnknownOutcome | ApprovalQuestion::ContinueTurn, _) => {
            ApprovalAnswer::Happened {
                text: "it did".into(),
            }
        }
    };
    TurnInput::Answered {
        request: waiting.request.id.clone(),
        answer,
        by: AnswerSource::Person,
    }
}

/// Checks that denied calls never run, that calls run only after an approval of exactly that call, and that every
/// request has one answer.
pub(crate) fn check_approvals(events: &[Event]) -> Result<(), TestCaseError> {
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
                    "exec_shell" => prop_assert!(is_allowed, "not approved"),
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
