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
    /// The events of the turn.
    pub events: Vec<Event>,
    /// What an earlier undo left as it was, and nothing else can be undone; `None` if there was none.
    pub left: Option<Vec<SkippedPath>>,
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
    /// Leases the session and checks that its last turn has ended and that something of the turn can be undone. Fails
    /// with [`StoreError::Busy`] if a turn is running.
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
        let events = store.turn_events(session, turn).await?;
        if events.is_empty() {
            let (session, turn) = (session.clone(), turn.clone());
            return Err(UndoError::UnknownTurn { session, turn });
        }
        let left = paths_left(store, session, turn).await?;
        if left.as_ref().is_some_and(Vec::is_empty) {
            return Err(UndoError::AlreadyUndone { turn: turn.clone() });
        }
        let last = head.exchanges.last();
        Ok(Self {
            lease,
            session: session.clone(),
            turn: turn.clone(),
            events,
            left,
            last_turn: last.map_or_else(|| turn.clone(), |last| last.turn.clone()),
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

/// Returns what the last undo of a turn left as it was; `None` if the turn was not undone.
pub async fn paths_left(
    store: &dyn SessionStore,
    session: &SessionId,
    turn: &TurnId,
) -> Result<Option<Vec<SkippedPath>>, StoreError> {
    let Some(from) = store.undone_seq(session, turn).await? else {
        return Ok(None);
    };
    let mut left = Vec::new();
    // Only an undo that left something can be followed by another one.
    let mut range = EventRange { from, limit: 1 };
    loop {
        let events = store.read(session, range).await?;
        for event in events.iter() {
            if let EventBody::TurnUndone {
                undone, skipped, ..
            } = &event.body
                && undone == turn
            {
                left.clone_from(skipped);
            }
        }
        if left.is_empty() || events.len() < range.limit {
            return Ok(Some(left));
        }
        range = EventRange {
            from: range.from + events.len() as u64,
            limit: PAGE,
        };
    }
}
