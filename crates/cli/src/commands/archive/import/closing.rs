//! A turn that was not at its end when its session was exported. It may go on where it comes from; here it is closed, so that
//! nothing runs, and nothing is asked for, because a file says so.

use crate::app::App;
use crate::exit::Failure;
use lango_core::{Clock, Page, SessionId, SessionStore};
use lango_engine::{Input, LookBack, Rules, SystemClock, Turn, TurnStart};
use std::sync::Arc;

/// Closes the last turn of a session that is held, if it has no outcome. Tells whether it had to.
pub(super) async fn close(app: &App, session: &SessionId) -> Result<bool, Failure> {
    let store = &app.kept.database;
    let head = store.open(session).await?;
    let Some(first_seq) = head.unfinished else {
        return Ok(false);
    };
    let page = Page {
        from: first_seq,
        limit: usize::try_from(head.next_seq - first_seq).unwrap_or(usize::MAX),
    };
    let events = SessionStore::read(&**store, session, page).await?;
    let Some(first) = events.first() else {
        return Ok(false);
    };
    let start = TurnStart {
        session: session.clone(),
        turn: first.turn.clone(),
        first_seq,
        history: Arc::new(LookBack::default()),
        rules: Arc::new(Rules::default()),
    };
    let mut turn = Turn::replay(Arc::clone(&app.tree), start, &events);
    let closing = turn.accept(Input::Interrupted, SystemClock.now());
    store.append(closing.into()).await?;
    Ok(true)
}
