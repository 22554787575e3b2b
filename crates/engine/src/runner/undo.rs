//! Records that the user undid the changes of a turn. The session is leased meanwhile, so no turn of it runs.

use lango_core::{
    AgentName, BoxLease, BusyPolicy, Event, EventBatch, EventBody, EventRange, FrameId, SessionId,
    SessionStore, SkippedPath, StoreError, Text, Timestamp, Trust, TurnId,
};
use std::sync::Arc;

/// How many events to read at a time.
const PAGE: usize = 500;

/// A finished turn that can be undone, and the lease of its session.
pub struct UndoableTurn {
    lease: BoxLease,
    session: SessionId,
    turn: TurnId,
    /// The events of the turn, from the user's message to its end.
    pub events: Vec<Event>,
    /// The session's last turn, to which the event belongs.
    last_turn: TurnId,
    next_seq: u64,
}

/// What was undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneFiles {
    pub restored: Vec<Text>,
    pub skipped: Vec<SkippedPath>,
    /// The trust label of the paths.
    pub trust: Trust,
}

/// Why a turn cannot be undone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UndoError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("session `{session}` has no turn `{turn}`")]
    UnknownTurn { session: SessionId, turn: TurnId },
    /// The last turn is interrupted or waits for an approval. It may still change files.
    #[error("the last turn of session `{session}` has not ended")]
    Unfinished { session: SessionId },
    #[error("turn `{turn}` was already undone")]
    AlreadyUndone { turn: TurnId },
}

impl UndoableTurn {
    /// Leases the session and checks that its last turn has ended and that the turn was not undone before. Fails with
    /// [`StoreError::Busy`] if a turn is running.
    pub async fn lease(
        store: &dyn SessionStore,
        session: &SessionId,
        turn: &TurnId,
    ) -> Result<Self, UndoError> {
        let lease = store.acquire(session, BusyPolicy::Refuse).await?;
        let head = store.read_head(session).await?;
        if head.unfinished.is_some() {
            let session = session.clone();
            return Err(UndoError::Unfinished { session });
        }
        let mut events = store.turn_events(session, turn).await?;
        let Some(first) = events.first() else {
            let (session, turn) = (session.clone(), turn.clone());
            return Err(UndoError::UnknownTurn { session, turn });
        };
        let after = Later::read(store, session, first.seq, turn).await?;
        if after.is_undone {
            return Err(UndoError::AlreadyUndone { turn: turn.clone() });
        }
        events.retain(|event| !matches!(event.body, EventBody::TurnUndone { .. }));
        Ok(Self {
            lease,
            session: session.clone(),
            turn: turn.clone(),
            events,
            last_turn: after.last_turn.unwrap_or_else(|| turn.clone()),
            next_seq: head.next_seq,
        })
    }

    /// Whether the lease is still valid. Check it right before files are changed.
    pub fn is_leased(&self) -> bool {
        self.lease.is_valid()
    }

    /// Stores that the turn was undone, and returns the event.
    pub async fn record(
        self,
        store: &dyn SessionStore,
        undone: UndoneFiles,
        now: Timestamp,
    ) -> Result<EventBatch, StoreError> {
        let event = Event {
            seq: self.next_seq,
            session: self.session,
            turn: self.last_turn,
            frame: FrameId::root(),
            author: AgentName::user(),
            time: now,
            body: EventBody::TurnUndone {
                undone: self.turn,
                restored: undone.restored,
                skipped: undone.skipped,
                trust: undone.trust,
            },
        };
        let batch: EventBatch = Arc::from([event]);
        store.append(Arc::clone(&batch)).await?;
        Ok(batch)
    }
}

/// Whether a turn of a finished session was undone, according to the log.
pub async fn is_undone(
    store: &dyn SessionStore,
    session: &SessionId,
    turn: &TurnId,
) -> Result<bool, StoreError> {
    let events = store.turn_events(session, turn).await?;
    match events.first() {
        Some(first) => Ok(Later::read(store, session, first.seq, turn)
            .await?
            .is_undone),
        None => Ok(false),
    }
}

/// What the log says from the start of a turn on.
struct Later {
    is_undone: bool,
    last_turn: Option<TurnId>,
}

impl Later {
    async fn read(
        store: &dyn SessionStore,
        session: &SessionId,
        from: u64,
        turn: &TurnId,
    ) -> Result<Self, StoreError> {
        let mut later = Self {
            is_undone: false,
            last_turn: None,
        };
        let mut range = EventRange { from, limit: PAGE };
        loop {
            let events = store.read(session, range).await?;
            let undoes = |event: &Event| matches!(&event.body, EventBody::TurnUndone { undone, .. } if undone == turn);
            later.is_undone |= events.iter().any(undoes);
            let Some(last) = events.last() else {
                return Ok(later);
            };
            later.last_turn = Some(last.turn.clone());
            range.from = last.seq + 1;
            if events.len() < PAGE {
                return Ok(later);
            }
        }
    }
}
