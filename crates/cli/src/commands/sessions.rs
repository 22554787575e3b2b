//! `lango sessions`: what was said, by whom, and how to go on.

use super::{archive, chat};
use crate::app::{App, Keeping};
use crate::args::SessionsCommand;
use crate::exit::{Exit, Failure};
use crate::markdown::sanitize;
use crate::screen::{self, Layout, Transcript, age};
use crate::sessions::Sessions;
use lango_core::{Clock, Page, SessionId};
use lango_engine::SystemClock;

/// Runs the command.
pub async fn sessions(config: Vec<String>, command: SessionsCommand) -> Result<Exit, Failure> {
    let mut app = match command {
        SessionsCommand::Resume { .. } => App::load_for(config, Keeping::Everything).await?,
        _ => App::load(config).await?,
    };
    let sessions = app.past_sessions().await?;
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
        SessionsCommand::Resume { id } => {
            let id = app.find_session(&sessions, &id).await?;
            return chat::resume(&mut app, &sessions, id).await;
        }
    }
    Ok(Exit::Ok)
}

async fn list(app: &App, sessions: &Sessions, as_json: bool, limit: usize) -> Result<(), Failure> {
    let summaries = sessions
        .catalog
        .list(&app.user(), limit.saturating_add(1))
        .await?;
    let shown = &summaries[..summaries.len().min(limit)];
    if as_json {
        return Ok(screen::print(&screen::json(&shown, Layout::Indented)?)?);
    }
    if summaries.is_empty() {
        return Ok(screen::print("no sessions yet; `lango` starts one")?);
    }
    let now = SystemClock.now();
    for summary in shown {
        let age = age(summary.updated, now);
        let turns = screen::count(summary.turns, "turn");
        screen::print(&format!(
            "{:<16}{age:>10}  {turns:>9}  {}",
            summary.id,
            sanitize(&summary.title)
        ))?;
    }
    if summaries.len() > limit {
        screen::say("there are more; --limit shows them");
    }
    Ok(())
}

async fn show(sessions: &Sessions, id: &SessionId, jsonl: bool) -> Result<(), Failure> {
    const AT_ONCE: usize = 500;
    let mut transcript = Transcript::new();
    let mut from = 1;
    loop {
        let events = sessions
            .store
            .read(
                id,
                Page {
                    from,
                    limit: AT_ONCE,
                },
            )
            .await?;
        for event in &events {
            if jsonl {
                screen::print(&screen::json(event, Layout::Line)?)?;
            } else {
                for line in transcript.lines(event) {
                    screen::print(&line)?;
                }
            }
        }
        match events.last() {
            Some(last) if events.len() == AT_ONCE => from = last.seq + 1,
            _ => return Ok(()),
        }
    }
}
