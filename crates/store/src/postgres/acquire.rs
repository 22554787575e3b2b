//! Acquiring the lease of a session: first within this replica, then among all of them.
//!
//! If the session has an owner, the waiter gets a ticket in the database, and with it a place in the order of arrival over all
//! replicas. It checks when it is notified that the session was released, and also regularly, since a replica that crashed sends
//! no notification.

use super::PostgresEngine;
use super::failure::Failure;
use super::leases::{OwnedLease, Ticket, now};
use super::statements::leases::{CLAIM, IS_NEXT, JOIN_QUEUE};
use crate::engine::{Mode, ToValue, Value, owned, values};
use crate::queue::{QueuePlace, busy};
use crate::stored::failed;
use lango_core::{BoxLease, BusyPolicy, SessionId, SessionLease as _, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// Interval between two checks of a waiter.
const CHECK_EVERY: Duration = Duration::from_millis(200);

impl PostgresEngine {
    pub(crate) async fn lease(
        &self,
        session: &SessionId,
        busy_policy: BusyPolicy,
    ) -> Result<BoxLease, StoreError> {
        let waiter = self.queues.enter(session, busy_policy)?;
        let is_first = waiter.is_first;
        self.database.open().await?;
        self.renewer.start()?;
        let ticket = async {
            match busy_policy {
                BusyPolicy::Wait { max_waiters: most } if !is_first => {
                    Ok::<_, StoreError>(Some(self.join(session, most).await?))
                }
                _ => Ok(None),
            }
        };
        // The front is polled first: its order is that of polling.
        let front = async { Ok(waiter.front().await) };
        let (mut place, mut ticket) = tokio::try_join!(biased; front, ticket)?;
        let mut released = self.table().released.subscribe();
        loop {
            place = match self.claim(session, place, &mut ticket).await? {
                Ok(lease) => return Ok(Box::new(lease)),
                Err(place) => place,
            };
            let BusyPolicy::Wait { max_waiters: most } = busy_policy else {
                return Err(busy(session, None));
            };
            while !self.is_next(session, &mut ticket, most).await? {
                let notified = release_of(&mut released, session);
                // After the timeout it checks too.
                let _ = tokio::time::timeout(CHECK_EVERY, notified).await;
            }
        }
    }

    /// Returns values of statements: the session, this replica, the length of a lease or ticket in seconds, the tickets that
    /// this replica has released, and one more.
    fn values(&self, session: &SessionId, last: impl ToValue) -> Vec<Value<'static>> {
        let table = self.table();
        let (released, seconds) = (table.released_tickets(session), table.length.as_secs_f64());
        owned(values![session, table.replica(), seconds, released, last])
    }

    /// Claims a session for the waiter in this place, if it is free and no other waiter came before; otherwise returns the place.
    async fn claim(
        &self,
        session: &SessionId,
        place: QueuePlace,
        ticket: &mut Option<Ticket>,
    ) -> Result<Result<OwnedLease, QueuePlace>, StoreError> {
        let (database, leases) = (Arc::clone(&self.database), Arc::clone(self.table()));
        let number = ticket.as_ref().map(|ticket| ticket.number);
        let values = self.values(session, number);
        let session = session.clone();
        // In a task of its own: if the waiter is dropped, the claim is released when the database has answered, and then the place.
        let claim = tokio::spawn(async move {
            let asked = now();
            let fence = database.query_opt(Mode::WriteOne, CLAIM, values, |row| row.get(0));
            let Some(fence) = fence.await? else {
                return Ok(Err(place));
            };
            let lease = leases.add(session, fence, asked);
            let owned = OwnedLease {
                lease,
                leases,
                _place: place,
            };
            if owned.is_valid() {
                Ok(Ok(owned))
            } else {
                Err(database.error(Failure::Timeout))
            }
        });
        let claimed = claim.await.map_err(stopped)??;
        if claimed.is_ok()
            && let Some(used) = ticket.take()
        {
            // The claim deleted it.
            self.table().state().tickets.remove(&used.number);
        }
        Ok(claimed)
    }

    async fn join(&self, session: &SessionId, most: usize) -> Result<Ticket, StoreError> {
        let (database, leases) = (Arc::clone(&self.database), Arc::clone(self.table()));
        let values = self.values(session, most);
        let session = session.clone();
        // In a task of its own: if the waiter is dropped, the ticket is released when the database has answered.
        let join = tokio::spawn(async move {
            let joined = database.query_opt(Mode::WriteOne, JOIN_QUEUE, values, |row| {
                Ok((row.get::<Option<i64>>(0)?, row.get::<usize>(1)?))
            });
            let joined = joined.await?;
            let (number, waiting) = joined.ok_or_else(|| failed("a queue was not answered"))?;
            let number = number.ok_or_else(|| busy(&session, Some(waiting)))?;
            leases.add_ticket(number);
            Ok(Ticket {
                number,
                session,
                leases,
            })
        });
        join.await.map_err(stopped)?
    }

    /// Returns whether the waiter may be next. Gets a ticket if it has none or if it expired.
    async fn is_next(
        &self,
        session: &SessionId,
        ticket: &mut Option<Ticket>,
        most: usize,
    ) -> Result<bool, StoreError> {
        let number = match ticket.as_ref() {
            Some(ticket) => ticket.number,
            None => ticket.insert(self.join(session, most).await?).number,
        };
        let released = self.table().released_tickets(session);
        let values = owned(values![session, self.replica(), number, released]);
        let answer = self.database.query_opt(Mode::Read, IS_NEXT, values, |row| {
            Ok((row.get(0)?, row.get::<bool>(1)?))
        });
        let Some((is_next, has_ticket)) = answer.await? else {
            return Ok(false);
        };
        if !has_ticket {
            // It expired while the database could not be reached.
            *ticket = None;
            return Ok(false);
        }
        Ok(is_next)
    }
}

/// Resolves when another replica reports that it released the session.
async fn release_of(released: &mut Receiver<SessionId>, session: &SessionId) {
    loop {
        match released.recv().await {
            Ok(released) if released != *session => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

fn stopped(error: tokio::task::JoinError) -> StoreError {
    failed(format!(
        "the runtime ended while a session was claimed: {error}"
    ))
}
