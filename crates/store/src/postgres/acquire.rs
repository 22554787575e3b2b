//! Acquires the lease of a session: first within this replica, then among all replicas.
//!
//! If the session has an owner, the waiter gets a ticket in the database, which fixes its position in the queue over all replicas.
//! It tries again when it is notified that the session was released, and also at regular intervals, because a crashed replica
//! sends no notification.

use super::PostgresBackend;
use super::error::BackendError;
use super::leases::{OwnedLease, Ticket, now};
use super::statements::{CLAIM, JOIN_QUEUE};
use crate::backend::{ToValue, Value, WorkMode, owned, values};
use crate::decode::failed;
use crate::queue::{QueueFront, busy};
use lango_core::{BoxLease, BusyPolicy, SessionId, SessionLease as _, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// Interval between the attempts of a waiter.
const TRY_EVERY: Duration = Duration::from_millis(200);

impl PostgresBackend {
    pub(crate) async fn lease(
        &self,
        session: &SessionId,
        busy_policy: BusyPolicy,
    ) -> Result<BoxLease, StoreError> {
        let waiter = self.queues.enter(session, busy_policy)?;
        let is_first = waiter.is_first;
        self.database.open().await?;
        self.start()?;
        let ticket = async {
            match busy_policy {
                BusyPolicy::Wait { max_waiters } if !is_first => {
                    self.join(session, max_waiters).await.map(Some)
                }
                _ => Ok(None),
            }
        };
        // `front` must be polled first, because the order of polling decides the order in the queue.
        let front = async { Ok(waiter.front().await) };
        let (mut place, mut ticket) = tokio::try_join!(biased; front, ticket)?;
        let mut released = self.leases.released.subscribe();
        loop {
            place = match self.claim(session, place, &mut ticket).await? {
                Ok(lease) => return Ok(Box::new(lease)),
                Err(place) => place,
            };
            let BusyPolicy::Wait { max_waiters } = busy_policy else {
                return Err(busy(session, None));
            };
            if ticket.is_none() {
                ticket = Some(self.join(session, max_waiters).await?);
                continue;
            }
            // This waits until the session is released or notifications are lost.
            let notified =
                async { while released.recv().await.is_ok_and(|other| other != *session) {} };
            // A timeout also leads to another attempt.
            let _ = tokio::time::timeout(TRY_EVERY, notified).await;
        }
    }

    /// Returns the values that `CLAIM` and `JOIN_QUEUE` share: the session, this replica, the length of a lease in seconds, and the
    /// tickets that this replica has released. `last` comes after them.
    fn values(&self, session: &SessionId, last: impl ToValue) -> Vec<Value<'static>> {
        let leases = &self.leases;
        let released = leases.released_tickets(session);
        let seconds = leases.length.as_secs_f64();
        owned(values![session, leases.replica(), seconds, released, last])
    }

    /// Claims a session for the waiter at the front of this replica's queue, if the session is free and no waiter of another
    /// replica came before. Otherwise returns the waiter's place.
    async fn claim(
        &self,
        session: &SessionId,
        place: QueueFront,
        ticket: &mut Option<Ticket>,
    ) -> Result<Result<OwnedLease, QueueFront>, StoreError> {
        let (database, leases) = (Arc::clone(&self.database), Arc::clone(&self.leases));
        let number = ticket.as_ref().map(|ticket| ticket.number);
        let values = self.values(session, number);
        let session = session.clone();
        // This runs in a separate task: if the waiter is dropped, the claim is released once the database has answered, and only
        // then the place in the queue.
        let claim = tokio::spawn(async move {
            let requested = now();
            let claimed = database.query_opt(WorkMode::WriteAutocommit, CLAIM, values, |row| {
                Ok((row.get(0)?, row.get(1)?))
            });
            let (fence, has_ticket): (Option<i64>, bool) = claimed.await?.unwrap_or_default();
            let Some(fence) = fence else {
                return Ok((Err(place), has_ticket));
            };
            let lease = leases.add(session, fence, requested);
            let owned = OwnedLease {
                lease,
                leases,
                _place: place,
            };
            if owned.is_valid() {
                Ok((Ok(owned), false))
            } else {
                Err(database.error(BackendError::Timeout))
            }
        });
        let (claimed, has_ticket) = claim.await.map_err(stopped)??;
        // The claim deleted the ticket, or it expired while the database could not be reached.
        if !has_ticket && let Some(old) = ticket.take() {
            self.leases.state().tickets.remove(&old.number);
        }
        Ok(claimed)
    }

    async fn join(&self, session: &SessionId, max_waiters: usize) -> Result<Ticket, StoreError> {
        let (database, leases) = (Arc::clone(&self.database), Arc::clone(&self.leases));
        let values = self.values(session, max_waiters);
        let session = session.clone();
        // This runs in a separate task: if the waiter is dropped, the ticket is released once the database has answered.
        let join = tokio::spawn(async move {
            let joined = database.query_opt(WorkMode::WriteAutocommit, JOIN_QUEUE, values, |row| {
                Ok((row.get::<Option<i64>>(0)?, row.get(1)?))
            });
            let (number, waiting) = joined.await?.unwrap_or_default();
            let number = number.ok_or_else(|| busy(&session, Some(waiting)))?;
            leases.update(|state| state.tickets.insert(number));
            Ok(Ticket {
                number,
                session,
                leases,
            })
        });
        join.await.map_err(stopped)?
    }
}

fn stopped(error: tokio::task::JoinError) -> StoreError {
    failed(format!("acquiring the session did not finish: {error}"))
}
