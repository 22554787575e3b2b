//! The status of a turn according to the log. Querying it changes nothing.

use super::{Runner, RunnerError, TurnReport, report};
use lango_core::{BusyPolicy, Event, EventBody, PendingApproval, SessionId, StoreError, TurnId};

/// The status of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnStatus {
    /// The log does not contain the turn.
    Unknown,
    Finished(TurnReport),
    /// These calls wait for approval; other steps may be running.
    Waiting(Vec<PendingApproval>),
    /// The turn is running, or was interrupted.
    Unfinished,
}

impl Runner {
    /// Returns the status of a turn according to the log.
    pub async fn turn_status(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> Result<TurnStatus, RunnerError> {
        let events = self.parts.store.turn_events(session, turn).await?;
        let is_end = |event: &Event| matches!(event.body, EventBody::TurnFinished { .. });
        if events.iter().any(is_end) {
            return Ok(TurnStatus::Finished(report(&events)));
        }
        let waiting = waiting(&events);
        Ok(match (events.is_empty(), waiting.is_empty()) {
            (true, _) => TurnStatus::Unknown,
            (false, false) => TurnStatus::Waiting(waiting),
            (false, true) => TurnStatus::Unfinished,
        })
    }

    /// Whether no process runs a turn in the session. Briefly acquires the lease to find out.
    pub async fn is_free(&self, session: &SessionId) -> Result<bool, RunnerError> {
        match self.parts.store.acquire(session, BusyPolicy::Refuse).await {
            Ok(_) => Ok(true),
            Err(StoreError::Busy { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the requests without an answer.
fn waiting(events: &[Event]) -> Vec<PendingApproval> {
    let mut waiting: Vec<PendingApproval> = Vec::new();
    for event in events {
        match &event.body {
            EventBody::ApprovalRequested(request) => waiting.push(PendingApproval {
                session: event.session.clone(),
                turn: event.turn.clone(),
                asked: event.time,
                request: request.clone(),
            }),
            EventBody::ApprovalAnswered { request, .. } => {
                waiting.retain(|waiting| waiting.request.id != *request);
            }
            _ => {}
        }
    }
    waiting
}
