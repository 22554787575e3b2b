//! Modules that are still written for each database apart. Every block goes when its module has moved to the one store.

use crate::database::Answer;
use crate::engine::Engine;
use crate::graph::{
    Ended, Fact, FactQuery, Found as GraphFound, GraphRows, GraphSize, Name, NewFact, Noun,
    Related, Traversal, Triple, Walk,
};
use crate::library::*;
use crate::recollection::{Recollection, *};
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
