//! Acquiring the lease of a session: first within this replica, then among all of them.
//!
//! A waiter that meets a session with an owner gets a ticket in the database, and with it a place in the order of arrival over
//! all replicas. A notification that the session was released is a hint to look; looking now and then is what can
//! be relied on, for a replica that died notifies nobody.

use super::database::Database;
use super::failure::Failure;
use super::leases::{LeaseGuard, LeaseTable, OwnedLease, Ticket, now};
use super::renewer::LeaseRenewer;
use super::statements::leases::{CLAIM, IS_NEXT, JOIN_QUEUE};
use crate::engine::{Mode, values};
use crate::queue::{QueuePlace, Queues};
use lango_core::{BoxLease, BusyPolicy, SessionId, SessionLease as _, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// Interval between two looks of a waiter.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The leases of this replica and the waiters for them.
pub(super) struct SessionLeases {
    pub database: Arc<Database>,
    pub renewer: LeaseRenewer,
    pub queues: Arc<Queues>,
}

/// What a statement on the lease of a session says about it and this replica.
struct Request {
    session: SessionId,
    replica: String,
    /// Length of a lease or a ticket.
    seconds: f64,
    /// Tickets of this replica that do not count any more.
    released: Vec<i64>,
    /// The ticket of the waiter, if it has one.
    ticket: Option<i64>,
}

impl SessionLeases {
    /// Acquires the lease of a session.
    pub(super) async fn acquire(
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
        // The front first: its order is that of asking.
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
                let hint = release_of(&mut released, session);
                // Without a hint it is time to look.
                let _ = tokio::time::timeout(LOOK_EVERY, hint).await;
            }
        }
    }

    fn table(&self) -> &Arc<LeaseTable> {
        &self.renewer.leases
    }

    fn request(&self, session: &SessionId, ticket: Option<i64>) -> Request {
        let table = self.table();
        Request {
            session: session.clone(),
            replica: table.replica.clone(),
            seconds: table.length.as_secs_f64(),
            released: table.released_tickets(session),
            ticket,
        }
    }

    /// Claims a session for the waiter in this place, if it is free and no other waiter came before; else gives the place
    /// back.
    async fn claim(
        &self,
        session: &SessionId,
        place: QueuePlace,
        ticket: &mut Option<Ticket>,
    ) -> Result<Result<OwnedLease, QueuePlace>, StoreError> {
        let (database, leases) = (Arc::clone(&self.database), Arc::clone(self.table()));
        let request = self.request(session, ticket.as_ref().map(|ticket| ticket.number));
        let session = session.clone();
        // In a task of its own: a claim whose waiter is gone is released when it is answered, and only then is the place.
        let claim = tokio::spawn(async move {
            let asked = now();
            let fence = database.run(Mode::WriteOne, request, |tx, request| {
                Box::pin(async move {
                    let Request {
                        session,
                        replica,
                        seconds,
                        released,
                        ticket,
                    } = request;
                    let values = values![session, replica, seconds, released, ticket];
                    tx.query_opt(CLAIM, values, |row| row.get(0)).await
                })
            });
            let Some(fence) = fence.await? else {
                return Ok(Err(place));
            };
            let lease = leases.add(session, fence, asked);
            let owned = OwnedLease {
                guard: LeaseGuard { lease, leases },
                _place: place,
            };
            if owned.is_valid() {
                Ok(Ok(owned))
            } else {
                Err(database.error(Failure::Silent))
            }
        });
        let claimed = claim.await.map_err(stopped)??;
        if claimed.is_ok()
            && let Some(used) = ticket.take()
        {
            self.table().use_ticket(used.number);
        }
        Ok(claimed)
    }

    /// Joins the queue over all replicas.
    async fn join(&self, session: &SessionId, most: usize) -> Result<Ticket, StoreError> {
        let (database, leases) = (Arc::clone(&self.database), Arc::clone(self.table()));
        let request = (self.request(session, None), most);
        let session = session.clone();
        // In a task of its own: a ticket whose waiter is gone is released when it is answered.
        let join = tokio::spawn(async move {
            let joined = database.run(Mode::WriteOne, request, |tx, (request, most)| {
                Box::pin(async move {
                    let Request {
                        session,
                        replica,
                        seconds,
                        released,
                        ..
                    } = request;
                    let values = values![session, replica, seconds, released, most];
                    let answer = tx.query_opt(JOIN_QUEUE, values, |row| {
                        Ok((row.get::<Option<i64>>(0)?, row.get::<usize>(1)?))
                    });
                    let answer = answer.await?;
                    answer.ok_or_else(|| Failure::other("a queue was not answered"))
                })
            });
            let (number, waiting) = joined.await?;
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

    /// Whether it may be the waiter's turn. One without a ticket, or whose ticket ran out, gets one.
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
        let request = self.request(session, Some(number));
        let answer = self.database.run(Mode::Read, request, |tx, request| {
            Box::pin(async move {
                let Request {
                    session,
                    replica,
                    released,
                    ticket,
                    ..
                } = request;
                let values = values![session, replica, ticket, released];
                tx.query_opt(IS_NEXT, values, |row| {
                    Ok((row.get(0)?, row.get::<bool>(1)?))
                })
                .await
            })
        });
        let Some((is_next, has_ticket)) = answer.await? else {
            return Ok(false);
        };
        if !has_ticket {
            // It ran out while the database could not be reached.
            *ticket = None;
            return Ok(false);
        }
        Ok(is_next)
    }
}

/// Resolves when a session is said to be released.
async fn release_of(released: &mut Receiver<SessionId>, session: &SessionId) {
    loop {
        match released.recv().await {
            Ok(released) if released != *session => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

fn busy(session: &SessionId, waiting: Option<usize>) -> StoreError {
    StoreError::Busy {
        id: session.clone(),
        waiting,
    }
}

fn stopped(error: tokio::task::JoinError) -> StoreError {
    StoreError::Failed {
        detail: format!("the runtime ended while a session was claimed: {error}"),
    }
}
