//! `lango sessions`: lists, searches, shows, renames, resumes and closes sessions, and runs the archive commands.

mod search;

use super::{archive, chat};
use crate::args::SessionsCommand;
use crate::exit::Exit;
use crate::screen::{self, Layout, Transcript, age, one_line};
use lango::app::Failure;
use lango::app::sessions::Sessions;
use lango::app::{App, Persistence};
use lango_core::text::sanitize;
use lango_core::{
    Clock, EventRange, Model, PermissionMode, SessionId, SessionQuery, StoreError, UnfinishedTurn,
};
use lango_engine::{SystemClock, TurnEnd, turn_updates};
use lango_models::OfflineModel;
use search::search;
use std::collections::HashMap;
use std::sync::Arc;

/// The longest title.
const MAX_TITLE_CHARS: usize = 200;

/// The maximum number of unfinished turns that are read to mark sessions in a list.
const MAX_UNFINISHED: usize = 1_000;

/// Runs the command.
pub(super) async fn sessions(
    config: Vec<String>,
    mode: PermissionMode,
    command: Option<SessionsCommand>,
) -> Result<Exit, Failure> {
    let command = command.unwrap_or_default();
    let mut app = match command {
        SessionsCommand::Resume { .. } => App::load_for(config, Persistence::Everything).await?,
        _ => App::load(config).await?,
    };
    app.mode.set(mode);
    let sessions = app.sessions_for_reading().await?;
    match command {
        SessionsCommand::Export(arguments) => archive::export(&app, arguments).await?,
        SessionsCommand::Import(arguments) => archive::import(&app, arguments).await?,
        SessionsCommand::Verify(arguments) => return archive::verify(&app, arguments).await,
        SessionsCommand::Delete(arguments) => archive::delete(&app, arguments).await?,
        SessionsCommand::List { json, limit } => list(&app, &sessions, json, limit).await?,
        SessionsCommand::Show { id, jsonl } => {
            let id = app.find_session(&sessions, &id).await?;
            show(&sessions, &id, jsonl).await?;
        }
        SessionsCommand::Search { text, json, limit } => {
            search(&app, &sessions, &text.join(" "), json, limit).await?;
        }
        SessionsCommand::Rename { id, title } => {
            let id = app.find_session(&sessions, &id).await?;
            rename(&app, &sessions, &id, &title.join(" ")).await?;
        }
        SessionsCommand::Close { id } => {
            let id = app.find_session(&sessions, &id).await?;
            close(&app, &sessions, &id).await?;
        }
        SessionsCommand::Resume { id, .. } => {
            let id = app.find_session(&sessions, &id).await?;
            return chat::resume(&mut app, sessions, id).await;
        }
    }
    Ok(Exit::Ok)
}

/// Changes the title of a session, of this user or of the server's callers.
async fn rename(
    app: &App,
    sessions: &Sessions,
    id: &SessionId,
    title: &str,
) -> Result<(), Failure> {
    let title = one_line(title, MAX_TITLE_CHARS);
    if title.is_empty() {
        return Err(Failure::usage("the title is empty")
            .next(format!("lango sessions rename {id} \"a title\"")));
    }
    for user in app.users() {
        match sessions.catalog.rename(&user, id, &title).await {
            Ok(()) => return Ok(screen::print(&format!("{id} is now titled: {title}"))?),
            Err(StoreError::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(StoreError::NotFound { id: id.clone() }.into())
}

/// Closes the last turn of a session. No model is needed for that.
async fn close(app: &App, sessions: &Sessions, id: &SessionId) -> Result<(), Failure> {
    let model: Arc<dyn Model> = Arc::new(OfflineModel);
    let mut conversation = app.runner(sessions, &model)?.open(id.clone()).await?;
    let (events, _) = turn_updates();
    let text = match conversation.close(&events).await? {
        Some(TurnEnd::Finished(report)) => report
            .answer
            .map_or_else(|| "closed".to_owned(), |answer| answer.to_string()),
        _ => "its last turn has ended; there is nothing to close".to_owned(),
    };
    Ok(screen::print(&sanitize(&text))?)
}

/// Returns the sessions whose last turn has no outcome, and whether each waits for the user.
async fn unfinished(sessions: &Sessions) -> Result<HashMap<SessionId, bool>, Failure> {
    let turns = sessions.catalog.unfinished(None, MAX_UNFINISHED).await?;
    let turn = |turn: UnfinishedTurn| (turn.session, turn.is_waiting);
    Ok(turns.into_iter().map(turn).collect())
}

pub(super) async fn list(
    app: &App,
    sessions: &Sessions,
    as_json: bool,
    limit: usize,
) -> Result<(), Failure> {
    let summaries = sessions
        .catalog
        .list(&app.user(), SessionQuery::recent(limit.saturating_add(1)))
        .await?;
    let shown = &summaries[..summaries.len().min(limit)];
    if as_json {
        return Ok(screen::print(&screen::json(&shown, Layout::Indented)?)?);
    }
    if summaries.is_empty() {
        return Ok(screen::print("no sessions yet; `lango` starts one")?);
    }
    let now = SystemClock.now();
    let unfinished = unfinished(sessions).await?;
    for summary in shown {
        let open = match unfinished.get(&summary.id) {
            Some(true) => "  (waits for an answer)",
            Some(false) => "  (not finished)",
            None => "",
        };
        let age = age(summary.updated, now);
        let turns = screen::count(summary.turns, "turn");
        screen::print(&format!(
            "{:<16}{age:>10}  {turns:>9}  {}{open}",
            summary.id,
            sanitize(&summary.title)
        ))?;
    }
    if summaries.len() > limit {
        screen::say("there are more: lango sessions list --limit NUMBER");
    }
    Ok(())
}

async fn show(sessions: &Sessions, id: &SessionId, jsonl: bool) -> Result<(), Failure> {
    show_events(sessions, id, jsonl).await?;
    if sessions.store.read_head(id).await?.unfinished.is_some() {
        screen::say(&format!(
            "its last turn has not ended: it is running, waits for an answer (`lango approvals`), or was interrupted\n  \
             next: lango sessions resume {id}, or abandon it: lango sessions close {id}"
        ));
    }
    Ok(())
}

async fn show_events(sessions: &Sessions, id: &SessionId, jsonl: bool) -> Result<(), Failure> {
    const PAGE: usize = 500;
    let mut transcript = Transcript::new();
    let mut from = 1;
    loop {
        let events = sessions
            .store
            .read(id, EventRange { from, limit: PAGE })
            .await?;
        for event in &events {
            if jsonl {
                screen::print(&screen::json(event, Layout::Line)?)?;
            } else {
                for line in transcript.lines(event) {
                    screen::print_quoted(&line)?;
                }
            }
        }
        match events.last() {
            Some(last) if events.len() == PAGE => from = last.seq + 1,
            _ => return Ok(()),
        }
    }
}
