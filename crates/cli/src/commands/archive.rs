//! `lango sessions export`, `import`, `verify` and `delete`: what was said, kept elsewhere, checked, and gone for good.

mod delete;
mod export;
mod import;

use crate::app::App;
use crate::args::{VerifyArguments, WhichSessions};
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
    /// The store for something that must be there already.
    pub(crate) fn existing_store(&self) -> Result<Arc<Store>, Failure> {
        match &self.loaded.settings.session.store {
            StoreLocation::Sqlite(path) if matches!(path.try_exists(), Ok(false)) => {
                let message = format!("nothing is stored yet: there is no `{}`", path.display());
                Err(Failure::new(Exit::Usage, message)
                    .next("`lango config show --origin` tells where session.store is set"))
            }
            _ => Ok(Arc::clone(&self.kept.database)),
        }
    }
}

/// Checks logs; says of each how many events it has, or where it is damaged.
pub async fn verify(app: &App, arguments: VerifyArguments) -> Result<Exit, Failure> {
    let store = app.existing_store()?;
    let mut ids = Ids::of(app, &arguments.which).await?;
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
            // The id that is shown for one whose bytes are not text is nobody's.
            Err(StoreError::NotFound { .. }) if id.as_str().contains('\u{fffd}') => {
                damaged += 1;
                let id = one_line(id.as_str(), 100);
                screen::print(&format!("damaged: session `{id}`: its id is not text"))?;
            }
            Err(error @ StoreError::Damaged { .. }) => {
                damaged += 1;
                screen::print(&format!("damaged: {}", one_line(&error.to_string(), 500)))?;
            }
            // One of all that was deleted meanwhile.
            Err(StoreError::NotFound { .. }) if arguments.which.all => {}
            Err(error) => return Err(error.into()),
        }
    }
    let sessions = count(whole + damaged, "session");
    if damaged == 0 {
        screen::say(&format!(
            "{sessions} checked: gap-free, with authors, and as they were written"
        ));
        return Ok(Exit::Ok);
    }
    screen::say(&format!(
        "{sessions} checked, {damaged} damaged\n  next: take them from a backup; `lango sessions export ID` gives those that are whole"
    ));
    Ok(Exit::Failed)
}

/// The sessions that are meant, a page at a time.
struct Ids {
    /// Whose sessions are still to come.
    users: Vec<UserId>,
    /// The last one of the first user that was given.
    after: Option<SessionId>,
    page: std::vec::IntoIter<SessionId>,
}

/// How many ids are read at once.
const PAGE: usize = 500;

impl Ids {
    async fn of(app: &App, which: &WhichSessions) -> Result<Self, Failure> {
        let mut ids = Self {
            users: Vec::new(),
            after: None,
            page: Vec::new().into_iter(),
        };
        if which.all {
            ids.users = app.users();
        } else {
            ids.page = found(app, &which.ids).await?.into_iter();
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

/// The sessions whose ids begin like these, each once.
async fn found(app: &App, prefixes: &[String]) -> Result<Vec<SessionId>, Failure> {
    let sessions = app.past_sessions().await?;
    let mut ids: Vec<SessionId> = Vec::new();
    for prefix in prefixes {
        let id = app.find_session(&sessions, prefix).await?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}
