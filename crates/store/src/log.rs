//! Sessions and their append-only logs: created, appended to and read.

mod append;
mod apply;
mod batch;
mod ends;
mod history;
#[cfg(test)]
mod plans;
pub(crate) mod statements;

pub(crate) use append::take_over;
pub(crate) use ends::Ends;

use crate::approvals;
use crate::archive::must_be_kept;
use crate::engine::{
    Durability, Engine, Failure, Row, Sql, Tx, sql, stored as stored_number, values,
};
use crate::postgres::renewer::EVENTS as CHANNEL;
use crate::store::Store;
use crate::stored::{self, EventColumns};
use append::{Guard, NewEvents, append, not_found};
use lango_core::{
    AgentName, Batch, BoxFuture, BoxLease, BusyPolicy, Event, Grant, NewSession, Page,
    RemoteThread, SessionHead, SessionId, SessionStore, StoreError, TurnId,
};
use statements::{INSERT_SESSION, IS_NEW, IS_VISIBLE};
use std::borrow::Cow;

impl SessionStore for Store {
    fn create(&self, session: NewSession) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            must_be_kept(&session)?;
            let created = self
                .engine
                .write_log(Durability::Process, session, |tx, session| {
                    Box::pin(create(tx, session))
                });
            created.await
        })
    }

    fn open(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionHead, StoreError>> {
        let given = (session.clone(), self.root_agent.clone());
        let head = self.engine.read(given, |tx, (session, root_agent)| {
            Box::pin(history::head(tx, session, root_agent))
        });
        let session = session.clone();
        Box::pin(async move {
            let (head, end) = head.await?;
            self.ends.remember(&session, end);
            Ok(head)
        })
    }

    fn acquire(
        &self,
        session: &SessionId,
        busy_policy: BusyPolicy,
    ) -> BoxFuture<'_, Result<BoxLease, StoreError>> {
        let session = session.clone();
        Box::pin(async move {
            match &self.engine {
                Engine::Sqlite(sqlite) => sqlite.lock(&session, busy_policy).await,
                Engine::Postgres(postgres) => postgres.lease(&session, busy_policy).await,
            }
        })
    }

    fn append(&self, events: Batch) -> BoxFuture<'_, Result<(), StoreError>> {
        let Some(session) = events.first().map(|event| event.session.clone()) else {
            return Box::pin(std::future::ready(Ok(())));
        };
        // The lease as of when it was asked for: one that is given up meanwhile must not count as none.
        let lease = match &self.engine {
            Engine::Sqlite(_) => None,
            Engine::Postgres(postgres) => postgres.lease_of(&session),
        };
        let durability = durability_of(&events);
        Box::pin(async move {
            let guard = match (&self.engine, &lease) {
                (Engine::Sqlite(_), _) => Guard::default(),
                (Engine::Postgres(_), Some(lease)) => Guard::Lease(lease.fence),
                (Engine::Postgres(postgres), None) => Guard::Free {
                    replica: postgres.replica().to_owned(),
                },
            };
            if let Engine::Postgres(postgres) = &self.engine {
                postgres.start()?;
            }
            let known = self.ends.take(&session);
            let known = known.filter(|end| end.seq.checked_add(1) == Some(events[0].seq));
            let new = NewEvents {
                events,
                guard,
                known,
            };
            let append = self
                .engine
                .write_log(durability, new, |tx, new| Box::pin(append(tx, new)));
            match (append.await, &self.engine) {
                (Ok(end), engine) => {
                    if let Some(end) = end {
                        self.ends.remember(&session, end);
                    }
                    engine.notify(CHANNEL, session.as_str());
                    Ok(())
                }
                (Err(error), Engine::Postgres(postgres)) => {
                    Err(postgres.explain(error, lease.as_deref()).await)
                }
                (Err(error), Engine::Sqlite(_)) => Err(error),
            }
        })
    }

    fn read(
        &self,
        session: &SessionId,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        let given = (session.clone(), page, self.root_agent.clone());
        self.engine.read(given, |tx, (session, page, root_agent)| {
            Box::pin(async move {
                let values = values![session, page.from, page.limit];
                let events = tx
                    .query(EVENTS, values, |row| event(row, session, root_agent))
                    .await?;
                if events.is_empty() {
                    must_be_visible(tx, session).await?;
                }
                Ok(events)
            })
        })
    }

    fn turn_events(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        let given = (session.clone(), turn.clone(), self.root_agent.clone());
        self.engine.read(given, |tx, (session, turn, root_agent)| {
            Box::pin(async move {
                tx.query(TURN_EVENTS, values![session, turn], |row| {
                    event(row, session, root_agent)
                })
                .await
            })
        })
    }

    fn grants(
        &self,
        session: &SessionId,
        folder: &str,
    ) -> BoxFuture<'_, Result<Vec<Grant>, StoreError>> {
        approvals::grants(&self.engine, session, folder)
    }

    fn remote_thread(
        &self,
        session: &SessionId,
        agent: &AgentName,
    ) -> BoxFuture<'_, Result<Option<RemoteThread>, StoreError>> {
        let given = (session.clone(), agent.clone());
        self.engine.read(given, |tx, (session, agent)| {
            Box::pin(async move {
                tx.query_opt(REMOTE_THREAD, values![session, agent], |row| {
                    Ok(RemoteThread {
                        context: row.get(0)?,
                        task: row.get(1)?,
                    })
                })
                .await
            })
        })
    }
}

/// What a batch has to outlive: an event that binds lango outlives the machine.
pub(crate) fn durability_of(events: &[Event]) -> Durability {
    if events.iter().any(|event| event.body.is_binding()) {
        Durability::Machine
    } else {
        Durability::Process
    }
}

/// Appends a batch to a session of a SQLite database.
#[cfg(test)]
pub(crate) async fn append_here(tx: &mut Tx<'_>, events: &Batch) -> Result<(), Failure> {
    let new = NewEvents {
        events: Batch::clone(events),
        guard: Guard::default(),
        known: None,
    };
    append(tx, &new).await.map(drop)
}

/// Creates an empty session, whoever its user is.
pub(crate) async fn create(tx: &mut Tx<'_>, session: &NewSession) -> Result<(), Failure> {
    let created = stored_number(session.created.0)?;
    let values = values![session.id, session.user, created];
    if tx.execute(INSERT_SESSION, values).await? > 0 {
        return Ok(());
    }
    // An earlier try may have created it.
    if tx.is_repeated() && tx.query_opt(IS_NEW, values, |_| Ok(())).await?.is_some() {
        return Ok(());
    }
    let id = session.id.clone();
    Err(StoreError::Exists { id }.into())
}

async fn must_be_visible(tx: &mut Tx<'_>, session: &SessionId) -> Result<(), Failure> {
    let values = values![session];
    let visible = tx.query_opt(IS_VISIBLE, values, |_| Ok(())).await?;
    visible.ok_or_else(|| not_found(session).into())
}

fn event(row: Row<'_>, session: &SessionId, root_agent: &AgentName) -> Result<Event, Failure> {
    let seq = row.get(0)?;
    let text = |column| {
        let text: Result<Cow<'_, str>, _> = row.get(column);
        text.map_err(|failure| failure.in_event(session, seq))
    };
    let columns = EventColumns {
        seq,
        turn: &text(1)?,
        frame: &text(2)?,
        author: &text(3)?,
        time: row
            .get(4)
            .map_err(|failure| failure.in_event(session, seq))?,
        body: &text(5)?,
    };
    Ok(stored::event(&columns, session, root_agent)?)
}

/// Events in their order.
const EVENTS: Sql = sql!(
    "SELECT seq, turn, frame, author, time, body FROM events
     WHERE session = $1 AND seq >= $2 ORDER BY seq LIMIT $3"
);

/// The events of one turn: from its first to the next turn's.
const TURN_EVENTS: Sql = sql!(
    "SELECT seq, turn, frame, author, time, body FROM events
     WHERE session = $1
       AND seq >= (SELECT max(first_seq) FROM turns WHERE session = $1 AND turn = $2)
       AND seq < coalesce((SELECT next.first_seq FROM turns AS own
                             JOIN turns AS next ON next.session = own.session AND next.ordinal = own.ordinal + 1
                            WHERE own.session = $1 AND own.turn = $2
                            ORDER BY own.first_seq DESC LIMIT 1), 9223372036854775807)
     ORDER BY seq"
);

/// Where a conversation with a remote agent stands.
const REMOTE_THREAD: Sql =
    sql!("SELECT context, task FROM remote_threads WHERE session = $1 AND agent = $2");
