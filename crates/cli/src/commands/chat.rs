//! `lango`: an interactive chat. Ctrl-C stops the turn, not the program; Ctrl-D or a termination signal ends the
//! chat.

mod line;
mod turn;

use super::watch::PromptContext;
use crate::exit::Exit;
use crate::screen;
use lango::app::sessions::{Sessions, open_session};
use lango::app::signals::{StopSignal, StopSignals};
use lango::app::{App, Persistence};
use lango::app::{Failure, FailureKind};
use lango_core::{Model, SessionId, UserInput};
use lango_engine::{Conversation, RunnerError, SkippedAgent, TreeMode};
use lango_models::OfflineModel;
use line::{Line, LineInput};
use std::sync::Arc;

/// Opens a chat in a new session.
pub(super) async fn chat(config: Vec<String>) -> Result<Exit, Failure> {
    let mut signals = StopSignals::listen()?;
    let load = App::load_for(config, Persistence::Everything);
    let mut app = signals.guard(load).await?;
    let result = chat_in(&mut app, &mut signals).await;
    // Also after a failure, so that clean-up after servers is reported.
    app.close().await;
    result
}

async fn chat_in(app: &mut App, signals: &mut StopSignals) -> Result<Exit, Failure> {
    signals.guard(app.connect()).await?;
    let sessions = app.sessions().await?;
    app.sandbox.store_result();
    let choice = signals.guard(app.choose_model()).await?;
    choice.warn();
    let model = choice.model;
    let conversation = app.runner(&sessions, &model)?.start(app.user());
    chat_loop(app, &sessions, conversation, &model, signals).await
}

/// Opens a chat in an existing session.
pub(super) async fn resume(
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
    chat_loop(app, sessions, conversation, &model, signals).await
}

async fn chat_loop(
    app: &mut App,
    sessions: &Sessions,
    mut conversation: Conversation,
    chosen: &Arc<dyn Model>,
    signals: &mut StopSignals,
) -> Result<Exit, Failure> {
    let model = chosen.name();
    screen::print(&banner(app, &conversation, model))?;
    app.remote_agents.retry_in_background();
    let mut input = LineInput::open(app.loaded.paths.chat_history())?;
    app.vaults.allow_prompts();
    let (folder, vaults) = (app.folder(), Arc::clone(&app.vaults));
    let context = PromptContext {
        folder: &folder,
        vaults: &vaults,
    };
    finish_pending_turn(&mut conversation, model, context).await?;
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
                finish_pending_turn(&mut conversation, model, context).await?;
                if app.add_new_remote_agents()? {
                    conversation.set_runner(&app.runner(sessions, chosen)?);
                }
                match input.as_question(question) {
                    Ok(question) => {
                        run_turn(&mut conversation, model, Some(&question), context).await?;
                    }
                    Err(failure) => screen::say(&format!("error: {failure}")),
                }
            }
        }
    }
    if conversation.turns() > 0 {
        screen::print(&format!(
            "continue: lango sessions resume {}",
            conversation.session()
        ))?;
    }
    Ok(Exit::Ok)
}

/// Waits for the next line and meanwhile updates memory for the last turn. Fails if the process gets a termination
/// signal, or got one during the last turn.
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

/// Resumes an interrupted turn and asks for pending approvals. The session cannot start another turn before that.
async fn finish_pending_turn(
    conversation: &mut Conversation,
    model: &str,
    context: PromptContext<'_>,
) -> Result<(), Failure> {
    if let Err(error) = refresh_if_pending(conversation).await {
        screen::say(&format!("error: {}", Failure::from(error)));
        return Ok(());
    }
    match (conversation.is_interrupted(), conversation.waiting()) {
        (false, []) => return Ok(()),
        (false, _) => screen::say("this session waits for your answer"),
        // The first stored event tells the user that the turn is resumed.
        (true, _) => {}
    }
    run_turn(conversation, model, None, context).await
}

/// Reads the session again if a turn was pending: another process may have finished it.
async fn refresh_if_pending(conversation: &mut Conversation) -> Result<(), RunnerError> {
    if conversation.is_interrupted() || !conversation.waiting().is_empty() {
        conversation.refresh().await
    } else {
        Ok(())
    }
}

/// Runs a turn, or continues the pending one. Errors are printed and the chat continues; only a termination signal
/// ends it.
async fn run_turn(
    conversation: &mut Conversation,
    model: &str,
    question: Option<&UserInput>,
    context: PromptContext<'_>,
) -> Result<(), Failure> {
    match turn::show_turn(model, conversation, question, context).await {
        Err(failure) if failure.kind == FailureKind::Terminated => Err(failure),
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

/// Returns the opening text: workspace, model, agents, warnings, and how to leave.
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
        .filter(|skipped| skipped.reason == SkippedAgent::NO_TOOLS)
        .map(|skipped| skipped.name.as_str())
        .collect();
    let mut lines = vec![format!(
        "lango {} · {} · session {}",
        env!("CARGO_PKG_VERSION"),
        app.workspace.path().display(),
        conversation.session()
    )];
    lines.push(match model {
        OfflineModel::NAME => format!(
            "model   {} - built-in rules, not an AI model",
            OfflineModel::NAME
        ),
        other => format!("model   {other}"),
    });
    lines.push(match (app.tree.mode, skipped.is_empty()) {
        (TreeMode::Single, _) => format!("agent   {}", app.tree.root.name),
        (TreeMode::Multi, true) => format!("agents  {}", agents.join(" · ")),
        (TreeMode::Multi, false) => format!(
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
