//! Closes a turn that was unfinished when its session was exported. The turn may continue where it was exported. Here
//! an imported file must not cause anything to run, or an approval to be requested.

use crate::app::App;
use crate::app::failure::Failure;
use lango_core::{Clock, EventRange, SessionId, SessionStore};
use lango_engine::{ApprovalRules, History, ModeSwitch, SystemClock, Turn, TurnInput, TurnStart};
use std::sync::Arc;

/// Closes the last turn of a session if it has no outcome; returns whether it did. The caller holds the session's
/// lease.
pub(super) async fn close(app: &App, session: &SessionId) -> Result<bool, Failure> {
    let store = &app.storage.database;
    let head = store.read_head(session).await?;
    let Some(first_seq) = head.unfinished else {
        return Ok(false);
    };
    let page = EventRange {
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
        history: Arc::new(History::default()),
        rules: Arc::new(ApprovalRules::default()),
        mode: ModeSwitch::default(),
    };
    let mut turn = Turn::replay(Arc::clone(&app.tree), start, &events);
    let closing = turn.accept(TurnInput::Interrupted, SystemClock.now());
    store.append(closing.into()).await?;
    Ok(true)
}
