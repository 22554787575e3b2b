//! Modules that are still written for each database apart. Every block goes when its module has moved to the one store.

use crate::archive::{Archive, Expired, Intake, LogRow, Removing, SessionRecord, Wiped};
use crate::database::Answer;
use crate::engine::Engine;
use crate::graph::{
    Ended, Fact, FactQuery, Found as GraphFound, GraphRows, GraphSize, Name, NewFact, Noun,
    Related, Traversal, Triple, Walk,
};
use crate::recollection::{Recollection, *};
use crate::store::Store;
use crate::tables::{Cells, Destination, Mark, Table, Tables};
use lango_core::*;
use std::sync::Arc;

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

impl AttachmentStore for Store {
    fn put<'a>(
        &'a self,
        user: &'a UserId,
        bytes: Arc<[u8]>,
    ) -> BoxFuture<'a, Result<Text, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => AttachmentStore::put(engine.as_ref(), user, bytes),
            Engine::Postgres(engine) => AttachmentStore::put(engine.as_ref(), user, bytes),
        }
    }

    fn read<'a>(
        &'a self,
        user: &'a UserId,
        digest: &'a str,
    ) -> BoxFuture<'a, Result<Option<Arc<[u8]>>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => AttachmentStore::read(engine.as_ref(), user, digest),
            Engine::Postgres(engine) => AttachmentStore::read(engine.as_ref(), user, digest),
        }
    }
}

impl PaymentStore for Store {
    fn reserve_payment(
        &self,
        reservation: Reservation,
    ) -> BoxFuture<'_, Result<Reserved, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => PaymentStore::reserve_payment(engine.as_ref(), reservation),
            Engine::Postgres(engine) => PaymentStore::reserve_payment(engine.as_ref(), reservation),
        }
    }

    fn change_payment(
        &self,
        change: PaymentChange,
    ) -> BoxFuture<'_, Result<PaymentChanged, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => PaymentStore::change_payment(engine.as_ref(), change),
            Engine::Postgres(engine) => PaymentStore::change_payment(engine.as_ref(), change),
        }
    }

    fn payments(
        &self,
        query: PaymentQuery,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Payment>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => PaymentStore::payments(engine.as_ref(), query, limit),
            Engine::Postgres(engine) => PaymentStore::payments(engine.as_ref(), query, limit),
        }
    }

    fn payment_account(
        &self,
        query: TotalsQuery,
    ) -> BoxFuture<'_, Result<AccountStatus, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => PaymentStore::payment_account(engine.as_ref(), query),
            Engine::Postgres(engine) => PaymentStore::payment_account(engine.as_ref(), query),
        }
    }

    fn payment_budget(&self, key: BudgetKey) -> BoxFuture<'_, Result<u64, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => PaymentStore::payment_budget(engine.as_ref(), key),
            Engine::Postgres(engine) => PaymentStore::payment_budget(engine.as_ref(), key),
        }
    }
}

impl GraphRows for Store {
    fn relate(&self, user: &UserId, fact: NewFact) -> Answer<'_, Related> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::relate(engine.as_ref(), user, fact),
            Engine::Postgres(engine) => GraphRows::relate(engine.as_ref(), user, fact),
        }
    }

    fn relate_all(&self, user: &UserId, facts: Vec<NewFact>) -> Answer<'_, u64> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::relate_all(engine.as_ref(), user, facts),
            Engine::Postgres(engine) => GraphRows::relate_all(engine.as_ref(), user, facts),
        }
    }

    fn end(&self, user: &UserId, triple: Triple, by: Trust, at: Timestamp) -> Answer<'_, Ended> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::end(engine.as_ref(), user, triple, by, at),
            Engine::Postgres(engine) => GraphRows::end(engine.as_ref(), user, triple, by, at),
        }
    }

    fn query(&self, user: &UserId, query: FactQuery) -> Answer<'_, GraphFound> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::query(engine.as_ref(), user, query),
            Engine::Postgres(engine) => GraphRows::query(engine.as_ref(), user, query),
        }
    }

    fn traverse(&self, user: &UserId, walk: Walk) -> Answer<'_, Option<Traversal>> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::traverse(engine.as_ref(), user, walk),
            Engine::Postgres(engine) => GraphRows::traverse(engine.as_ref(), user, walk),
        }
    }

    fn neighbours(&self, user: &UserId, names: Vec<Name>, limit: usize) -> Answer<'_, Vec<Fact>> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::neighbours(engine.as_ref(), user, names, limit),
            Engine::Postgres(engine) => GraphRows::neighbours(engine.as_ref(), user, names, limit),
        }
    }

    fn near(&self, user: &UserId, noun: Noun, name: Name, limit: usize) -> Answer<'_, Vec<Name>> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::near(engine.as_ref(), user, noun, name, limit),
            Engine::Postgres(engine) => GraphRows::near(engine.as_ref(), user, noun, name, limit),
        }
    }

    fn count(&self, user: &UserId) -> Answer<'_, GraphSize> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::count(engine.as_ref(), user),
            Engine::Postgres(engine) => GraphRows::count(engine.as_ref(), user),
        }
    }

    fn forget_user(&self, user: &UserId) -> Answer<'_, u64> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::forget_user(engine.as_ref(), user),
            Engine::Postgres(engine) => GraphRows::forget_user(engine.as_ref(), user),
        }
    }

    fn forget_source(&self, user: &UserId, source: &str) -> Answer<'_, u64> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::forget_source(engine.as_ref(), user, source),
            Engine::Postgres(engine) => GraphRows::forget_source(engine.as_ref(), user, source),
        }
    }
}

impl MemoryRows for Store {
    fn watermark(&self, owner: &MemoryOwner) -> Answer<'_, Watermark> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::watermark(engine.as_ref(), owner),
            Engine::Postgres(engine) => MemoryRows::watermark(engine.as_ref(), owner),
        }
    }

    fn turns(&self, owner: &MemoryOwner, turns: TurnsToRead) -> Answer<'_, Vec<UnobservedTurn>> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::turns(engine.as_ref(), owner, turns),
            Engine::Postgres(engine) => MemoryRows::turns(engine.as_ref(), owner, turns),
        }
    }

    fn current_turn(&self, owner: &MemoryOwner, turn: &TurnId) -> Answer<'_, Option<u64>> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::current_turn(engine.as_ref(), owner, turn),
            Engine::Postgres(engine) => MemoryRows::current_turn(engine.as_ref(), owner, turn),
        }
    }

    fn shown(&self, owner: &MemoryOwner, most: usize) -> Answer<'_, ShownMemory> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::shown(engine.as_ref(), owner, most),
            Engine::Postgres(engine) => MemoryRows::shown(engine.as_ref(), owner, most),
        }
    }

    fn recollections(
        &self,
        owner: &MemoryOwner,
        generation: Generation,
        which: Which,
        limit: usize,
    ) -> Answer<'_, Vec<Recollection>> {
        match &self.engine {
            Engine::Sqlite(engine) => {
                MemoryRows::recollections(engine.as_ref(), owner, generation, which, limit)
            }
            Engine::Postgres(engine) => {
                MemoryRows::recollections(engine.as_ref(), owner, generation, which, limit)
            }
        }
    }

    fn saved(&self, user: &UserId, limit: usize) -> Answer<'_, Vec<SavedMemory>> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::saved(engine.as_ref(), user, limit),
            Engine::Postgres(engine) => MemoryRows::saved(engine.as_ref(), user, limit),
        }
    }

    fn commit(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        step: MemoryStep,
    ) -> Answer<'_, Commit<Option<MemoryId>>> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::commit(engine.as_ref(), owner, revision, step),
            Engine::Postgres(engine) => MemoryRows::commit(engine.as_ref(), owner, revision, step),
        }
    }

    fn count_failure(&self, owner: &MemoryOwner) -> Answer<'_, u32> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::count_failure(engine.as_ref(), owner),
            Engine::Postgres(engine) => MemoryRows::count_failure(engine.as_ref(), owner),
        }
    }

    fn add_note(&self, owner: &MemoryOwner, note: NewRecollection) -> Answer<'_, MemoryId> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::add_note(engine.as_ref(), owner, note),
            Engine::Postgres(engine) => MemoryRows::add_note(engine.as_ref(), owner, note),
        }
    }

    fn save(&self, user: &UserId, memory: NewSavedMemory, most: u64) -> Answer<'_, Saved> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::save(engine.as_ref(), user, memory, most),
            Engine::Postgres(engine) => MemoryRows::save(engine.as_ref(), user, memory, most),
        }
    }

    fn forget(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        forget: Forget,
    ) -> Answer<'_, Commit<Vec<MemoryId>>> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::forget(engine.as_ref(), owner, revision, forget),
            Engine::Postgres(engine) => {
                MemoryRows::forget(engine.as_ref(), owner, revision, forget)
            }
        }
    }
}

impl Archive for Store {
    fn ids(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Archive::ids(engine.as_ref(), user, after, limit),
            Engine::Postgres(engine) => Archive::ids(engine.as_ref(), user, after, limit),
        }
    }

    fn record(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionRecord, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Archive::record(engine.as_ref(), session),
            Engine::Postgres(engine) => Archive::record(engine.as_ref(), session),
        }
    }

    fn rows(
        &self,
        session: &SessionId,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<LogRow>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Archive::rows(engine.as_ref(), session, page),
            Engine::Postgres(engine) => Archive::rows(engine.as_ref(), session, page),
        }
    }
}

impl Intake for Store {
    fn begin(&self, session: NewSession) -> BoxFuture<'_, Result<(), StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Intake::begin(engine.as_ref(), session),
            Engine::Postgres(engine) => Intake::begin(engine.as_ref(), session),
        }
    }

    fn add(&self, rows: Vec<LogRow>) -> BoxFuture<'_, Result<(), StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Intake::add(engine.as_ref(), rows),
            Engine::Postgres(engine) => Intake::add(engine.as_ref(), rows),
        }
    }

    fn finish(&self, session: SessionRecord) -> BoxFuture<'_, Result<u64, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Intake::finish(engine.as_ref(), session),
            Engine::Postgres(engine) => Intake::finish(engine.as_ref(), session),
        }
    }
}

impl Removing for Store {
    fn hide(
        &self,
        session: &SessionId,
        unused_since: Option<Timestamp>,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Removing::hide(engine.as_ref(), session, unused_since),
            Engine::Postgres(engine) => Removing::hide(engine.as_ref(), session, unused_since),
        }
    }

    fn remove_some(&self, session: &SessionId) -> BoxFuture<'_, Result<bool, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Removing::remove_some(engine.as_ref(), session),
            Engine::Postgres(engine) => Removing::remove_some(engine.as_ref(), session),
        }
    }

    fn hidden(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Removing::hidden(engine.as_ref(), user, after, limit),
            Engine::Postgres(engine) => Removing::hidden(engine.as_ref(), user, after, limit),
        }
    }

    fn expired(
        &self,
        user: &UserId,
        unused_since: Timestamp,
        page: Expired,
    ) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Removing::expired(engine.as_ref(), user, unused_since, page),
            Engine::Postgres(engine) => {
                Removing::expired(engine.as_ref(), user, unused_since, page)
            }
        }
    }

    fn remove_tasks(
        &self,
        user: &UserId,
        before: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<u64, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Removing::remove_tasks(engine.as_ref(), user, before, limit),
            Engine::Postgres(engine) => {
                Removing::remove_tasks(engine.as_ref(), user, before, limit)
            }
        }
    }

    fn wipe(&self) -> BoxFuture<'_, Result<Wiped, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Removing::wipe(engine.as_ref()),
            Engine::Postgres(engine) => Removing::wipe(engine.as_ref()),
        }
    }
}

impl Tables for Store {
    fn place(&self) -> String {
        match &self.engine {
            Engine::Sqlite(engine) => Tables::place(engine.as_ref()),
            Engine::Postgres(engine) => Tables::place(engine.as_ref()),
        }
    }

    fn count_rows(&self, table: &'static Table) -> BoxFuture<'_, Result<u64, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Tables::count_rows(engine.as_ref(), table),
            Engine::Postgres(engine) => Tables::count_rows(engine.as_ref(), table),
        }
    }

    fn page(
        &self,
        table: &'static Table,
        after: Option<Cells>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Cells>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Tables::page(engine.as_ref(), table, after, limit),
            Engine::Postgres(engine) => Tables::page(engine.as_ref(), table, after, limit),
        }
    }

    fn rows_of(
        &self,
        table: &'static Table,
        keys: Vec<Cells>,
    ) -> BoxFuture<'_, Result<Vec<Option<Cells>>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Tables::rows_of(engine.as_ref(), table, keys),
            Engine::Postgres(engine) => Tables::rows_of(engine.as_ref(), table, keys),
        }
    }

    fn last_number(&self, table: &'static Table) -> BoxFuture<'_, Result<Option<i64>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Tables::last_number(engine.as_ref(), table),
            Engine::Postgres(engine) => Tables::last_number(engine.as_ref(), table),
        }
    }

    fn held(&self) -> BoxFuture<'_, Result<usize, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Tables::held(engine.as_ref()),
            Engine::Postgres(engine) => Tables::held(engine.as_ref()),
        }
    }
}

impl Destination for Store {
    fn mark(&self) -> BoxFuture<'_, Result<Option<Mark>, StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Destination::mark(engine.as_ref()),
            Engine::Postgres(engine) => Destination::mark(engine.as_ref()),
        }
    }

    fn arrive(
        &self,
        table: &'static Table,
        rows: Vec<Cells>,
        mark: Mark,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Destination::arrive(engine.as_ref(), table, rows, mark),
            Engine::Postgres(engine) => Destination::arrive(engine.as_ref(), table, rows, mark),
        }
    }

    fn go_on_from(
        &self,
        numbers: Vec<(&'static Table, i64)>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Destination::go_on_from(engine.as_ref(), numbers),
            Engine::Postgres(engine) => Destination::go_on_from(engine.as_ref(), numbers),
        }
    }

    fn arrived(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        match &self.engine {
            Engine::Sqlite(engine) => Destination::arrived(engine.as_ref()),
            Engine::Postgres(engine) => Destination::arrived(engine.as_ref()),
        }
    }
}
