//! The connections that read, beside the writer.
//!
//! There are at most two, opened when they are first needed, and used on the runtime's threads for blocking work. A
//! third reader waits for one of them.

use super::connection::open_reader;
use super::failure::Failure;
use super::in_memory::InMemory;
use super::read_only;
use super::writer::Writer;
use lango_core::StoreError;
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// How many connections read at once.
const READERS: usize = 2;

/// The connections and what every reader has to know.
pub(super) struct Readers {
    path: PathBuf,
    /// Opens the database first, and brings its schema up to date.
    writer: Arc<Writer>,
    /// The database, if it is in memory.
    memory: Option<Arc<InMemory>>,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    /// No connection yet.
    pub(super) fn new(path: PathBuf, writer: Arc<Writer>) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(READERS));
        Arc::new(Self {
            path,
            writer,
            memory: None,
            permits,
            idle: Mutex::default(),
        })
    }

    /// Reads on the only connection there is.
    pub(super) fn in_memory(memory: Arc<InMemory>, writer: Arc<Writer>) -> Arc<Self> {
        Arc::new(Self {
            path: writer.path().to_owned(),
            writer,
            memory: Some(memory),
            permits: Arc::new(Semaphore::new(1)),
            idle: Mutex::default(),
        })
    }

    /// Looks something up on a free connection.
    pub(super) async fn read<T, F>(self: &Arc<Self>, look: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    {
        if let Some(memory) = &self.memory {
            return memory.with(look);
        }
        let stopped = |detail: String| StoreError::Failed {
            detail: format!("a reader has stopped: {detail}"),
        };
        let permit = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .map_err(|error| stopped(error.to_string()))?;
        let readers = Arc::clone(self);
        let reading = tokio::task::spawn_blocking(move || {
            let result = readers.look(look);
            drop(permit);
            result
        });
        reading.await.map_err(|error| stopped(error.to_string()))?
    }

    fn look<T>(
        &self,
        look: impl FnOnce(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        if let Err(refusal) = self.writer.open() {
            // Never kept: once the place can be written again, it would show what was.
            let mut connection = read_only::open_instead(&self.path, refusal)?;
            return look(&mut connection).map_err(|failure| failure.about(&self.path));
        }
        let idle = self.idle().pop();
        let result = idle
            .map_or_else(|| open_reader(&self.path), Ok)
            .map_err(Failure::from)
            .and_then(|mut connection| {
                let result = look(&mut connection);
                self.idle().push(connection);
                result
            });
        result.map_err(|failure| failure.about(&self.path))
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
