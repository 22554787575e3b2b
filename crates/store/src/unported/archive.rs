//! Dispatch to the two implementations of `archive` that there still are.

use crate::archive::{Archive, Expired, Intake, LogRow, Removing, SessionRecord, Wiped};
use crate::attachments;
use crate::engine::Engine;
use crate::postgres::PostgresEngine;
use crate::sqlite::SqliteEngine;
use crate::store::Store;
use lango_core::*;
use std::sync::Arc;

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
        let removed = match &self.engine {
            Engine::Sqlite(engine) => Removing::remove_some(engine.as_ref(), session),
            Engine::Postgres(engine) => Removing::remove_some(engine.as_ref(), session),
        };
        Box::pin(async move {
            let is_removed = removed.await?;
            if is_removed {
                attachments::delete_expired(&self.engine).await?;
            }
            Ok(is_removed)
        })
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
        Box::pin(async move {
            while attachments::delete_expired(&self.engine).await? > 0 {}
            match &self.engine {
                Engine::Sqlite(engine) => Removing::wipe(engine.as_ref()).await,
                Engine::Postgres(engine) => Removing::wipe(engine.as_ref()).await,
            }
        })
    }
}

/// What the bounds of [`Archive`] ask for until it has moved; [`Store`] has attachments for both.
macro_rules! no_attachments {
    ($engine:ty) => {
        impl AttachmentStore for $engine {
            fn put<'a>(
                &'a self,
                _: &'a UserId,
                _: Arc<[u8]>,
            ) -> BoxFuture<'a, Result<Text, StoreError>> {
                Box::pin(std::future::ready(Err(StoreError::Failed {
                    detail: "attachments are in the store".to_owned(),
                })))
            }

            fn read<'a>(
                &'a self,
                _: &'a UserId,
                _: &'a str,
            ) -> BoxFuture<'a, Result<Option<Arc<[u8]>>, StoreError>> {
                Box::pin(std::future::ready(Err(StoreError::Failed {
                    detail: "attachments are in the store".to_owned(),
                })))
            }
        }
    };
}
no_attachments!(SqliteEngine);
no_attachments!(PostgresEngine);
