//! The memory of a user over all their sessions, for the user's own commands. The statements read all sessions of the user, and
//! may read whole tables: nobody runs them often.

use super::rows::recollection;
use super::statements::*;
use super::{MemoryId, MemoryRecord};
use crate::StoreFuture;
use crate::backend::{Sql, ToValue as _, sql, values, work};
use crate::store::Store;
use lango_core::{SessionId, UserId};

impl Store {
    /// Returns a user's observations and reflections with their sessions, newest first.
    pub fn recollections_of_user(
        &self,
        user: &UserId,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(SessionId, MemoryRecord)>> {
        let values = values![user, limit];
        self.backend
            .query(OF_USER, values, |row| Ok((row.get(9)?, recollection(row)?)))
    }

    /// Returns the session of a user's observation or reflection; `None` if the user has no memory with this id.
    pub fn session_of_memory(
        &self,
        user: &UserId,
        id: MemoryId,
    ) -> StoreFuture<'_, Option<SessionId>> {
        let kind: i64 = match id {
            MemoryId::Observation(_) => 0,
            MemoryId::Reflection(_) => 1,
            MemoryId::Saved(_) => 2,
        };
        let number = id.number();
        let values = values![user, number, kind];
        self.backend
            .query_opt(SESSION_OF_MEMORY, values, |row| row.get(0))
    }

    /// Returns whether a user has a memory of any kind with this id.
    pub fn has_memory(&self, user: &UserId, id: MemoryId) -> StoreFuture<'_, bool> {
        if matches!(id, MemoryId::Saved(_)) {
            let number = id.number();
            let values = values![user, number];
            let found = self.backend.query_opt(SAVED_MEMORY, values, |_| Ok(()));
            return Box::pin(async move { Ok(found.await?.is_some()) });
        }
        let session = self.session_of_memory(user, id);
        Box::pin(async move { Ok(session.await?.is_some()) })
    }

    /// Deletes one of a user's saved memories. Returns whether it existed.
    pub fn forget_saved(&self, user: &UserId, id: MemoryId) -> StoreFuture<'_, bool> {
        let args = (user.clone(), id);
        work!(self.backend.write(args), |tx, user, id| {
            let ids = match id {
                MemoryId::Saved(number) => vec![[number.to_value()]],
                MemoryId::Observation(_) | MemoryId::Reflection(_) => Vec::new(),
            };
            let shared = values![user];
            let deleted = tx.batch(DELETE_SAVED, shared, &ids, |row| row.get::<i64>(0));
            Ok(!deleted.await?.is_empty())
        })
    }

    /// Deletes all memories of a user, and never observes the turns up to now. Returns how many memories there were.
    pub fn forget_all_memories(&self, user: &UserId) -> StoreFuture<'_, u64> {
        work!(self.backend.write(user.clone()), |tx, user| {
            // A step that is in progress must not store what it has read.
            tx.execute(INSERT_WATERMARKS, values![user]).await?;
            tx.execute(MOVE_REVISIONS, values![user]).await?;
            tx.execute(FORGET_UNOBSERVED, values![user]).await?;
            let recollections = tx.execute(DELETE_ALL_RECOLLECTIONS, values![user]).await?;
            let saved = tx.execute(DELETE_ALL_SAVED, values![user]).await?;
            Ok(recollections + saved)
        })
    }
}

/// Selects a user's recollections, newest first.
const OF_USER: Sql = sql!(
    r#"SELECT generation, recollections.id, first_turn, last_turn, text, source, trusted, recollections.created, part_of, session
       FROM sessions JOIN recollections ON recollections.session = sessions.id
      WHERE sessions."user" = $1 AND recollections."user" = $1 ORDER BY recollections.id DESC LIMIT $2"#
);

const INSERT_WATERMARKS: Sql = sql!(
    r#"INSERT INTO watermarks (session, "user") SELECT id, "user" FROM sessions WHERE "user" = $1
     ON CONFLICT (session) DO NOTHING"#
);

const MOVE_REVISIONS: Sql = sql!(
    r#"UPDATE watermarks SET revision = revision + 1
      WHERE session IN (SELECT id FROM sessions WHERE "user" = $1)"#
);

/// Marks all turns of a user that are not observed yet.
const FORGET_UNOBSERVED: Sql = sql!(
    r#"INSERT INTO forgotten_turns (session, ordinal)
     SELECT turns.session, turns.ordinal FROM sessions
       JOIN watermarks ON watermarks.session = sessions.id
       JOIN turns ON turns.session = sessions.id AND turns.ordinal >= watermarks.observed
      WHERE sessions."user" = $1
     ON CONFLICT (session, ordinal) DO NOTHING"#
);

const DELETE_ALL_RECOLLECTIONS: Sql = sql!(
    r#"DELETE FROM recollections WHERE session IN (SELECT id FROM sessions WHERE "user" = $1) AND "user" = $1"#
);

const DELETE_ALL_SAVED: Sql = sql!(r#"DELETE FROM saved_memories WHERE "user" = $1"#);
