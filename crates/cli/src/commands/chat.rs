//! `lango`: a chat in the scrollback. Ctrl-C stops the turn, not the program; Ctrl-D leaves, and so does a signal that ends
//! the process.

mod line;
mod turn;

use super::watch::Place;
use crate::app::{App, Keeping};
use crate::exit::{Exit, Failure};
use crate::screen;
use crate::sessions::{Sessions, open_session};
use crate::signals::{StopSignal, StopSignals};
use lango_core::{Model, SessionId, UserInput};
use lango_engine::{Conversation, Mode, RunnerError, Skipped};
use lango_models::Offline;
use line::{Line, LineInput};
use std::sync::Arc;

/// Opens a chat in a new session.
pub async fn chat(config: Vec<String>) -> Result<Exit, Failure> {
    let mut signals = StopSignals::listen()?;
    let load = App::load_for(config, Keeping::Everything);
    let mut app = signals.guard(load).await?;
    let result = chat_in(&mut app, &mut signals).await;
    // Also after a failure: what servers left behind has to be reported.
    app.close().await;
    result
}

async fn chat_in(app: &mut App, signals: &mut StopSignals) -> Result<Exit, Failure> {
    signals.guard(app.connect()).await?;
    let sessions = app.sessions().await?;
    app.held.remember();
    let choice = signals.guard(app.choose_model()).await?;
    choice.warn();
    let model = choice.model;
    let conversation = app.runner(&sessions, &model)?.start(app.user());
    talk(app, &sessions, conversation, &model, signals).await
}

/// Opens a chat in an existing session.
pub async fn resume(
    app: &mut App,
    sessions: &Sessions,
    session: SessionId,
) -> Result<Exit, Failure> {
    let mut signals = StopSignals::listen()?;
    let result = resume_in(app, sessions, session, &mut signals).await;
    app.close().await;
    result
}

async fn resume_in(
    app: &mut App,
    sessions: &Sessions,
    session: SessionId,
    signals: &mut StopSignals,
) -> Result<Exit, Failure> {
    signals.guard(app.connect()).await?;
    let choice = signals.guard(app.choose_model()).await?;
    choice.warn();
    let model = choice.model;
    let runner = app.runner(sessions, &model)?;
    let conversation = open_session(&runner, session).await?;
    talk(app, sessions, conversation, &model, signals).await
}

async fn talk(
    app: &mut App,
    sessions: &Sessions,
    mut conversation: Conversation,
    chosen: &Arc<dyn Model>,
    signals: &mut StopSignals,
) -> Result<Exit, Failure> {
    let model = chosen.name();
    screen::print(&banner(app, &conversation, model))?;
    app.elsewhere.keep_trying();
    let mut input = LineInput::open(app.loaded.paths.chat_history())?;
    app.vaults.allow_prompts();
    let (folder, vaults) = (app.folder(), Arc::clone(&app.vaults));
    let place = Place {
        folder: &folder,
        vaults: &vaults,
    };
    finish_first(&mut conversation, model, place).await?;
    loop {
        let typed = next_line(app, &mut input, &conversation, signals).await?;
        let line = match typed {
            Line::Text(line) => line,
            Line::Cleared => continue,
            Line::End => break,
        };
        match line.trim() {
            "" => {}
            "/quit" | "/exit" => break,
            "/help" => screen::print(HELP)?,
            command if command.starts_with('/') && !command.contains(' ') => {
                screen::print(&format!("there is no command {command}; /help lists them"))?;
            }
            question => {
                finish_first(&mut conversation, model, place).await?;
                if app.take_in()? {
                    conversation.move_to(&app.runner(sessions, chosen)?);
                }
                match input.as_question(question) {
                    Ok(question) => {
                        go(&mut conversation, model, Some(&question), place).await?;
                    }
                    Err(failure) => screen::say(&format!("error: {failure}")),
                }
            }
        }
    }
    if conversation.turns() > 0 {
        screen::print(&format!(
            "go on: lango sessions resume {}",
            conversation.session()
        ))?;
    }
    Ok(Exit::Ok)
}

/// Waits for the next line; meanwhile memory does what is due after the last turn. Fails with a signal that ends the process,
/// also one that came during the last turn.
async fn next_line(
    app: &App,
    input: &mut LineInput,
    conversation: &Conversation,
    signals: &mut StopSignals,
) -> Result<Line, Failure> {
    let typed = async {
        let typed = input.next();
        tokio::pin!(typed);
        tokio::select! {
            line = &mut typed => return line,
            _ = app.remember(conversation.user(), conversation.session()) => {}
        }
        typed.await
    };
    tokio::select! {
        biased;
        () = signals.terminated() => {}
        line = typed => return line,
    }
    input.restore_terminal();
    Err(StopSignal::Terminate.into())
}

/// Goes on with a turn that was cut off, and asks about one that waits: whatever comes next has to wait behind it.
async fn finish_first(
    conversation: &mut Conversation,
    model: &str,
    place: Place<'_>,
) -> Result<(), Failure> {
    if let Err(error) = look_again(conversation).await {
        screen::say(&format!("error: {}", Failure::from(error)));
        return Ok(());
    }
    match (conversation.is_cut_off(), conversation.waiting()) {
        (false, []) => return Ok(()),
        (false, _) => screen::say("this session waits for your answer"),
        // That it goes on is told by the first thing that is stored.
        (true, _) => {}
    }
    go(conversation, model, None, place).await
}

/// What was left open may have been seen to elsewhere.
async fn look_again(conversation: &mut Conversation) -> Result<(), RunnerError> {
    match conversation.is_cut_off() || !conversation.waiting().is_empty() {
        true => conversation.refresh().await,
        false => Ok(()),
    }
}

/// Runs a turn, or goes on with the one that is left. What goes wrong is told, and the chat goes on; only a signal that ends
/// the process ends it.
async fn go(
    conversation: &mut Conversation,
    model: &str,
    question: Option<&UserInput>,
    place: Place<'_>,
) -> Result<(), Failure> {
    match turn::show_turn(model, conversation, question, place).await {
        Err(failure) if failure.exit == Exit::Terminated => Err(failure),
        Err(failure) => {
            screen::say(&format!("error: {failure}"));
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

const HELP: &str = "Say what you need; the agents do the rest.\n  \
                    @path   attach a file: an image, text, HTML or PDF\n  \
                    /help   this page\n  \
                    /quit   leave (or Ctrl-D)\n  \
                    Ctrl-C  stop the turn that is running";

/// Where we are, who answers, and how to leave.
fn banner(app: &App, conversation: &Conversation, model: &str) -> String {
    let agents: Vec<&str> = app
        .tree
        .agents
        .iter()
        .map(|agent| agent.name.as_str())
        .collect();
    let skipped: Vec<&str> = app
        .tree
        .skipped
        .iter()
        .filter(|skipped| skipped.reason == Skipped::NO_TOOLS)
        .map(|skipped| skipped.name.as_str())
        .collect();
    let mut lines = vec![format!(
        "lango {} · {} · session {}",
        env!("CARGO_PKG_VERSION"),
        app.workspace.path().display(),
        conversation.session()
    )];
    lines.push(match model {
        Offline::NAME => format!(
            "model   {} - built-in rules, not an AI model",
            Offline::NAME
        ),
        other => format!("model   {other}"),
    });
    lines.push(match (app.tree.mode, skipped.is_empty()) {
        (Mode::Single, _) => format!("agent   {}", app.tree.root.name),
        (Mode::Multi, true) => format!("agents  {}", agents.join(" · ")),
        (Mode::Multi, false) => format!(
            "agents  {}   (without tools: {})",
            agents.join(" · "),
            skipped.join(", ")
        ),
    });
    lines.extend(
        app.sandbox_notice()
            .map(|notice| format!("sandbox {notice}")),
    );
    lines.extend(
        app.warnings()
            .into_iter()
            .map(|warning| format!("warning {warning}")),
    );
    lines.push("/help · ctrl-c stops · ctrl-d leaves".to_owned());
    lines.join("\n")
}
