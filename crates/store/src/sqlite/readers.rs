//! The pool of read-only connections: at most two, opened on demand and used on the runtime's blocking threads.

use super::connection::{open_immutable, open_reader};
use super::error::BackendError;
use super::writer::Writer;
use crate::backend::Result;
use crate::decode::failed;
use lango_core::StoreError;
use rusqlite::Connection;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

const READERS: usize = 2;

pub(super) struct Readers {
    /// The writer, which opens and migrates the database before a reader uses it.
    writer: Arc<Writer>,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(writer: Arc<Writer>) -> Arc<Self> {
        Arc::new(Self {
            writer,
            permits: Arc::new(Semaphore::new(READERS)),
            idle: Mutex::default(),
        })
    }

    /// Reads on the caller's thread if a connection is idle, otherwise on a blocking thread as [`read`](Self::read) does.
    pub(super) async fn look_up<T, F>(self: &Arc<Self>, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    {
        if let Ok(_permit) = self.permits.try_acquire()
            && !self.idle().is_empty()
        {
            return self.read_now(work);
        }
        self.read(work).await
    }

    pub(super) async fn read<T, F>(self: &Arc<Self>, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    {
        let stopped = |detail: String| failed(format!("a reader has stopped: {detail}"));
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|error| stopped(error.to_string()))?;
        let readers = Arc::clone(self);
        let reading = tokio::task::spawn_blocking(move || {
            let result = readers.read_now(work);
            drop(permit);
            result
        });
        reading.await.map_err(|error| stopped(error.to_string()))?
    }

    fn read_now<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T>,
    ) -> Result<T, StoreError> {
        let path = &self.writer.path;
        if let Err(refusal) = self.writer.open() {
            // This connection is not reused: it would not see changes once the file becomes writable.
            let mut connection = open_immutable(path, refusal)?;
            return work(&mut connection).map_err(|failure| failure.about(path));
        }
        let idle = self.idle().pop();
        let connection = idle.map_or_else(|| open_reader(path), Ok);
        let result = connection
            .map_err(BackendError::from)
            .and_then(|mut connection| {
                let result = work(&mut connection);
                self.idle().push(connection);
                result
            });
        result.map_err(|failure| failure.about(path))
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
