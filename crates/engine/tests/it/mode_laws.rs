//! Invariants of permission modes in every random turn, in which the mode changes at random.

use lango_core::{
    ApprovalQuestion, ApprovalRequest, CallId, Effect, Event, EventBody, FileEdit, Inspection,
    PermissionMode,
};
use proptest::prelude::*;
use std::collections::HashSet;

/// The mode in which each event of a turn was decided, in the order of the events.
#[derive(Default)]
pub(crate) struct ModeLog {
    modes: Vec<PermissionMode>,
}

impl ModeLog {
    /// Notes the mode of the events that are new.
    pub(crate) fn note(&mut self, events: &[Event], mode: PermissionMode) {
        self.modes.resize(events.len(), mode);
    }
}

/// Checks that in a mode without changes no call with an effect starts or is asked for, and that an edit starts without
/// an approval only in mode `accept-edits`, and only if it is ordinary and the user did not deny it.
pub(crate) fn check_modes(events: &[Event], modes: &ModeLog) -> Result<(), TestCaseError> {
    prop_assert_eq!(events.len(), modes.modes.len());
    let ordinary = Inspection {
        edit: Some(Box::new(FileEdit::default())),
        ..Inspection::default()
    };
    let mut asked: Vec<&ApprovalRequest> = Vec::new();
    let mut approved: HashSet<&CallId> = HashSet::new();
    let mut answers: Vec<(&ApprovalRequest, bool)> = Vec::new();
    for (event, mode) in events.iter().zip(&modes.modes) {
        match &event.body {
            EventBody::ApprovalRequested(request) => {
                prop_assert!(
                    request.question != ApprovalQuestion::Permission || mode.allows(request.effect),
                    "asked in mode {}",
                    mode
                );
                asked.push(request);
            }
            EventBody::ApprovalAnswered {
                request, answer, ..
            } => {
                let request = asked.iter().find(|asked| asked.id == *request);
                let request = request.expect("it was asked");
                let allows = answer.allows() || *answer == lango_core::ApprovalAnswer::Retry;
                if allows {
                    approved.insert(&request.call);
                }
                answers.push((request, allows));
            }
            EventBody::ToolCalled {
                call,
                tool,
                arguments,
                effect,
                inspection,
            } => {
                prop_assert!(mode.allows(*effect), "{} ran in mode {}", tool, mode);
                if tool.as_str() != "fs_edit" || approved.contains(call) {
                    continue;
                }
                let is_same = |request: &ApprovalRequest| {
                    request.tool == *tool
                        && request.arguments == *arguments
                        && request.agent == event.author
                };
                let earlier = answers.iter().rev().find(|(asked, _)| is_same(asked));
                match earlier {
                    // The answer to an equal call.
                    Some((asked, true)) if asked.pattern.is_some() => {}
                    Some((asked, false)) if asked.question == ApprovalQuestion::Permission => {
                        return Err(TestCaseError::fail("denied, and ran"));
                    }
                    _ => {
                        prop_assert_eq!(*mode, PermissionMode::AcceptEdits, "not approved");
                        prop_assert_eq!(inspection, &ordinary);
                        prop_assert_eq!(*effect, Effect::NonIdempotent);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}
