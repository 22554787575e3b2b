//! Sessions that end with the process: the same contract as the file, without one.
//!
//! A lock guards the whole map. It is taken and released within each call, never across an await.

mod attachments;
mod history;
mod payment;
mod tasks;
mod vault;
mod web_cache;

use crate::archive::must_be_kept;
use crate::batch::target_of;
use crate::line::{Lines, Place};
use crate::title::title_of;
use lango_core::{
    AgentName, ApprovalId, Approvals, Batch, BoxFuture, Event, EventBody, Grant, Held, Hold,
    NewSession, Page, Patience, RemoteThread, SessionCatalog, SessionHead, SessionId, SessionStore,
    SessionSummary, StoreError, TurnId, UnfinishedTurn, UserId, Waiting,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sessions in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    sessions: Mutex<BTreeMap<SessionId, MemorySession>>,
    tasks: Mutex<tasks::Tasks>,
    attachments: Mutex<attachments::Attachments>,
    pages: Mutex<web_cache::Pages>,
    vaults: Mutex<vault::Vaults>,
    ledger: Mutex<payment::Ledger>,
    lines: Arc<Lines>,
}

impl MemoryStore {
    /// A store without sessions.
    pub fn new() -> Self {
        Self::default()
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<SessionId, MemorySession>> {
        // Every change is made after its last check, so a panic cannot leave half a change behind.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_session<T>(
        &self,
        id: &SessionId,
        look: impl FnOnce(&MemorySession) -> T,
    ) -> Result<T, StoreError> {
        self.sessions()
            .get(id)
            .map(look)
            .ok_or_else(|| StoreError::NotFound { id: id.clone() })
    }
}

impl MemoryStore {
    fn approvals_of(&self, user: &UserId) -> Approvals {
        let mut all = Approvals::default();
        let sessions = self.sessions();
        for session in sessions
            .values()
            .filter(|session| session.summary.user == *user)
        {
            all.waiting.extend_from_slice(&session.approvals.waiting);
            all.granted.extend_from_slice(&session.approvals.granted);
        }
        all.waiting.sort_by(|left, right| {
            (left.asked, &left.request.id).cmp(&(right.asked, &right.request.id))
        });
        all.granted
            .sort_by(|left, right| (left.given, &left.id).cmp(&(right.given, &right.id)));
        all
    }
}

impl SessionStore for MemoryStore {
    fn create(&self, session: NewSession) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            must_be_kept(&session)?;
            let mut sessions = self.sessions();
            if sessions.contains_key(&session.id) {
                return Err(StoreError::Exists { id: session.id });
            }
            sessions.insert(session.id.clone(), MemorySession::new(session));
            Ok(())
        })
    }

    fn open(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionHead, StoreError>> {
        let session = session.clone();
        Box::pin(async move { self.with_session(&session, MemorySession::head) })
    }

    fn hold(
        &self,
        session: &SessionId,
        patience: Patience,
    ) -> BoxFuture<'_, Result<Hold, StoreError>> {
        let session = session.clone();
        Box::pin(async move {
            let place = self.lines.join(&session, patience).await?;
            Ok(Box::new(HeldHere { _place: place }) as Hold)
        })
    }

    fn append(&self, events: Batch) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let Some((id, first_seq)) = target_of(&events)? else {
                return Ok(());
            };
            let mut sessions = self.sessions();
            let session = sessions
                .get_mut(id)
                .ok_or_else(|| StoreError::NotFound { id: id.clone() })?;
            if first_seq != session.next_seq() {
                return Err(StoreError::Conflict { id: id.clone() });
            }
            self.refer(&session.summary.user, &events);
            events.iter().for_each(|event| session.push(event));
            Ok(())
        })
    }

    fn read(
        &self,
        session: &SessionId,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        let session = session.clone();
        Box::pin(async move { self.with_session(&session, |found| found.page(page)) })
    }

    fn turn_events(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        let (session, turn) = (session.clone(), turn.clone());
        Box::pin(async move {
            let sessions = self.sessions();
            let events = sessions.get(&session).into_iter();
            let events = events.flat_map(|session| &session.events);
            Ok(events.filter(|event| event.turn == turn).cloned().collect())
        })
    }

    fn grants(
        &self,
        session: &SessionId,
        folder: &str,
    ) -> BoxFuture<'_, Result<Vec<Grant>, StoreError>> {
        let (session, folder) = (session.clone(), folder.to_owned());
        Box::pin(async move {
            let user = self.with_session(&session, |found| found.summary.user.clone())?;
            let mut grants = self.approvals_of(&user).granted;
            grants.retain(|grant| match &grant.folder {
                Some(own) => **own == *folder,
                None => grant.session == session,
            });
            Ok(grants)
        })
    }

    fn remote_thread(
        &self,
        session: &SessionId,
        agent: &AgentName,
    ) -> BoxFuture<'_, Result<Option<RemoteThread>, StoreError>> {
        let (session, agent) = (session.clone(), agent.clone());
        Box::pin(async move { self.with_session(&session, |found| found.remote_thread(&agent)) })
    }
}

impl SessionCatalog for MemoryStore {
    fn list(
        &self,
        user: &UserId,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        let user = user.clone();
        Box::pin(async move {
            let sessions = self.sessions();
            let mut found: Vec<_> = sessions.values().map(|session| &session.summary).collect();
            found.retain(|summary| summary.user == user);
            found.sort_by(|left, right| {
                right
                    .updated
                    .cmp(&left.updated)
                    .then_with(|| left.id.cmp(&right.id))
            });
            Ok(found.into_iter().take(limit).cloned().collect())
        })
    }

    fn find(
        &self,
        user: &UserId,
        prefix: &str,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        let (user, prefix) = (user.clone(), SessionId::from(prefix));
        Box::pin(async move {
            let sessions = self.sessions();
            let found = sessions
                .range(prefix.clone()..)
                .map(|(_, session)| &session.summary);
            let found =
                found.take_while(|summary| summary.id.as_str().starts_with(prefix.as_str()));
            Ok(found
                .filter(|summary| summary.user == user)
                .take(limit)
                .cloned()
                .collect())
        })
    }

    fn approvals(&self, user: &UserId) -> BoxFuture<'_, Result<Approvals, StoreError>> {
        let user = user.clone();
        Box::pin(async move { Ok(self.approvals_of(&user)) })
    }

    fn count_waiting(&self, user: &UserId) -> BoxFuture<'_, Result<usize, StoreError>> {
        let user = user.clone();
        Box::pin(async move {
            let sessions = self.sessions();
            let own = sessions
                .values()
                .filter(|session| session.summary.user == user);
            Ok(own.map(|session| session.approvals.waiting.len()).sum())
        })
    }

    fn unfinished(
        &self,
        after: Option<&SessionId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<UnfinishedTurn>, StoreError>> {
        let after = after.cloned();
        Box::pin(async move {
            let sessions = self.sessions();
            let unfinished = sessions.values().filter_map(MemorySession::unfinished);
            let after = after.as_ref();
            let unfinished =
                unfinished.filter(|turn| after.is_none_or(|after| turn.session > *after));
            Ok(unfinished.take(limit).collect())
        })
    }

    fn revoke(&self, user: &UserId, grant: &ApprovalId) -> BoxFuture<'_, Result<(), StoreError>> {
        let (user, id) = (user.clone(), grant.clone());
        Box::pin(async move {
            let mut sessions = self.sessions();
            let own = sessions
                .values_mut()
                .filter(|session| session.summary.user == user);
            let mut gone = 0;
            for session in own {
                let before = session.approvals.granted.len();
                session.approvals.granted.retain(|grant| grant.id != id);
                gone += before - session.approvals.granted.len();
            }
            match gone {
                0 => Err(StoreError::NotGranted { id }),
                _ => Ok(()),
            }
        })
    }
}

/// A session that somebody in this process holds.
struct HeldHere {
    _place: Place,
}

impl Held for HeldHere {
    fn is_had(&self) -> bool {
        true
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

#[derive(Debug)]
struct MemorySession {
    summary: SessionSummary,
    events: Vec<Event>,
    turns: Vec<MemoryTurn>,
    approvals: Approvals,
}

/// Where the parts of a turn are in the log, as `seq`.
#[derive(Debug)]
struct MemoryTurn {
    turn: TurnId,
    question: u64,
    delegation: Option<u64>,
    answer: Option<u64>,
    finished: bool,
}

impl MemoryTurn {
    fn new(question: &Event) -> Self {
        let turn = question.turn.clone();
        Self {
            turn,
            question: question.seq,
            delegation: None,
            answer: None,
            finished: false,
        }
    }
}

impl MemorySession {
    fn new(session: NewSession) -> Self {
        let NewSession { id, user, created } = session;
        let summary = SessionSummary {
            id,
            user,
            title: String::new(),
            created,
            updated: created,
            turns: 0,
        };
        Self {
            summary,
            events: Vec::new(),
            turns: Vec::new(),
            approvals: Approvals::default(),
        }
    }

    fn next_seq(&self) -> u64 {
        self.events.len() as u64 + 1
    }

    fn event(&self, seq: u64) -> Option<&Event> {
        self.events.get(usize::try_from(seq.checked_sub(1)?).ok()?)
    }

    fn push(&mut self, event: &Event) {
        if let EventBody::UserMessage { text, .. } = &event.body {
            if self.turns.is_empty() {
                self.summary.title = title_of(text).to_owned();
                self.summary.updated = event.time;
            }
            self.turns.push(MemoryTurn::new(event));
            self.summary.turns += 1;
        } else if let Some(turn) = self.turns.last_mut().filter(|turn| turn.turn == event.turn) {
            match &event.body {
                EventBody::AgentDelegated { finish: true, .. } => turn.delegation = Some(event.seq),
                EventBody::TurnFinished { answer, .. } => {
                    (turn.finished, turn.answer) = (true, *answer);
                    self.summary.updated = event.time;
                }
                _ => {}
            }
        }
        self.note_approval(event);
        self.events.push(event.clone());
    }

    fn unfinished(&self) -> Option<UnfinishedTurn> {
        let turn = self.turns.last().filter(|turn| !turn.finished)?;
        let is_of_turn = |waiting: &Waiting| waiting.turn == turn.turn;
        Some(UnfinishedTurn {
            session: self.summary.id.clone(),
            user: self.summary.user.clone(),
            turn: turn.turn.clone(),
            is_waiting: self.approvals.waiting.iter().any(is_of_turn),
        })
    }

    fn note_approval(&mut self, event: &Event) {
        match &event.body {
            EventBody::ApprovalRequested(request) => self.approvals.waiting.push(Waiting {
                session: event.session.clone(),
                turn: event.turn.clone(),
                asked: event.time,
                request: request.clone(),
            }),
            EventBody::ApprovalAnswered {
                request, answer, ..
            } => {
                let waiting = &mut self.approvals.waiting;
                let found = waiting
                    .iter()
                    .position(|waiting| waiting.request.id == *request);
                let Some(waiting) = found.map(|at| waiting.remove(at)) else {
                    return;
                };
                let Some((pattern, folder)) = answer.grant() else {
                    return;
                };
                self.approvals.granted.push(Grant {
                    id: waiting.request.id,
                    session: waiting.session,
                    agent: waiting.request.agent,
                    tool: waiting.request.tool,
                    pattern: pattern.clone(),
                    folder: folder.cloned(),
                    given: event.time,
                });
            }
            _ => {}
        }
    }

    fn remote_thread(&self, agent: &AgentName) -> Option<RemoteThread> {
        let mut thread: Option<RemoteThread> = None;
        for event in self.events.iter().filter(|event| event.author == *agent) {
            match &event.body {
                EventBody::RemoteAccepted { thread: new }
                | EventBody::RemoteReturned {
                    thread: Some(new), ..
                } => thread = Some(new.clone()),
                EventBody::RemoteReturned { thread: None, .. } => {
                    thread = thread.map(|thread| RemoteThread {
                        task: None,
                        ..thread
                    });
                }
                _ => {}
            }
        }
        thread
    }

    fn page(&self, page: Page) -> Vec<Event> {
        let skipped = usize::try_from(page.from.saturating_sub(1)).unwrap_or(usize::MAX);
        self.events
            .iter()
            .skip(skipped)
            .take(page.limit)
            .cloned()
            .collect()
    }
}
