//! Modules that are still written for each database apart. Every block goes when its module has moved to the one store.

use crate::archive::{Archive, Expired, Intake, LogRow, Removing, SessionRecord, Wiped};
use crate::database::Answer;
use crate::engine::Engine;
use crate::library::*;
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

impl LibraryRows for Store {
    fn collection(
        &self,
        user: &UserId,
        name: &str,
        session: Option<&SessionId>,
    ) -> Answer<'_, CollectionId> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::collection(engine.as_ref(), user, name, session),
            Engine::Postgres(engine) => {
                LibraryRows::collection(engine.as_ref(), user, name, session)
            }
        }
    }

    fn visible(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
    ) -> Answer<'_, (Vec<CollectionRow>, Option<EmbeddingMaker>)> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::visible(engine.as_ref(), user, session),
            Engine::Postgres(engine) => LibraryRows::visible(engine.as_ref(), user, session),
        }
    }

    fn all_collections(&self, user: &UserId) -> Answer<'_, Vec<CollectionRow>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::all_collections(engine.as_ref(), user),
            Engine::Postgres(engine) => LibraryRows::all_collections(engine.as_ref(), user),
        }
    }

    fn documents(&self, user: &UserId, wanted: Wanted) -> Answer<'_, Vec<DocumentRow>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::documents(engine.as_ref(), user, wanted),
            Engine::Postgres(engine) => LibraryRows::documents(engine.as_ref(), user, wanted),
        }
    }

    fn write(&self, pieces: Vec<Piece>, maker: Option<EmbeddingMaker>) -> Answer<'_, Stored<()>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::write(engine.as_ref(), pieces, maker),
            Engine::Postgres(engine) => LibraryRows::write(engine.as_ref(), pieces, maker),
        }
    }

    fn remove(&self, user: &UserId, document: i64, removal: Removal) -> Answer<'_, Option<u64>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::remove(engine.as_ref(), user, document, removal),
            Engine::Postgres(engine) => {
                LibraryRows::remove(engine.as_ref(), user, document, removal)
            }
        }
    }

    fn maker(&self) -> Answer<'_, Option<EmbeddingMaker>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::maker(engine.as_ref()),
            Engine::Postgres(engine) => LibraryRows::maker(engine.as_ref()),
        }
    }

    fn begin_vectors(&self, maker: EmbeddingMaker) -> Answer<'_, ()> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::begin_vectors(engine.as_ref(), maker),
            Engine::Postgres(engine) => LibraryRows::begin_vectors(engine.as_ref(), maker),
        }
    }

    fn without_vectors(&self, after: i64, most: usize) -> Answer<'_, Vec<(i64, String, String)>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::without_vectors(engine.as_ref(), after, most),
            Engine::Postgres(engine) => LibraryRows::without_vectors(engine.as_ref(), after, most),
        }
    }

    fn set_vectors(
        &self,
        maker: EmbeddingMaker,
        made: Vec<(i64, Vec<f32>)>,
    ) -> Answer<'_, Stored<()>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::set_vectors(engine.as_ref(), maker, made),
            Engine::Postgres(engine) => LibraryRows::set_vectors(engine.as_ref(), maker, made),
        }
    }

    fn frequencies(&self, words: Vec<String>) -> Answer<'_, (u64, Vec<u64>)> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::frequencies(engine.as_ref(), words),
            Engine::Postgres(engine) => LibraryRows::frequencies(engine.as_ref(), words),
        }
    }

    fn lexical(
        &self,
        collections: Vec<CollectionId>,
        words: Vec<QueryWord>,
        most: usize,
    ) -> Answer<'_, Ranked> {
        match &self.engine {
            Engine::Sqlite(engine) => {
                LibraryRows::lexical(engine.as_ref(), collections, words, most)
            }
            Engine::Postgres(engine) => {
                LibraryRows::lexical(engine.as_ref(), collections, words, most)
            }
        }
    }

    fn nearest(
        &self,
        collections: Vec<CollectionId>,
        maker: EmbeddingMaker,
        vector: Vec<f32>,
        most: usize,
    ) -> Answer<'_, Stored<Vec<(i64, f64)>>> {
        match &self.engine {
            Engine::Sqlite(engine) => {
                LibraryRows::nearest(engine.as_ref(), collections, maker, vector, most)
            }
            Engine::Postgres(engine) => {
                LibraryRows::nearest(engine.as_ref(), collections, maker, vector, most)
            }
        }
    }

    fn vector_search(&self) -> Answer<'_, VectorSearch> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::vector_search(engine.as_ref()),
            Engine::Postgres(engine) => LibraryRows::vector_search(engine.as_ref()),
        }
    }

    fn index_vectors(&self) -> Answer<'_, VectorSearch> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::index_vectors(engine.as_ref()),
            Engine::Postgres(engine) => LibraryRows::index_vectors(engine.as_ref()),
        }
    }

    fn chunks(&self, ids: Vec<i64>) -> Answer<'_, Vec<Found>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::chunks(engine.as_ref(), ids),
            Engine::Postgres(engine) => LibraryRows::chunks(engine.as_ref(), ids),
        }
    }

    fn save_knowledge(
        &self,
        user: &UserId,
        row: KnowledgeRow,
        piece: Piece,
        maker: Option<EmbeddingMaker>,
    ) -> Answer<'_, Stored<(u64, bool)>> {
        match &self.engine {
            Engine::Sqlite(engine) => {
                LibraryRows::save_knowledge(engine.as_ref(), user, row, piece, maker)
            }
            Engine::Postgres(engine) => {
                LibraryRows::save_knowledge(engine.as_ref(), user, row, piece, maker)
            }
        }
    }

    fn knowledge(
        &self,
        user: &UserId,
        documents: Vec<i64>,
    ) -> Answer<'_, Vec<Option<KnowledgeRow>>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::knowledge(engine.as_ref(), user, documents),
            Engine::Postgres(engine) => LibraryRows::knowledge(engine.as_ref(), user, documents),
        }
    }

    fn versions(&self, user: &UserId, key: &str, most: usize) -> Answer<'_, Vec<KnowledgeRow>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::versions(engine.as_ref(), user, key, most),
            Engine::Postgres(engine) => LibraryRows::versions(engine.as_ref(), user, key, most),
        }
    }

    fn save_learning(
        &self,
        user: &UserId,
        row: LearningRow,
        piece: Piece,
        maker: Option<EmbeddingMaker>,
    ) -> Answer<'_, Stored<bool>> {
        match &self.engine {
            Engine::Sqlite(engine) => {
                LibraryRows::save_learning(engine.as_ref(), user, row, piece, maker)
            }
            Engine::Postgres(engine) => {
                LibraryRows::save_learning(engine.as_ref(), user, row, piece, maker)
            }
        }
    }

    fn learnings(
        &self,
        user: &UserId,
        documents: Vec<i64>,
    ) -> Answer<'_, Vec<Option<LearningRow>>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::learnings(engine.as_ref(), user, documents),
            Engine::Postgres(engine) => LibraryRows::learnings(engine.as_ref(), user, documents),
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
