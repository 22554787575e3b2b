//! Appending to a log: one statement, sent again when its answer is lost, and carried out once.
//!
//! The statement writes only at the end that the batch was made for, so a try that was carried out makes the next one
//! find its own events there, by their hash. Where the log of a session ends is remembered, so that the hashes can be made
//! without asking.

use super::batch::{Chained, Rows};
use super::database::{Database, Tries, Values};
use super::effects::{Granted, stored, without_arguments};
use super::end::{End, Ends};
use super::failure::Failure;
use super::keeper::EVENTS;
use super::leases::{Lease, Leases};
use super::statements::append::{APPEND_FREE, APPEND_HELD, APPEND_HIDDEN, Append};
use super::statements::holds::SUCCEEDED;
use super::statements::{LOG_END, REQUESTS};
use super::text::{Words, words};
use crate::archive::LogRow;
use crate::batch::target_of;
use crate::chain::Chain;
use crate::stored::damaged;
use lango_core::{Batch, Event, SessionId, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// How often a batch is made anew because the end of the log was not as remembered.
const FRESH_STARTS: usize = 3;

/// The statement that appends, and who does.
type Way<'a> = (Append, &'a (dyn ToSql + Sync));

/// What appending needs.
#[derive(Clone)]
pub(super) struct Appender {
    pub database: Arc<Database>,
    pub leases: Arc<Leases>,
    pub ends: Arc<Ends>,
}

impl Appender {
    /// Stores a batch, once, or says why not. The lease is the one that this copy had on the session when it was asked.
    pub(super) async fn append(
        self,
        events: Batch,
        lease: Option<Arc<Lease>>,
    ) -> Result<(), StoreError> {
        let Some((session, first_seq)) = target_of(&events)? else {
            return Ok(());
        };
        self.database.open().await?;
        let lease = lease.as_deref();
        let stored = self.store(session, first_seq, &events, lease).await;
        match stored {
            Ok(end) => {
                self.ends.remember(session, end);
                self.leases.tell(EVENTS, session.as_str());
                Ok(())
            }
            Err(failure) => match lease.filter(|lease| lease.has_run_out()) {
                Some(lease) => Err(self.said_without_lease(failure, lease).await),
                None => Err(self.database.said(failure)),
            },
        }
    }

    /// Why nothing was stored under a lease that ran out because there was no word from the database: that is the reason,
    /// unless somebody else has taken the session since.
    async fn said_without_lease(&self, failure: Failure, lease: &Lease) -> StoreError {
        let said = self.database.said(failure);
        let detail = match &said {
            StoreError::Unreachable { detail, .. } => detail.clone(),
            StoreError::Lost { .. } => {
                let values: Values<'_> = &[&Words(lease.session.as_str()), &lease.fence];
                match self.database.query(SUCCEEDED, values).await {
                    Ok(rows) if !rows.is_empty() => return said,
                    Ok(_) => "there was no word from it for too long".to_owned(),
                    Err(error) => return error,
                }
            }
            _ => return said,
        };
        let (session, length) = (&lease.session, self.leases.length);
        StoreError::Unreachable {
            place: self.database.place().to_owned(),
            detail: format!(
                "{detail}; session `{session}` was not renewed for {length:?} and is not held here any more"
            ),
        }
    }

    async fn store(
        &self,
        session: &SessionId,
        first_seq: u64,
        events: &[Event],
        lease: Option<&Lease>,
    ) -> Result<End, Failure> {
        let mut rows = Rows::of(events)?;
        let mut tries = Tries::within(self.leases.length);
        self.look_up_requests(session, &mut rows.effects.granted, &mut tries)
            .await?;
        let known = self.ends.take(session);
        let mut known = known.filter(|end| end.seq.checked_add(1) == Some(first_seq));
        let mut starts = 0;
        loop {
            let previous = match known.take() {
                Some(end) => end,
                None => self.end_of(session, &mut tries).await?,
            };
            let batch = rows.after(previous.hash.clone());
            loop {
                match self.try_to_store(session, first_seq, &batch, lease).await {
                    Ok(found) if found.written == batch.hashes.len() => return Ok(batch.end()),
                    // An earlier try was carried out, and its answer was lost.
                    Ok(found) if tries.is_uncertain && found.is_there(&batch) => {
                        return Ok(batch.end());
                    }
                    Ok(found) => {
                        found.refusal(session, first_seq)?;
                        // The end was another than remembered, so that no try can have been carried out.
                        tries.is_uncertain = false;
                        break;
                    }
                    // Somebody was faster, between our look and our writing; the next look sees them. If it was an earlier
                    // try of our own, that can be told by its hashes alone.
                    Err(failure) if failure.broken_rule() == Some("events_pkey") => {
                        known = tries.is_uncertain.then(|| previous.clone());
                        break;
                    }
                    Err(failure) => tries.after(failure).await?,
                }
            }
            starts += 1;
            if starts > FRESH_STARTS {
                return Err(Failure::Said(conflict(session)));
            }
        }
    }

    /// Stores rows of a hidden session as they were stored elsewhere, once.
    pub(super) async fn take_over(self, given: Vec<LogRow>) -> Result<(), StoreError> {
        self.database.open().await?;
        let taken_over = self.try_to_take_over(&given).await;
        taken_over.map_err(|failure| self.database.said(failure))
    }

    async fn try_to_take_over(&self, given: &[LogRow]) -> Result<(), Failure> {
        let Some(first) = given.first() else {
            return Ok(());
        };
        let session = &first.session;
        let mut tries = Tries::within(self.leases.length);
        let end = self.end_of(session, &mut tries).await?;
        let mut chain = Chain::at(session, end.seq, end.hash.clone());
        let events = given.iter().map(|row| Ok(row.event(chain.take(row)?)));
        let events: Vec<Event> = events.collect::<Result<_, StoreError>>()?;
        let mut rows = Rows::of(&events)?;
        rows.bodies = given.iter().map(|row| row.body.clone()).collect();
        let batch = Chained {
            rows: &rows,
            previous: end.hash,
            hashes: given.iter().map(|row| row.hash.clone()).collect(),
        };
        loop {
            let tried = self.try_batch(session, first.seq, &batch, (APPEND_HIDDEN, &0_i64));
            match tried.await {
                Ok(found) if found.written == given.len() => return Ok(()),
                Ok(found) if tries.is_uncertain && found.is_there(&batch) => return Ok(()),
                Ok(_) => {
                    return Err(Failure::Said(StoreError::NotFound {
                        id: session.clone(),
                    }));
                }
                Err(failure) => tries.after(failure).await?,
            }
        }
    }

    async fn end_of(&self, session: &SessionId, tries: &mut Tries) -> Result<End, Failure> {
        let rows = self
            .look(LOG_END, &[&Words(session.as_str())], tries)
            .await?;
        rows.first().map_or(Ok(End::default()), end_in)
    }

    /// Completes what an answer for calls to come leaves of the request that it answers.
    async fn look_up_requests(
        &self,
        session: &SessionId,
        granted: &mut Granted<'_>,
        tries: &mut Tries,
    ) -> Result<(), Failure> {
        if granted.id.is_empty() {
            return Ok(());
        }
        let values: Values<'_> = &[&Words(session.as_str()), &granted.id];
        for row in self.look(REQUESTS, values, tries).await? {
            let request = serde_json::from_str(&words(&row, 1)?);
            let request = request.map_err(|error| damaged(session, 0, &error))?;
            let id = words(&row, 0)?;
            if let Some(at) = granted.id.iter().position(|granted| granted.0 == id) {
                granted.request[at] = without_arguments(request)?;
            }
        }
        Ok(())
    }

    /// The rows of a statement that changes nothing.
    async fn look(
        &self,
        statement: &str,
        values: Values<'_>,
        tries: &mut Tries,
    ) -> Result<Vec<Row>, Failure> {
        loop {
            match self
                .database
                .try_once(statement, values, self.limit())
                .await
            {
                Ok(rows) => return Ok(rows),
                Err(failure) => {
                    let is_uncertain = tries.is_uncertain;
                    tries.after(failure).await?;
                    // Looking leaves no traces.
                    tries.is_uncertain = is_uncertain;
                }
            }
        }
    }

    async fn try_to_store(
        &self,
        session: &SessionId,
        first_seq: u64,
        batch: &Chained<'_>,
        lease: Option<&Lease>,
    ) -> Result<FoundThere, Failure> {
        let fence = lease.map(|lease| lease.fence);
        let us = Words(&self.leases.holder);
        let way: Way<'_> = match &fence {
            Some(fence) => (APPEND_HELD, fence),
            None => (APPEND_FREE, &us),
        };
        self.try_batch(session, first_seq, batch, way).await
    }

    async fn try_batch(
        &self,
        session: &SessionId,
        first_seq: u64,
        batch: &Chained<'_>,
        (append, who): Way<'_>,
    ) -> Result<FoundThere, Failure> {
        let name = Words(session.as_str());
        let first = stored(first_seq)?;
        let (rows, effects) = (batch.rows, &batch.rows.effects);
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![
            &name,
            who,
            &first,
            &batch.previous,
            &rows.turns,
            &rows.frames,
            &rows.authors,
            &rows.times,
            &rows.bodies,
            &batch.hashes,
            &effects.began.turn,
            &effects.began.seq,
            &effects.began.delegation,
            &effects.began.answer,
            &effects.began.finished,
            &effects.went_on.turn,
            &effects.went_on.delegation,
            &effects.went_on.answer,
            &effects.went_on.finished,
            &effects.title,
            &effects.first_asked,
            &effects.last_ended,
            &effects.asked.id,
            &effects.asked.turn,
            &effects.asked.time,
            &effects.asked.request,
            &effects.asked.pattern,
            &effects.asked.folder,
            &effects.granted.id,
            &effects.granted.time,
            &effects.granted.pattern,
            &effects.granted.folder,
            &effects.granted.request,
            &effects.answered,
            &effects.called.agent,
            &effects.called.context,
            &effects.called.task,
            &effects.returned,
        ];
        let statement = if effects.attachments.is_empty() {
            append.plain
        } else {
            values.push(&effects.attachments);
            append.with_attachments
        };
        let answer = self.database.try_once(statement, &values, self.limit());
        match answer.await?.first() {
            Some(row) => FoundThere::of(row),
            None => Err(Failure::other("an append was not answered")),
        }
    }

    /// How long one try may take: time is left for another one.
    fn limit(&self) -> Duration {
        (self.leases.length / 3).max(Duration::from_secs(1))
    }
}

/// What an append found.
struct FoundThere {
    has_session: bool,
    is_ours: bool,
    last_seq: u64,
    written: usize,
    /// The hash of the event that stands where the last one of the batch belongs.
    hash: Option<Vec<u8>>,
}

impl FoundThere {
    fn of(row: &Row) -> Result<Self, Failure> {
        let written: i64 = row.try_get(3)?;
        Ok(Self {
            has_session: row.try_get(0)?,
            is_ours: row.try_get(1)?,
            last_seq: row
                .try_get::<_, Option<i64>>(2)?
                .unwrap_or(0)
                .unsigned_abs(),
            written: usize::try_from(written).unwrap_or(usize::MAX),
            hash: row.try_get(4)?,
        })
    }

    fn is_there(&self, batch: &Chained<'_>) -> bool {
        self.hash.is_some() && self.hash.as_ref() == batch.hashes.last()
    }

    /// Why nothing was written; nothing if the end only was another than remembered.
    fn refusal(&self, session: &SessionId, first_seq: u64) -> Result<(), StoreError> {
        if !self.has_session {
            Err(StoreError::NotFound {
                id: session.clone(),
            })
        } else if !self.is_ours {
            Err(lost(session))
        } else if self.last_seq.checked_add(1) != Some(first_seq) {
            Err(conflict(session))
        } else {
            Ok(())
        }
    }
}

fn end_in(row: &Row) -> Result<End, Failure> {
    Ok(End {
        seq: row.try_get::<_, i64>(0)?.unsigned_abs(),
        hash: row.try_get(1)?,
    })
}

fn conflict(session: &SessionId) -> StoreError {
    StoreError::Conflict {
        id: session.clone(),
    }
}

fn lost(session: &SessionId) -> StoreError {
    StoreError::Lost {
        id: session.clone(),
    }
}
