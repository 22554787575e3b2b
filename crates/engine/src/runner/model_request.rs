//! Recomputes the request of a past model call from the log.
//!
//! A request is a pure function of the log and the agents, so it is not stored: replaying the turn up to the call
//! yields it again, as long as the agents are the same as in that turn.

use super::{Runner, RunnerError};
use crate::history::History;
use crate::turn::{Turn, TurnStart, TurnStep};
use lango_core::{Event, EventBody, ModelRequest, SessionId, TurnId};
use std::sync::Arc;

/// A past model call.
#[derive(Debug)]
pub struct ModelCall {
    /// The event with the model's reply.
    pub reply: Event,
    /// The request, or why it cannot be recomputed.
    pub request: Result<ModelRequest, RecomputeError>,
}

/// Why a request cannot be recomputed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecomputeError {
    /// The agents, their instructions or their tools differ from those of the turn.
    #[error("the agents have changed since this call, so its request cannot be recomputed")]
    AgentsChanged,
    /// The log does not contain the settings of the turn.
    #[error(
        "an older lango wrote this turn without its settings, so its request cannot be recomputed"
    )]
    NoSettings,
    /// The replayed turn would not make this call.
    #[error("replaying the log does not lead to this call")]
    NotReached,
}

impl Runner {
    /// Returns the model call whose reply is the event `seq` of a turn; `None` if that event is not a model's reply.
    pub async fn model_call(
        &self,
        session: &SessionId,
        turn: &TurnId,
        seq: u64,
    ) -> Result<Option<ModelCall>, RunnerError> {
        let events = self.parts.store.turn_events(session, turn).await?;
        let Some(at) = events.iter().position(|event| event.seq == seq) else {
            return Ok(None);
        };
        let reply = events[at].clone();
        if !matches!(&reply.body, EventBody::AgentMessage { model: Some(_), .. }) {
            return Ok(None);
        }
        let request = match self.check_agents(&events) {
            Ok(()) => self.recompute(session, turn, &events, at).await?,
            Err(problem) => Err(problem),
        };
        Ok(Some(ModelCall { reply, request }))
    }

    fn check_agents(&self, events: &[Event]) -> Result<(), RecomputeError> {
        let settings = events.first().and_then(|first| match &first.body {
            EventBody::UserMessage { settings, .. } => settings.as_ref(),
            _ => None,
        });
        let settings = settings.ok_or(RecomputeError::NoSettings)?;
        if settings.topology == self.parts.tree.digest {
            Ok(())
        } else {
            Err(RecomputeError::AgentsChanged)
        }
    }

    async fn recompute(
        &self,
        session: &SessionId,
        turn: &TurnId,
        events: &[Event],
        at: usize,
    ) -> Result<Result<ModelRequest, RecomputeError>, RunnerError> {
        let exchanges = self.parts.store.history_of(session, turn).await?;
        let root = &self.parts.tree.root.name;
        let start = TurnStart {
            session: session.clone(),
            turn: turn.clone(),
            first_seq: events[0].seq,
            history: Arc::new(History::new(root, exchanges)),
            rules: Arc::clone(&self.parts.rules),
            mode: self.parts.mode.clone(),
        };
        let sent = &events[..sent_after(events, at)];
        let turn = Turn::replay(Arc::clone(&self.parts.tree), start, sent);
        let frame = &events[at].frame;
        let step = turn.ready().into_iter().find_map(|step| match step {
            TurnStep::CallModel(step) if step.frame == *frame => Some(step),
            _ => None,
        });
        Ok(step
            .map(|step| turn.request(&step))
            .ok_or(RecomputeError::NotReached))
    }
}

/// Returns the number of events that were stored when a model was called. `at` is the index of its reply.
///
/// The root is called when all its calls have results, so nothing else runs at the same time. Sub-agents run
/// concurrently, so for them only the events up to the previous event of their frame count, and the events that were
/// decided together with that one.
fn sent_after(events: &[Event], at: usize) -> usize {
    let frame = &events[at].frame;
    if frame.is_root() {
        return at;
    }
    let concerns_frame = |event: &Event| {
        let opens_frame = matches!(
            &event.body,
            EventBody::AgentDelegated { call, .. } if call.as_str() == frame.as_str()
        );
        event.frame == *frame || opens_frame
    };
    let previous = events[..at].iter().rposition(concerns_frame).unwrap_or(0);
    let time = events[previous].time;
    let together = events[previous + 1..at]
        .iter()
        .take_while(|event| event.time == time && !is_reply(event));
    previous + 1 + together.count()
}

/// Whether an event starts a new batch. A reply or a result comes from outside, so it was not decided together with the
/// events before it.
fn is_reply(event: &Event) -> bool {
    matches!(
        event.body,
        EventBody::AgentMessage { .. }
            | EventBody::ToolReturned { .. }
            | EventBody::RemoteReturned { .. }
    )
}
