//! Deleting sessions for good: asked for once, refused where a turn runs, and nothing left of them afterwards.

use super::found;
use crate::app::App;
use crate::args::DeleteArguments;
use crate::commands::retention::{self, Gone};
use crate::exit::{Exit, Failure};
use crate::screen::{self, Ticker, count, one_line};
use lango_core::{BusyPolicy, Clock, SessionId, SessionStore, StoreError, Timestamp};
use lango_engine::SystemClock;
use lango_store::Store;
use lango_store::archive::{ExpiredPage, WipeOutcome, remove_hidden};
use std::io::{BufRead, IsTerminal, Write};
use std::time::Duration;

/// How many sessions are named when it is asked whether to delete them.
const NAMED: usize = 10;

/// Runs the command.
pub async fn delete(app: &App, arguments: DeleteArguments) -> Result<(), Failure> {
    let store = app.existing_store()?;
    let age = match (arguments.older_than, arguments.expired) {
        (Some(age), _) => Some(age.0),
        (None, true) => Some(ttl(app)?),
        (None, false) => None,
    };
    let gone = match age {
        Some(age) => {
            let before = before(age);
            if !arguments.yes {
                ask_for_old(app, &store, before).await?;
            }
            let gone = retention::expire(&store, &app.users(), before).await?;
            if gone.busy > 0 {
                let busy = count(gone.busy, "session");
                screen::say(&format!("{busy} left, in which a turn runs"));
            }
            gone
        }
        None => {
            let ids = found(app, &arguments.ids).await?;
            if !arguments.yes {
                ask_for(&store, &ids, ids.len()).await?;
            }
            let sessions = named(&store, &ids).await?;
            Gone {
                sessions,
                ..Gone::default()
            }
        }
    };
    if gone.sessions + gone.tasks == 0 {
        return Ok(screen::print("nothing is that old")?);
    }
    let left = match store.wipe_deleted().await? {
        WipeOutcome::Clean => "nothing of it is left in the database's file",
        WipeOutcome::InUse => {
            "bytes of it may be left, because somebody is at work in the database; `lango store compact` wipes them later"
        }
        WipeOutcome::LeftToServer => "the database's server takes the space back by itself",
    };
    Ok(screen::print(&format!("deleted {gone}; {left}"))?)
}

fn ttl(app: &App) -> Result<Duration, Failure> {
    let ttl = app.loaded.settings.session.ttl;
    ttl.ok_or_else(|| {
        Failure::new(
            Exit::Usage,
            "session.ttl is not set, so nothing is ever too old",
        )
        .next("lango sessions delete --older-than 30d, or set session.ttl")
    })
}

/// The moment that this long ago was.
fn before(age: Duration) -> Timestamp {
    let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    Timestamp(SystemClock.now().0.saturating_sub(age))
}

/// Deletes these sessions, after acquiring the leases of all of them.
async fn named(store: &Store, ids: &[SessionId]) -> Result<u64, Failure> {
    let mut leases = Vec::with_capacity(ids.len());
    for id in ids {
        leases.push(store.acquire(id, BusyPolicy::Refuse).await?);
    }
    let mut ticker = Ticker::new();
    for (done, (id, lease)) in ids.iter().zip(&leases).enumerate() {
        // The sessions before took their time.
        if !lease.is_valid() {
            return Err(StoreError::Lost { id: id.clone() }.into());
        }
        if !store.hide_session(id, None).await? {
            return Err(StoreError::NotFound { id: id.clone() }.into());
        }
        remove_hidden(store, id).await?;
        ticker.show(|| format!("{} of {} deleted", done + 1, ids.len()));
    }
    ticker.clear();
    Ok(ids.len() as u64)
}

async fn ask_for_old(app: &App, store: &Store, before: Timestamp) -> Result<(), Failure> {
    let mut first = Vec::new();
    for user in app.users() {
        let page = ExpiredPage {
            skip: 0,
            limit: NAMED + 1,
        };
        first.extend(store.expired_sessions(&user, before, page).await?);
    }
    let more = first.len() > NAMED;
    first.truncate(NAMED);
    let shown = first.len() + usize::from(more);
    ask_for(store, &first, shown).await
}

/// Asks whether these, and as many more, are to be gone for good.
async fn ask_for(store: &Store, ids: &[SessionId], total: usize) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let message = "deleting is for good, and there is no terminal to ask on";
        return Err(Failure::new(Exit::Usage, message).next("--yes deletes without asking"));
    }
    for id in ids.iter().take(NAMED) {
        let record = store.session_record(id).await?;
        let title = one_line(&record.title, 60);
        screen::say(&format!("{:<24}  {title}", one_line(id.as_str(), 60)));
    }
    if total > NAMED || total > ids.len() {
        screen::say("… and more");
    }
    let mut out = std::io::stderr();
    let _ = write!(out, "delete for good? [y/N] ");
    let _ = out.flush();
    let answer = tokio::task::spawn_blocking(|| {
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        read.map(|_| answer)
    });
    let answer = answer.await.map_err(std::io::Error::other)??;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::new(Exit::Interrupted, "nothing was deleted")
            .next("--yes deletes without asking")),
    }
}
