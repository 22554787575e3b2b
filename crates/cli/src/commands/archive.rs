//! `lango sessions export`, `import`, `verify` and `delete`.

mod delete;
mod export;
mod import;

use crate::app::App;
use crate::args::{SessionSelection, VerifyArguments};
use crate::config::StoreLocation;
use crate::exit::{Exit, Failure};
use crate::screen::{self, Ticker, count, one_line};
pub use delete::delete;
pub use export::{export, send as send_export};
pub use import::import;
use lango_core::{SessionId, StoreError, UserId};
use lango_store::Store;
use lango_store::archive::{LogContents, verify_record};
use std::sync::Arc;

impl App {
    /// Returns the store for commands that need an existing database.
    pub(crate) fn existing_store(&self) -> Result<Arc<Store>, Failure> {
        match &self.loaded.settings.session.store {
            StoreLocation::Sqlite(path) if matches!(path.try_exists(), Ok(false)) => {
                let message = format!("nothing is stored yet: there is no `{}`", path.display());
                Err(Failure::new(Exit::Usage, message)
                    .next("run `lango config show --origin` to see where session.store is set"))
            }
            _ => Ok(Arc::clone(&self.storage.database)),
        }
    }
}

/// Verifies logs; prints for each how many events it has, or where it is damaged.
pub async fn verify(app: &App, arguments: VerifyArguments) -> Result<Exit, Failure> {
    let store = app.existing_store()?;
    let mut ids = SessionIds::of(app, &arguments.selection).await?;
    let mut ticker = Ticker::new();
    let (mut whole, mut damaged) = (0, 0);
    while let Some(id) = ids.next(&store).await? {
        let mut seen = |events| {
            let done = format!("{} checked, {id}: event {events}", count(whole, "session"));
            ticker.show(|| done);
        };
        let verified = match store.session_record(&id).await {
            Ok(record) => verify_record(&store, &record, &mut seen).await,
            Err(error) => Err(error),
        };
        ticker.clear();
        match verified {
            Ok(LogContents { events, .. }) => {
                whole += 1;
                let events = count(events, "event");
                screen::print(&format!("{:<24}  {events}", one_line(id.as_str(), 100)))?;
            }
            // An id that is not valid text is listed with replacement characters, which no session has.
            Err(StoreError::NotFound { .. }) if id.as_str().contains('\u{fffd}') => {
                damaged += 1;
                let id = one_line(id.as_str(), 100);
                screen::print(&format!("damaged: session `{id}`: its id is not text"))?;
            }
            Err(error @ StoreError::Damaged { .. }) => {
                damaged += 1;
                screen::print(&format!("damaged: {}", one_line(&error.to_string(), 500)))?;
            }
            // With `--all`, a session may have been deleted meanwhile.
            Err(StoreError::NotFound { .. }) if arguments.selection.all => {}
            Err(error) => return Err(error.into()),
        }
    }
    let sessions = count(whole + damaged, "session");
    if damaged == 0 {
        screen::say(&format!(
            "{sessions} checked: no gaps, every author known, every hash correct"
        ));
        return Ok(Exit::Ok);
    }
    screen::say(&format!(
        "{sessions} checked, {damaged} damaged\n  next: restore them from a backup; `lango sessions export ID` exports the undamaged ones"
    ));
    Ok(Exit::Failed)
}

/// The selected sessions, read page by page.
struct SessionIds {
    /// The users whose sessions have not all been read.
    users: Vec<UserId>,
    /// The last id returned for the first of these users.
    after: Option<SessionId>,
    page: std::vec::IntoIter<SessionId>,
}

/// How many ids to read per page.
const PAGE: usize = 500;

impl SessionIds {
    async fn of(app: &App, selection: &SessionSelection) -> Result<Self, Failure> {
        let mut ids = Self {
            users: Vec::new(),
            after: None,
            page: Vec::new().into_iter(),
        };
        if selection.all {
            ids.users = app.users();
        } else {
            ids.page = find_sessions(app, &selection.ids).await?.into_iter();
        }
        Ok(ids)
    }

    async fn next(&mut self, store: &Store) -> Result<Option<SessionId>, StoreError> {
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
async fn find_sessions(app: &App, prefixes: &[String]) -> Result<Vec<SessionId>, Failure> {
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
