//! Answers to interrupts.

use super::run_input::{ResumeEntry, ResumeStatus};
use crate::Api;
use crate::model::{AnswerRequest, AnswerWord};
use crate::problem::{Problem, Result};
use crate::protocol::ClientSession;
use crate::routes::approvals::answer_of;
use lango_core::{
    ApprovalAnswer, ApprovalQuestion, EventBody, EventRange, PendingApproval, SessionCatalog as _,
    SessionStore as _,
};
use serde::Deserialize;
use serde_json::Value;
use std::collections::VecDeque;

/// How many of the latest events to search for an approval that was answered elsewhere.
const MAX_EVENTS: usize = 1000;

/// How to handle a run that answers interrupts.
pub(super) enum Resumption {
    /// These approvals are pending, and get these answers.
    Answers(VecDeque<(PendingApproval, ApprovalAnswer)>),
    /// All approvals were answered elsewhere, so the run only reports that nothing is pending.
    AnsweredElsewhere,
}

/// The short form of an answer's payload.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Decision {
    approved: bool,
    reason: Option<String>,
}

impl Resumption {
    /// Reads the answers of a run. They must cover all pending approvals of its session.
    pub(super) async fn of(
        api: &Api,
        session: &ClientSession,
        entries: &[ResumeEntry],
    ) -> Result<Self> {
        let approvals = api.store.approvals(&session.user).await?;
        let mut waiting = approvals.waiting;
        waiting.retain(|waiting| waiting.session == session.id);
        let mut answers = VecDeque::new();
        for entry in entries {
            let id = entry.interrupt_id.as_str();
            let place = waiting.iter().position(|waiting| waiting.request.id == *id);
            match place {
                Some(place) => {
                    let waiting = waiting.swap_remove(place);
                    let answer = answer_of(api, &waiting, answer_request(&waiting, entry)?)?;
                    answers.push_back((waiting, answer));
                }
                None if was_asked(api, session, id).await? => {}
                None => {
                    return Err(Problem::not_found(format!(
                        "no approval `{id}` waits for an answer in this thread"
                    )));
                }
            }
        }
        if let Some(open) = waiting.first() {
            return Err(Problem::conflict(format!(
                "`resume` must answer all interrupts of the thread, and `{}` is missing",
                open.request.id
            )));
        }
        Ok(if answers.is_empty() {
            Self::AnsweredElsewhere
        } else {
            Self::Answers(answers)
        })
    }
}

/// Converts the answer in an entry to the form of `POST /api/approvals/{id}`.
fn answer_request(waiting: &PendingApproval, entry: &ResumeEntry) -> Result<AnswerRequest> {
    let request = |answer, reason| AnswerRequest {
        answer,
        pattern: None,
        reason,
    };
    let (yes, no) = match waiting.request.question {
        ApprovalQuestion::Permission => (AnswerWord::Once, AnswerWord::No),
        ApprovalQuestion::UnknownOutcome | ApprovalQuestion::ContinueTurn => {
            (AnswerWord::Retry, AnswerWord::Skip)
        }
    };
    if entry.status == ResumeStatus::Cancelled {
        return Ok(request(no, None));
    }
    let decision = match &entry.payload {
        Value::Bool(approved) => Some(Decision {
            approved: *approved,
            reason: None,
        }),
        payload => Decision::deserialize(payload).ok(),
    };
    if let Some(Decision { approved, reason }) = decision {
        return Ok(request(if approved { yes } else { no }, reason));
    }
    AnswerRequest::deserialize(&entry.payload).map_err(|error| {
        Problem::unprocessable(format!(
            "the payload for `{}` must be {{\"approved\": true}} or {{\"answer\": \"once\"}}, with a `reason` or a `pattern` if needed: {error}",
            entry.interrupt_id
        ))
    })
}

/// Returns whether the session recently asked for this approval.
async fn was_asked(api: &Api, session: &ClientSession, id: &str) -> Result<bool> {
    let Some(head) = &session.head else {
        return Ok(false);
    };
    let page = EventRange {
        from: head.next_seq.saturating_sub(MAX_EVENTS as u64).max(1),
        limit: MAX_EVENTS,
    };
    let events = api.store.read(&session.id, page).await?;
    Ok(events.iter().any(
        |event| matches!(&event.body, EventBody::ApprovalRequested(request) if request.id == *id),
    ))
}
