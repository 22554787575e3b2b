//! Applies grants to pending approvals. Grants are read only when a call needs approval, so other turns pay nothing,
//! and a grant that was revoked a moment ago no longer applies.

use super::{RunnerError, RunnerParts, UpdateSender, append};
use crate::gate;
use crate::turn::{Turn, TurnInput};
use lango_core::{AnswerSource, ApprovalAnswer, Event, EventBody};

/// Approves the pending calls that a grant covers. Does nothing if these events add neither a pending call nor a grant.
pub(super) async fn use_grants(
    parts: &RunnerParts,
    turn: &mut Turn,
    events: &[Event],
    updates: &UpdateSender,
) -> Result<(), RunnerError> {
    let concerns_grants = |event: &Event| match &event.body {
        EventBody::ApprovalRequested(_) => true,
        EventBody::ApprovalAnswered { by, .. } => *by == AnswerSource::Person,
        _ => false,
    };
    if !events.iter().any(concerns_grants) {
        return Ok(());
    }
    let waiting = turn.waiting();
    if waiting.is_empty() {
        return Ok(());
    }
    let grants = parts
        .store
        .grants(turn.session(), parts.rules.folder())
        .await?;
    for waiting in &waiting {
        if let Some(grant) = gate::grant_for(&waiting.request, &grants, &parts.tree) {
            let input = TurnInput::Answered {
                request: waiting.request.id.clone(),
                answer: ApprovalAnswer::Once,
                by: AnswerSource::Grant {
                    grant: grant.id.clone(),
                },
            };
            let events = turn.accept(input, parts.clock.now());
            append(parts, events, updates).await?;
        }
    }
    Ok(())
}
