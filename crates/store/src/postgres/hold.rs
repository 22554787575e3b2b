//! Taking hold of a session: first within this copy, then among all of them.
//!
//! Whoever finds it taken gets a ticket in the database, and with it a place in the order of coming over all copies. A word
//! that the session was let go of is a hint to look; looking now and then is what can be relied on, for a copy that died
//! says nothing.

use super::database::{Database, Values};
use super::failure::Failure;
use super::keeper::Keeper;
use super::leases::{Claim, LeaseHold, Leases, Ticket, now};
use super::statements::holds::{CLAIM, IS_NEXT, JOIN_LINE};
use super::text::Words;
use crate::line::{Lines, Place};
use lango_core::{Held as _, Hold, Patience, SessionId, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// How often somebody who waits looks whether it is their turn.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Those of this copy who want to hold sessions.
pub(super) struct Holds {
    pub database: Arc<Database>,
    pub keeper: Keeper,
    pub lines: Arc<Lines>,
}

impl Holds {
    /// Takes hold of a session.
    pub(super) async fn hold(
        &self,
        session: &SessionId,
        patience: Patience,
    ) -> Result<Hold, StoreError> {
        let newcomer = self.lines.enter(session, patience)?;
        let is_first = newcomer.is_first;
        self.database.open().await?;
        self.keeper.start()?;
        let ticket = async {
            match patience {
                Patience::Wait { most } if !is_first => {
                    Ok::<_, StoreError>(Some(self.join(session, most).await?))
                }
                _ => Ok(None),
            }
        };
        // The front first: its order is that of asking.
        let front = async { Ok(newcomer.front().await) };
        let (mut place, mut ticket) = tokio::try_join!(biased; front, ticket)?;
        let mut released = self.leases().released.subscribe();
        loop {
            place = match self.claim(session, place, &mut ticket).await? {
                Ok(held) => return Ok(Box::new(held)),
                Err(place) => place,
            };
            let Patience::Wait { most } = patience else {
                return Err(busy(session, None));
            };
            while !self.is_next(session, &mut ticket, most).await? {
                let hint = let_go_of(&mut released, session);
                // Without a hint it is time to look.
                let _ = tokio::time::timeout(LOOK_EVERY, hint).await;
            }
        }
    }

    fn leases(&self) -> &Arc<Leases> {
        &self.keeper.leases
    }

    /// Claims a session for whoever has this place, if it is free and nobody came before; else gives the place back.
    async fn claim(
        &self,
        session: &SessionId,
        place: Place,
        ticket: &mut Option<Ticket>,
    ) -> Result<Result<LeaseHold, Place>, StoreError> {
        let (database, leases) = (Arc::clone(&self.database), Arc::clone(self.leases()));
        let session = session.clone();
        let number = ticket.as_ref().map(|ticket| ticket.number);
        // In a task of its own: a claim that nobody waits for any more is let go of when it is answered, and only then is
        // the place.
        let claim = tokio::spawn(async move {
            let gone = leases.tickets_gone(&session);
            let asked = now();
            let length = leases.length.as_secs_f64();
            let (name, holder) = (Words(session.as_str()), Words(&leases.holder));
            let rows = database
                .query(CLAIM, &[&name, &holder, &length, &gone, &number])
                .await?;
            let Some(row) = rows.first() else {
                return Ok(Err(place));
            };
            let fence = row.try_get(0);
            let fence = fence.map_err(|error| database.said(error.into()))?;
            let lease = leases.take(session, fence, asked);
            let held = LeaseHold {
                claim: Claim { lease, leases },
                _place: place,
            };
            match held.is_had() {
                true => Ok(Ok(held)),
                false => Err(database.said(Failure::Silent)),
            }
        });
        let claimed = claim.await.map_err(stopped)??;
        if claimed.is_ok()
            && let Some(spent) = ticket.take()
        {
            self.leases().spend(spent.number);
        }
        Ok(claimed)
    }

    /// Joins the line over all copies.
    async fn join(&self, session: &SessionId, most: usize) -> Result<Ticket, StoreError> {
        let (database, leases) = (Arc::clone(&self.database), Arc::clone(self.leases()));
        let session = session.clone();
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let join = tokio::spawn(async move {
            let gone = leases.tickets_gone(&session);
            let length = leases.length.as_secs_f64();
            let (name, holder) = (Words(session.as_str()), Words(&leases.holder));
            let values: Values<'_> = &[&name, &holder, &length, &gone, &most];
            let rows = database.query(JOIN_LINE, values).await?;
            let joined = rows.first().map(|row| -> Result<_, Failure> {
                let waiting: i64 = row.try_get(1)?;
                Ok((row.try_get::<_, Option<i64>>(0)?, waiting))
            });
            let joined = joined.unwrap_or_else(|| Err(Failure::other("a line was not answered")));
            let (number, waiting) = joined.map_err(|failure| database.said(failure))?;
            let waiting = usize::try_from(waiting).unwrap_or(usize::MAX);
            let number = number.ok_or_else(|| busy(&session, Some(waiting)))?;
            leases.wait_with(number);
            Ok(Ticket {
                number,
                session,
                leases,
            })
        });
        join.await.map_err(stopped)?
    }

    /// Whether it may be our turn. Whoever has no ticket, or not any more, gets one.
    async fn is_next(
        &self,
        session: &SessionId,
        ticket: &mut Option<Ticket>,
        most: usize,
    ) -> Result<bool, StoreError> {
        let held = match ticket.as_ref() {
            Some(held) => held.number,
            None => ticket.insert(self.join(session, most).await?).number,
        };
        let (name, holder) = (Words(session.as_str()), Words(&self.leases().holder));
        let gone = self.leases().tickets_gone(session);
        let rows = self
            .database
            .query(IS_NEXT, &[&name, &holder, &held, &gone])
            .await?;
        let said = |error: tokio_postgres::Error| self.database.said(error.into());
        let Some(row) = rows.first() else {
            return Ok(false);
        };
        if !row.try_get::<_, bool>(1).map_err(said)? {
            // It ran out while the database could not be reached.
            *ticket = None;
            return Ok(false);
        }
        row.try_get(0).map_err(said)
    }
}

/// Resolves when somebody is said to have let go of a session.
async fn let_go_of(released: &mut Receiver<SessionId>, session: &SessionId) {
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
        detail: format!("the runtime ended while a session was asked for: {error}"),
    }
}
