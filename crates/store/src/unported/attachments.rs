//! Dispatch to the two implementations of `attachments` that there still are.

use crate::engine::Engine;
use crate::store::Store;
use lango_core::*;
use std::sync::Arc;

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
