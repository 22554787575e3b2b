//! Sessions in one SQLite file.
//!
//! One thread owns the only connection that writes and commits what is queued in groups, one disk sync for all of them;
//! an append is answered after that sync. Readers stand beside it on connections of their own, opened when first needed,
//! and see what was committed before they began. Several processes may use one file: each append is checked against
//! the end of the log inside its transaction.

mod approvals;
mod connection;
pub(crate) mod failure;
mod hold;
mod import;
mod in_memory;
mod log;
mod look_back;
mod migrations;
mod place;
mod read_only;
mod readers;
mod remote_threads;
mod rows;
pub(crate) mod statements;
mod upkeep;
mod writer;

use crate::archive::must_be_kept;
use crate::engine::{Failure, Mode, Tx, Work};
use crate::line::Lines;
use crate::tables::OpenMode;
use connection::execute;
use futures_util::FutureExt as _;
use in_memory::InMemory;
use lango_core::{
    AgentName, ApprovalId, Approvals, Batch, BoxFuture, Event, Grant, Hold, NewSession, Page,
    Patience, RemoteThread, SessionCatalog, SessionHead, SessionId, SessionStore, SessionSummary,
    StoreError, TurnId, UnfinishedTurn, UserId,
};
use readers::Readers;
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use writer::Writer;

/// Sessions in one SQLite file.
///
/// Its futures need a tokio runtime. Dropping the store finishes what is queued, then closes the file.
pub(crate) struct SqliteEngine {
    // The readers go first: the last connection to close is the one that can tidy up the write-ahead log.
    readers: Arc<Readers>,
    writer: Arc<Writer>,
    /// Those of this process who want to hold a session.
    lines: Arc<Lines>,
}

impl SqliteEngine {
    /// The database at this place, which is opened, and made if need be, when it is first used.
    pub(crate) fn at(
        open_mode: OpenMode,
        path: &Path,
        root_agent: AgentName,
    ) -> Result<Self, StoreError> {
        let path = place::absolute(path)?;
        let writer = Arc::new(Writer::at(path.clone(), open_mode));
        Ok(Self {
            readers: Readers::new(path, root_agent, Arc::clone(&writer)),
            writer,
            lines: Arc::default(),
        })
    }
}

impl SqliteEngine {
    /// A database that ends with the process.
    pub(crate) fn in_memory(root_agent: AgentName) -> Self {
        let memory = Arc::<InMemory>::default();
        let writer = Arc::new(Writer::in_memory(Arc::clone(&memory)));
        Self {
            readers: Readers::in_memory(memory, root_agent, Arc::clone(&writer)),
            writer,
            lines: Arc::default(),
        }
    }

    /// Runs work on the thread that writes, or on one that reads.
    pub(crate) async fn run<A, T>(
        &self,
        mode: Mode,
        given: A,
        work: Work<A, T>,
    ) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        match mode {
            Mode::Read => {
                let read = move |connection: &mut Connection| now(connection, &given, work);
                self.readers.read_on(read).await
            }
            Mode::Snapshot => {
                let read = move |connection: &mut Connection| {
                    execute(connection, "BEGIN")?;
                    let result = now(connection, &given, work);
                    execute(connection, "COMMIT")?;
                    result
                };
                self.readers.read_on(read).await
            }
            Mode::Write | Mode::WriteTwice | Mode::WriteOne => {
                let change = move |connection: &mut Connection| now(connection, &given, work);
                self.writer.change_on(change).await
            }
        }
    }
}

/// Does work that never has to wait.
fn now<A, T>(connection: &mut Connection, given: &A, work: Work<A, T>) -> Result<T, Failure> {
    let done = work(&mut Tx::sqlite(connection), given).now_or_never();
    done.unwrap_or_else(|| Err(Failure::other("work on SQLite waits for something else")))
}

impl SessionStore for SqliteEngine {
    fn create(&self, session: NewSession) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            must_be_kept(&session)?;
            self.writer.submit(writer::Work::Create(session)).await
        })
    }

    fn open(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionHead, StoreError>> {
        let session = session.clone();
        Box::pin(
            self.readers
                .read(move |reader| look_back::head(reader, &session)),
        )
    }

    fn hold(
        &self,
        session: &SessionId,
        patience: Patience,
    ) -> BoxFuture<'_, Result<Hold, StoreError>> {
        let session = session.clone();
        Box::pin(async move {
            if self.writer.is_in_memory() {
                return hold::hold_here(&self.lines, &session, patience).await;
            }
            hold::hold(self.writer.path(), &self.lines, &session, patience).await
        })
    }

    fn append(&self, events: Batch) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.writer.submit(writer::Work::Append(events)))
    }

    fn read(
        &self,
        session: &SessionId,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        let session = session.clone();
        Box::pin(
            self.readers
                .read(move |reader| rows::events(reader, &session, page)),
        )
    }

    fn turn_events(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        let (session, turn) = (session.clone(), turn.clone());
        Box::pin(
            self.readers
                .read(move |reader| rows::turn_events(reader, &session, &turn)),
        )
    }

    fn grants(
        &self,
        session: &SessionId,
        folder: &str,
    ) -> BoxFuture<'_, Result<Vec<Grant>, StoreError>> {
        let (session, folder) = (session.clone(), folder.to_owned());
        Box::pin(
            self.readers
                .read(move |reader| approvals::grants(reader.connection, &session, &folder)),
        )
    }

    fn remote_thread(
        &self,
        session: &SessionId,
        agent: &AgentName,
    ) -> BoxFuture<'_, Result<Option<RemoteThread>, StoreError>> {
        let (session, agent) = (session.clone(), agent.clone());
        Box::pin(
            self.readers
                .read(move |reader| remote_threads::find(reader.connection, &session, &agent)),
        )
    }
}

impl SessionCatalog for SqliteEngine {
    fn list(
        &self,
        user: &UserId,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        let user = user.clone();
        Box::pin(
            self.readers
                .read(move |reader| rows::summaries(reader, &user, limit)),
        )
    }

    fn find(
        &self,
        user: &UserId,
        prefix: &str,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        let (user, prefix) = (user.clone(), prefix.to_owned());
        Box::pin(
            self.readers
                .read(move |reader| rows::summaries_with_prefix(reader, &user, &prefix, limit)),
        )
    }

    fn approvals(&self, user: &UserId) -> BoxFuture<'_, Result<Approvals, StoreError>> {
        let user = user.clone();
        Box::pin(
            self.readers
                .read(move |reader| approvals::all(reader.connection, &user)),
        )
    }

    fn count_waiting(&self, user: &UserId) -> BoxFuture<'_, Result<usize, StoreError>> {
        let user = user.clone();
        Box::pin(
            self.readers
                .read(move |reader| approvals::count_waiting(reader.connection, &user)),
        )
    }

    fn unfinished(
        &self,
        after: Option<&SessionId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<UnfinishedTurn>, StoreError>> {
        let after = after.map_or_else(String::new, ToString::to_string);
        Box::pin(
            self.readers
                .read(move |reader| rows::unfinished(reader, &after, limit)),
        )
    }

    fn revoke(&self, user: &UserId, grant: &ApprovalId) -> BoxFuture<'_, Result<(), StoreError>> {
        let (user, grant) = (user.clone(), grant.clone());
        Box::pin(
            self.writer
                .change(move |connection| approvals::revoke(connection, &user, &grant)),
        )
    }
}

impl SqliteEngine {
    pub(crate) fn open_now(&self) -> Result<(), StoreError> {
        self.writer.open()
    }

    /// Opens it for reading; one that is where nobody can write is read as it is.
    pub(crate) async fn readable(&self) -> Result<(), StoreError> {
        self.readers.read(|_| Ok(())).await
    }
}
