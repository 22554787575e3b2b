//! Deletes sessions permanently: asks once, refuses if a turn is running, and wipes their data from the file.

use crate::args::DeleteArguments;
use crate::commands::confirm::{confirm, has_terminal};
use crate::screen::{self, Ticker, count, one_line};
use lango::app::archive::{delete_sessions, find_sessions, time_before, ttl};
use lango::app::retention::{self, DeletedCounts};
use lango::app::{App, Failure};
use lango_core::{SessionId, Timestamp};
use lango_store::Store;
use lango_store::archive::{ExpiredPage, WipeOutcome};

/// How many sessions the confirmation lists by name.
const MAX_NAMED: usize = 10;

/// Runs the command.
pub(crate) async fn delete(app: &App, arguments: DeleteArguments) -> Result<(), Failure> {
    let store = app.existing_store()?;
    let age = match (arguments.older_than, arguments.expired) {
        (Some(age), _) => Some(age.0),
        (None, true) => Some(ttl(app)?),
        (None, false) => None,
    };
    let deleted = match age {
        Some(age) => {
            let before = time_before(age);
            if !arguments.yes && !confirm_expired(app, &store, before).await? {
                return Ok(());
            }
            let deleted = retention::expire(&store, &app.undo, &app.users(), before).await?;
            if deleted.busy > 0 {
                let busy = count(deleted.busy, "session");
                screen::say(&format!("{busy} not deleted, because a turn is running"));
            }
            deleted
        }
        None => {
            let ids = find_sessions(app, &arguments.ids).await?;
            if !arguments.yes && !confirm_sessions(&store, &ids, ids.len()).await? {
                return Ok(());
            }
            let mut ticker = Ticker::new();
            let mut show = |done| ticker.show(|| format!("{done} of {} deleted", ids.len()));
            let sessions = delete_sessions(&store, &app.undo, &ids, &mut show).await?;
            ticker.clear();
            DeletedCounts {
                sessions,
                ..DeletedCounts::default()
            }
        }
    };
    if deleted.sessions + deleted.tasks == 0 {
        return Ok(screen::print("no session or task is that old")?);
    }
    let left = match store.wipe_deleted().await? {
        WipeOutcome::Clean => "no data of it is left in the database file",
        WipeOutcome::InUse => {
            "some bytes may be left, because another process is using the database; run `lango store compact` later to wipe them"
        }
        WipeOutcome::LeftToServer => "the database server reclaims the space automatically",
    };
    Ok(screen::print(&format!("deleted {deleted}; {left}"))?)
}

async fn confirm_expired(app: &App, store: &Store, before: Timestamp) -> Result<bool, Failure> {
    let mut first = Vec::new();
    for user in app.users() {
        let page = ExpiredPage {
            skip: 0,
            limit: MAX_NAMED + 1,
        };
        first.extend(store.expired_sessions(&user, before, page).await?);
    }
    let more = first.len() > MAX_NAMED;
    first.truncate(MAX_NAMED);
    let shown = first.len() + usize::from(more);
    confirm_sessions(store, &first, shown).await
}

/// Asks whether to delete these sessions, and possibly more, permanently. Prints a note if the answer is no.
async fn confirm_sessions(store: &Store, ids: &[SessionId], total: usize) -> Result<bool, Failure> {
    if !has_terminal() {
        let message = "deleting is permanent, and there is no terminal to ask for confirmation";
        return Err(Failure::usage(message).next("use --yes to delete without asking"));
    }
    for id in ids.iter().take(MAX_NAMED) {
        let record = store.session_record(id).await?;
        let title = one_line(&record.title, 60);
        screen::say(&format!("{:<24}  {title}", one_line(id.as_str(), 60)));
    }
    if total > MAX_NAMED || total > ids.len() {
        screen::say("… and more");
    }
    let is_confirmed = confirm("delete permanently?").await?;
    if !is_confirmed {
        screen::say("nothing was deleted");
    }
    Ok(is_confirmed)
}
