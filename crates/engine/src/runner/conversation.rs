//! An open session: the end of its log and the history for the next turn. Both are updated after each turn instead of
//! being read again.

use super::conversation_state::{CacheState, ResumableTurn, SessionOrigin};
use super::turn_context::TurnContext;
use super::{AnswerInbox, InterruptedTurnPolicy, RunnerError, RunnerParts, TurnEnd};
use crate::history::History;
use crate::runner::Runner;
use crate::turn::{Turn, TurnStart};
use lango_core::{
    BusyPolicy, Event, EventBody, EventRange, NewSession, PendingApproval, SessionId, StoreError,
    Text, TurnId, UserId,
};
use std::sync::Arc;

/// An open session. A turn borrows it, so only one runs at a time.
pub struct Conversation {
    pub(super) parts: Arc<RunnerParts>,
    pub(super) session: SessionId,
    pub(super) user: UserId,
    pub(super) next_seq: u64,
    pub(super) turns: u64,
    pub(super) history: Arc<History>,
    pub(super) busy_policy: BusyPolicy,
    pub(super) interrupted: InterruptedTurnPolicy,
    /// Whether to ask the user before a new turn. If this database was restored from a backup, the turn may already
    /// have run in the original database.
    pub(super) new_turns: InterruptedTurnPolicy,
    pub(super) cache: CacheState,
    pub(super) unfinished: Option<ResumableTurn>,
    pub(super) answers: Arc<AnswerInbox>,
}

impl Conversation {
    pub(super) fn unsaved(runner: &Runner, user: UserId) -> Self {
        let parts = Arc::clone(&runner.parts);
        let session = SessionId::new(parts.ids.fresh("s_"));
        Self {
            busy_policy: parts.busy_policy,
            parts,
            session,
            user,
            next_seq: 1,
            turns: 0,
            history: Arc::default(),
            interrupted: runner.interrupted,
            new_turns: InterruptedTurnPolicy::Resume,
            cache: CacheState::Unsaved,
            unfinished: None,
            answers: Arc::default(),
        }
    }

    pub(super) fn named(self, session: SessionId) -> Self {
        Self { session, ..self }
    }

    /// Makes turns fail instead of waiting if the session is busy.
    pub fn without_waiting(self) -> Self {
        self.with_busy_policy(BusyPolicy::Refuse)
    }

    /// Sets what to do if the session is busy.
    pub fn with_busy_policy(self, busy_policy: BusyPolicy) -> Self {
        Self {
            busy_policy,
            ..self
        }
    }

    /// Asks the user before a turn starts or is resumed, because it may have run in another copy of the database.
    pub fn asking_before_turns(self) -> Self {
        Self {
            interrupted: InterruptedTurnPolicy::Ask,
            new_turns: InterruptedTurnPolicy::Ask,
            ..self
        }
    }

    /// Uses another runner from the next turn on, for example because the agents changed.
    pub fn set_runner(&mut self, runner: &Runner) {
        self.parts = Arc::clone(&runner.parts);
    }

    /// Whether the conversation has the state after its last turn in memory, so the next turn need not read the log.
    pub fn is_current(&self) -> bool {
        self.cache == CacheState::Current && self.unfinished.is_none()
    }

    /// Returns the size of the history in bytes.
    pub fn history_bytes(&self) -> usize {
        self.history.bytes()
    }

    pub fn session(&self) -> &SessionId {
        &self.session
    }

    pub fn user(&self) -> &UserId {
        &self.user
    }

    /// Returns the number of turns.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Returns the number that the next event of the session gets, unless another process has continued the session.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Reads stored events of the session from number `from` on.
    pub async fn events(&self, from: u64, limit: usize) -> Result<Vec<Event>, RunnerError> {
        let range = EventRange { from, limit };
        Ok(self.parts.store.read(&self.session, range).await?)
    }

    /// Returns the pending approvals of the last turn. No new turn can start while there are any.
    pub fn waiting(&self) -> &[PendingApproval] {
        self.unfinished.as_ref().map_or(&[], |last| &last.waiting)
    }

    /// Whether the last turn was interrupted. [`Self::resume`] or the next turn continues it.
    pub fn is_interrupted(&self) -> bool {
        self.unfinished.as_ref().is_some_and(|last| !last.is_parked)
    }

    /// Returns the runner that the next turn uses.
    pub fn runner(&self) -> Runner {
        Runner {
            parts: Arc::clone(&self.parts),
            interrupted: self.interrupted,
        }
    }

    /// Reads the session again, because another process may have continued it.
    pub async fn refresh(&mut self) -> Result<(), RunnerError> {
        match self.cache {
            CacheState::Unsaved => Ok(()),
            CacheState::Current | CacheState::Stale => self.read().await,
        }
    }

    pub(super) fn park(&mut self, first_seq: u64, waiting: Vec<PendingApproval>) -> TurnEnd {
        self.unfinished = Some(ResumableTurn {
            first_seq,
            waiting: waiting.clone(),
            is_parked: true,
        });
        self.cache = CacheState::Current;
        TurnEnd::Waiting(waiting)
    }

    /// Discards everything that was read from the session's log.
    pub(super) fn reset(&mut self) {
        self.next_seq = 1;
        self.turns = 0;
        self.history = Arc::default();
        self.cache = CacheState::Unsaved;
        self.unfinished = None;
    }

    /// Creates the session. It may already exist, if an earlier attempt was dropped after the store had created it.
    pub(super) async fn create(&mut self) -> Result<SessionOrigin, RunnerError> {
        let new = NewSession {
            id: self.session.clone(),
            user: self.user.clone(),
            created: self.parts.clock.now(),
        };
        match self.parts.store.create(new).await {
            Ok(()) => Ok(SessionOrigin::New),
            Err(StoreError::Exists { .. }) => Ok(SessionOrigin::Stored),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the session, or creates it if it was never stored.
    pub(super) async fn read_or_create(
        &mut self,
        context: TurnContext<'_>,
    ) -> Result<SessionOrigin, RunnerError> {
        match self.read().await {
            Err(RunnerError::Store(StoreError::NotFound { .. }))
                if self.cache == CacheState::Unsaved => {}
            read => return read.map(|()| SessionOrigin::Stored),
        }
        context.refuse_duplicate().await?;
        let origin = self.create().await?;
        if origin == SessionOrigin::Stored {
            self.read().await?;
        }
        self.cache = CacheState::Current;
        Ok(origin)
    }

    /// Reads the session: its owner, the end of its log, its history and its unfinished turn.
    pub(super) async fn read(&mut self) -> Result<(), RunnerError> {
        let head = self.parts.store.read_head(&self.session).await?;
        self.user = head.user;
        self.next_seq = head.next_seq;
        self.turns = head.turns;
        let root = &self.parts.tree.root.name;
        self.history = Arc::new(History::new(root, head.exchanges));
        self.unfinished = match head.unfinished {
            Some(first_seq) => {
                let (turn, _) = self.replay(first_seq).await?;
                Some(ResumableTurn {
                    first_seq,
                    waiting: turn.waiting(),
                    is_parked: turn.is_parked(),
                })
            }
            None => None,
        };
        self.cache = CacheState::Current;
        Ok(())
    }

    /// Replays the last turn from `first_seq` on. Also returns the folder in which it started, if the log has it.
    pub(super) async fn replay(&self, first_seq: u64) -> Result<(Turn, Option<Text>), RunnerError> {
        let range = EventRange {
            from: first_seq,
            limit: usize::try_from(self.next_seq - first_seq).unwrap_or(usize::MAX),
        };
        let events = self.parts.store.read(&self.session, range).await?;
        let id = events.first().map(|event| event.turn.clone());
        let mut start = self.start_of(id.unwrap_or_else(|| TurnId::from("")));
        start.first_seq = first_seq;
        let folder = events.first().and_then(folder_of);
        let turn = Turn::replay(Arc::clone(&self.parts.tree), start, &events);
        Ok((turn, folder))
    }

    pub(super) fn start_of(&self, turn: TurnId) -> TurnStart {
        TurnStart {
            session: self.session.clone(),
            turn,
            first_seq: self.next_seq,
            history: Arc::clone(&self.history),
            rules: Arc::clone(&self.parts.rules),
            mode: self.parts.mode.clone(),
        }
    }
}

fn folder_of(first: &Event) -> Option<Text> {
    match &first.body {
        EventBody::UserMessage { settings, .. } => settings.as_ref()?.folder.clone(),
        _ => None,
    }
}
