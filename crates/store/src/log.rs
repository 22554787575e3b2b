//! Creates sessions, appends events to their logs and reads them.

mod append;
mod apply;
mod batch;
mod history;
#[cfg(test)]
mod plans;
pub(crate) mod statements;

pub(crate) use append::{import, log_end};
pub(crate) use batch::LogEndCache;

use crate::StoreFuture;
use crate::approvals::{self, GRANTS};
use crate::backend::{Backend, Durability, Result, Row, Tx, checked_i64, values};
use crate::decode::{check_user, event, not_found};
use crate::store::Store;
use crate::tasks::{TaskWrite, TaskWriteOutcome};
use append::{Guard, NewEvents, append};
use lango_core::{
    AgentName, BoxLease, BusyPolicy, Event, EventBatch, EventRange, Exchange, Grant, NewSession,
    RemoteThread, SessionHead, SessionId, SessionStore, StoreError, TurnId,
};
use statements::*;
use tracing::{Instrument, info_span};

impl SessionStore for Store {
    fn create(&self, session: NewSession) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            check_user(&session.user, format_args!("session `{}`", session.id))?;
            let created = self
                .backend
                .write_log(Durability::Process, session, |tx, session| {
                    Box::pin(create(tx, session))
                });
            created.await
        })
    }

    fn read_head(&self, session: &SessionId) -> StoreFuture<'_, SessionHead> {
        let args = (session.clone(), self.root_agent.clone());
        let head = self.backend.lookup(args, |tx, (session, root_agent)| {
            Box::pin(history::head(tx, session, root_agent))
        });
        let session = session.clone();
        Box::pin(async move {
            let (head, end) = head.await?;
            self.log_ends.remember(&session, end);
            Ok(head)
        })
    }

    fn acquire(&self, session: &SessionId, busy_policy: BusyPolicy) -> StoreFuture<'_, BoxLease> {
        let session = session.clone();
        Box::pin(async move {
            match &self.backend {
                Backend::Sqlite(sqlite) => sqlite.lock(&session, busy_policy).await,
                Backend::Postgres(postgres) => postgres.lease(&session, busy_policy).await,
            }
        })
    }

    fn append(&self, events: EventBatch) -> StoreFuture<'_, ()> {
        let append = self.append_batch(events, None);
        Box::pin(async move { append.await.map(drop) })
    }

    fn read(&self, session: &SessionId, page: EventRange) -> StoreFuture<'_, Vec<Event>> {
        let args = (session.clone(), page, self.root_agent.clone());
        self.backend.read(args, |tx, (session, page, root_agent)| {
            Box::pin(async move {
                let values = values![session, page.from, page.limit];
                let events = tx
                    .query(EVENTS, values, |row| event(row, session, root_agent))
                    .await?;
                if events.is_empty() && !tx.exists(IS_VISIBLE, values![session]).await? {
                    return Err(not_found(session).into());
                }
                Ok(events)
            })
        })
    }

    fn turn_events(&self, session: &SessionId, turn: &TurnId) -> StoreFuture<'_, Vec<Event>> {
        let values = values![session, turn];
        let (session, root_agent) = (session.clone(), self.root_agent.clone());
        let read = move |row: Row<'_>| event(row, &session, &root_agent);
        self.backend.query(TURN_EVENTS, values, read)
    }

    fn undone_seq(&self, session: &SessionId, turn: &TurnId) -> StoreFuture<'_, Option<u64>> {
        let values = values![session, turn];
        let found = self
            .backend
            .query_opt(UNDONE_SEQ, values, |row| row.get::<Option<u64>>(0));
        Box::pin(async move { Ok(found.await?.flatten()) })
    }

    fn history_of(&self, session: &SessionId, turn: &TurnId) -> StoreFuture<'_, Vec<Exchange>> {
        let args = (session.clone(), turn.clone(), self.root_agent.clone());
        self.backend.read(args, |tx, (session, turn, root_agent)| {
            Box::pin(history::history_of(tx, session, turn, root_agent))
        })
    }

    fn grants(&self, session: &SessionId, folder: &str) -> StoreFuture<'_, Vec<Grant>> {
        let args = (session.clone(), folder.to_owned());
        self.backend.read(args, |tx, (session, folder)| {
            Box::pin(async move {
                let values = values![session, folder];
                Ok(approvals::read(tx, GRANTS, values).await?.granted)
            })
        })
    }

    fn remote_thread(
        &self,
        session: &SessionId,
        agent: &AgentName,
    ) -> StoreFuture<'_, Option<RemoteThread>> {
        let values = values![session, agent];
        self.backend.query_opt(REMOTE_THREAD, values, |row| {
            Ok(RemoteThread {
                context: row.get(0)?,
                task: row.get(1)?,
            })
        })
    }
}

impl Store {
    /// Appends events of one session and, if a task is given, writes it in the same transaction. Returns the result of writing
    /// the task.
    ///
    /// The lease is looked up when this is called, not when the future is polled: if the lease is released in between, the append
    /// must fail.
    pub(crate) fn append_batch(
        &self,
        events: EventBatch,
        task: Option<TaskWrite>,
    ) -> StoreFuture<'_, Option<TaskWriteOutcome>> {
        let Some(session) = events.first().map(|event| event.session.clone()) else {
            return Box::pin(std::future::ready(Ok(None)));
        };
        let lease = match &self.backend {
            Backend::Sqlite(_) => None,
            Backend::Postgres(postgres) => postgres.lease_of(&session),
        };
        let (first_seq, count) = (events[0].seq, events.len());
        let span = info_span!("commit", %session, first_seq, events = count);
        let appended = async move {
            let mut guard = Guard::default();
            if let Backend::Postgres(postgres) = &self.backend {
                postgres.start()?;
                let replica = postgres.replica().to_owned();
                let fence = lease.as_ref().map(|lease| lease.fence);
                guard = fence.map_or(Guard::Free { replica }, Guard::Lease);
            }
            let known = self.log_ends.take(&session);
            let known = known.filter(|end| end.seq.checked_add(1) == Some(events[0].seq));
            let is_last = matches!(task, Some(TaskWrite::Put(_)));
            let durability = durability_of(&events);
            let new = NewEvents {
                events,
                guard,
                known,
                task,
            };
            let append = self
                .backend
                .write_log(durability, new, |tx, new| Box::pin(append(tx, new)));
            match (append.await, &self.backend) {
                (Ok(appended), _) => {
                    if let Some(lease) = lease.filter(|_| is_last) {
                        lease.note_release();
                    }
                    if let Some(end) = appended.end {
                        self.log_ends.remember(&session, end);
                        self.notify_session(&session);
                    }
                    Ok(appended.task)
                }
                (Err(error), Backend::Postgres(postgres)) => {
                    Err(postgres.explain(error, lease.as_deref()).await)
                }
                (Err(error), Backend::Sqlite(_)) => Err(error),
            }
        };
        Box::pin(appended.instrument(span))
    }
}

/// Returns the durability of a batch: binding events must survive a crash of the machine.
pub(crate) fn durability_of(events: &[Event]) -> Durability {
    if events.iter().any(|event| event.body.must_be_durable()) {
        Durability::Machine
    } else {
        Durability::Process
    }
}

/// Appends a batch inside another transaction, for tests of the SQLite writer.
#[cfg(test)]
pub(crate) async fn append_here(tx: &mut Tx<'_>, events: &EventBatch) -> Result<()> {
    let new = NewEvents {
        events: EventBatch::clone(events),
        guard: Guard::default(),
        known: None,
        task: None,
    };
    append(tx, &new).await.map(drop)
}

/// Creates an empty session, which may be hidden.
pub(crate) async fn create(tx: &mut Tx<'_>, session: &NewSession) -> Result<()> {
    let created = checked_i64(session.created.0)?;
    let values = values![session.id, session.user, created];
    if tx.execute(INSERT_SESSION, values).await? > 0 {
        return Ok(());
    }
    // An earlier attempt may have created it.
    if tx.is_repeated() && tx.exists(IS_NEW, values).await? {
        return Ok(());
    }
    let id = session.id.clone();
    Err(StoreError::Exists { id }.into())
}
