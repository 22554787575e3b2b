//! Sessions as files: which ones to select, how they are exported, and how they are imported again.

mod delete;
mod export;
mod import;
mod output;

use crate::app::App;
use crate::app::failure::Failure;
pub use delete::{delete_sessions, time_before, ttl};
pub use export::{ExportError, LineSink, send_export, write_session};
pub use import::{ImportProgress, import};
use lango_config::StoreLocation;
use lango_core::{SessionId, StoreError, UserId};
use lango_store::Store;
pub use output::{PartFile, check_line};
use std::sync::Arc;

impl App {
    /// Returns the store for commands that need an existing database.
    pub fn existing_store(&self) -> Result<Arc<Store>, Failure> {
        match &self.loaded.settings.session.store {
            StoreLocation::Sqlite(path) if matches!(path.try_exists(), Ok(false)) => {
                let message = format!("nothing is stored yet: there is no `{}`", path.display());
                Err(Failure::usage(message)
                    .next("run `lango config show --origin` to see where session.store is set"))
            }
            _ => Ok(Arc::clone(&self.storage.database)),
        }
    }
}

/// The selected sessions, read page by page.
pub struct SessionIds {
    /// The users whose sessions have not all been read.
    users: Vec<UserId>,
    /// The last id returned for the first of these users.
    after: Option<SessionId>,
    page: std::vec::IntoIter<SessionId>,
}

/// How many ids to read per page.
const PAGE: usize = 500;

impl SessionIds {
    /// Selects all sessions of this configuration's users, or those whose ids start with one of `prefixes`.
    pub async fn select(app: &App, all: bool, prefixes: &[String]) -> Result<Self, Failure> {
        let mut ids = Self {
            users: Vec::new(),
            after: None,
            page: Vec::new().into_iter(),
        };
        if all {
            ids.users = app.users();
        } else {
            ids.page = find_sessions(app, prefixes).await?.into_iter();
        }
        Ok(ids)
    }

    /// Returns the next id.
    pub async fn next(&mut self, store: &Store) -> Result<Option<SessionId>, StoreError> {
        loop {
            if let Some(id) = self.page.next() {
                self.after = Some(id.clone());
                return Ok(Some(id));
            }
            let Some(user) = self.users.first() else {
                return Ok(None);
            };
            let page = store.session_ids(user, self.after.as_ref(), PAGE).await?;
            if page.is_empty() {
                self.users.remove(0);
                self.after = None;
            }
            self.page = page.into_iter();
        }
    }
}

/// Finds the sessions whose ids start with these prefixes, each once.
pub async fn find_sessions(app: &App, prefixes: &[String]) -> Result<Vec<SessionId>, Failure> {
    let sessions = app.sessions_for_reading().await?;
    let mut ids: Vec<SessionId> = Vec::new();
    for prefix in prefixes {
        let id = app.find_session(&sessions, prefix).await?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}
