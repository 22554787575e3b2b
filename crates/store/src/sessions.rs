//! Sessions, their logs and their leases: the part of the store that SQLite and PostgreSQL do in different ways. SQLite appends
//! on its writer thread under file locks, PostgreSQL with one statement under the fence of a lease.

use crate::engine::Engine;
use crate::store::Store;
use lango_core::*;

impl SessionStore for Store {
    fn create(&self, session: NewSession) -> BoxFuture<'_, Result<(), StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => SessionStore::create(engine.as_ref(), session),
            Engine::Postgres(engine) => SessionStore::create(engine.as_ref(), session),
        }
    }

    fn open(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionHead, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => SessionStore::open(engine.as_ref(), session),
            Engine::Postgres(engine) => SessionStore::open(engine.as_ref(), session),
        }
    }

    fn hold(
        &self,
        session: &SessionId,
        patience: Patience,
    ) -> BoxFuture<'_, Result<Hold, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => SessionStore::hold(engine.as_ref(), session, patience),
            Engine::Postgres(engine) => SessionStore::hold(engine.as_ref(), session, patience),
        }
    }

    fn append(&self, events: Batch) -> BoxFuture<'_, Result<(), StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => SessionStore::append(engine.as_ref(), events),
            Engine::Postgres(engine) => SessionStore::append(engine.as_ref(), events),
        }
    }

    fn read(
        &self,
        session: &SessionId,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => SessionStore::read(engine.as_ref(), session, page),
            Engine::Postgres(engine) => SessionStore::read(engine.as_ref(), session, page),
        }
    }

    fn turn_events(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => SessionStore::turn_events(engine.as_ref(), session, turn),
            Engine::Postgres(engine) => SessionStore::turn_events(engine.as_ref(), session, turn),
        }
    }

    fn grants(
        &self,
        session: &SessionId,
        folder: &str,
    ) -> BoxFuture<'_, Result<Vec<Grant>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => SessionStore::grants(engine.as_ref(), session, folder),
            Engine::Postgres(engine) => SessionStore::grants(engine.as_ref(), session, folder),
        }
    }

    fn remote_thread(
        &self,
        session: &SessionId,
        agent: &AgentName,
    ) -> BoxFuture<'_, Result<Option<RemoteThread>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => SessionStore::remote_thread(engine.as_ref(), session, agent),
            Engine::Postgres(engine) => {
                SessionStore::remote_thread(engine.as_ref(), session, agent)
            }
        }
    }
}

impl SessionCatalog for Store {
    fn list(
        &self,
        user: &UserId,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => SessionCatalog::list(engine.as_ref(), user, limit),
            Engine::Postgres(engine) => SessionCatalog::list(engine.as_ref(), user, limit),
        }
    }

    fn find(
        &self,
        user: &UserId,
        prefix: &str,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => SessionCatalog::find(engine.as_ref(), user, prefix, limit),
            Engine::Postgres(engine) => SessionCatalog::find(engine.as_ref(), user, prefix, limit),
        }
    }

    fn approvals(&self, user: &UserId) -> BoxFuture<'_, Result<Approvals, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => SessionCatalog::approvals(engine.as_ref(), user),
            Engine::Postgres(engine) => SessionCatalog::approvals(engine.as_ref(), user),
        }
    }

    fn count_waiting(&self, user: &UserId) -> BoxFuture<'_, Result<usize, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => SessionCatalog::count_waiting(engine.as_ref(), user),
            Engine::Postgres(engine) => SessionCatalog::count_waiting(engine.as_ref(), user),
        }
    }

    fn unfinished(
        &self,
        after: Option<&SessionId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<UnfinishedTurn>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => SessionCatalog::unfinished(engine.as_ref(), after, limit),
            Engine::Postgres(engine) => SessionCatalog::unfinished(engine.as_ref(), after, limit),
        }
    }

    fn revoke(&self, user: &UserId, grant: &ApprovalId) -> BoxFuture<'_, Result<(), StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => SessionCatalog::revoke(engine.as_ref(), user, grant),
            Engine::Postgres(engine) => SessionCatalog::revoke(engine.as_ref(), user, grant),
        }
    }
}
