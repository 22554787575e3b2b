//! Answers that a person gave for calls to come. They are looked up when a call is asked for and not before: a turn that
//! asks for nothing pays nothing, and a grant that was taken back a moment ago does not hold.

use super::{RunnerError, RunnerParts, Shown, append};
use crate::gate;
use crate::turn::{Input, Turn};
use lango_core::{Answer, AnsweredBy, Event, EventBody, Grant, Waiting};
use tokio::sync::mpsc;

/// Answers the calls that wait and that a person has allowed before, if these events can have changed that.
pub(super) async fn use_grants(
    parts: &RunnerParts,
    turn: &mut Turn,
    events: &[Event],
    shown: &mpsc::Sender<Shown>,
) -> Result<(), RunnerError> {
    let concerns_grants = |event: &Event| match &event.body {
        EventBody::ApprovalRequested(_) => true,
        EventBody::ApprovalAnswered { by, .. } => *by == AnsweredBy::Person,
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
        if let Some(grant) = grant_for(parts, waiting, &grants) {
            let input = Input::Answered {
                request: waiting.request.id.clone(),
                answer: Answer::Once,
                by: AnsweredBy::Grant {
                    grant: grant.id.clone(),
                },
            };
            let events = turn.accept(input, parts.clock.now());
            append(parts, events, shown).await?;
        }
    }
    Ok(())
}

fn grant_for<'a>(parts: &RunnerParts, waiting: &Waiting, grants: &'a [Grant]) -> Option<&'a Grant> {
    let request = &waiting.request;
    // A call without a pattern has to be asked for every time.
    request.pattern.as_ref()?;
    let agent = parts.tree.agent(request.agent.as_str())?;
    let tool = agent.tool(request.tool.as_str())?;
    let call = (&*request.arguments, &request.inspection);
    gate::granted(grants, &parts.tree, &request.agent, &tool.spec, call)
}
