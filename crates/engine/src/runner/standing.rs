//! How a turn stands by the log, for whoever only looks: nothing is opened or closed.

use super::{Runner, RunnerError, TurnReport, report};
use lango_core::{BusyPolicy, Event, EventBody, SessionId, StoreError, TurnId, Waiting};

/// How a turn stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// The log does not know it.
    Unknown,
    /// It has an outcome.
    Finished(TurnReport),
    /// These calls wait for a person; others may be under way.
    Waiting(Vec<Waiting>),
    /// Somebody is at work on it, or was when a process ended.
    Unfinished,
}

impl Runner {
    /// How a turn stands by the log.
    pub async fn standing(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> Result<Standing, RunnerError> {
        let events = self.parts.store.turn_events(session, turn).await?;
        let is_end = |event: &Event| matches!(event.body, EventBody::TurnFinished { .. });
        if events.iter().any(is_end) {
            return Ok(Standing::Finished(report(&events)));
        }
        let waiting = waiting(&events);
        Ok(match (events.is_empty(), waiting.is_empty()) {
            (true, _) => Standing::Unknown,
            (false, false) => Standing::Waiting(waiting),
            (false, true) => Standing::Unfinished,
        })
    }

    /// Returns whether no process is at work in a session. Acquires its lease for a moment to find out.
    pub async fn is_free(&self, session: &SessionId) -> Result<bool, RunnerError> {
        match self.parts.store.acquire(session, BusyPolicy::Refuse).await {
            Ok(_) => Ok(true),
            Err(StoreError::Busy { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// The requests that nobody has answered.
fn waiting(events: &[Event]) -> Vec<Waiting> {
    let mut waiting: Vec<Waiting> = Vec::new();
    for event in events {
        match &event.body {
            EventBody::ApprovalRequested(request) => waiting.push(Waiting {
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
