//! `lango`: an interactive chat. Escape and Ctrl-C stop the turn, not the program; Ctrl-D or a termination signal ends
//! the chat.

mod banner;
mod reading;
pub(super) mod slash;
mod slash_actions;
mod turns;
mod typed_command;
mod undo;

use super::chat_input::{ChatInput, ReadAttachment};
use super::resume::{last_session_here, print_recap, unfinished_here};
use super::turn_screen::title;
use super::watch::{TurnRequest, TypedCommand};
use crate::exit::Exit;
use crate::screen::{self, Activity};
use crate::terminal::{KeyReader, LineReader, Output, Palette, Region, ScreenMode};
use lango::app::Failure;
use lango::app::attach::{check_files, mentioned_files, missing_files, read_mentioned};
use lango::app::sessions::{Sessions, open_session};
use lango::app::signals::StopSignals;
use lango::app::undo::UndoPlan;
use lango::app::{App, Persistence};
use lango_core::text::sanitize;
use lango_core::{Model, PermissionMode, SessionId, UserInput};
use lango_engine::Conversation;
use lango_models::OfflineModel;
use slash::SlashCommand;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Instant;
use typed_command::{COMMAND_TOOL, CommandModel, explain_useless};

/// How a chat starts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChatOptions {
    /// Whether it continues the session that was used last in this folder.
    pub continues: bool,
    pub mode: PermissionMode,
}

/// Opens a chat in a new session, or in the last one of this folder.
pub(super) async fn chat(config: Vec<String>, options: ChatOptions) -> Result<Exit, Failure> {
    let mut signals = StopSignals::listen()?;
    let load = App::load_for(config, Persistence::Everything);
    let mut app = signals.guard(load).await?;
    app.mode.set(options.mode);
    let result = chat_in(&mut app, options, &mut signals).await;
    // Also after a failure, so that clean-up after servers is reported.
    app.close().await;
    result
}

async fn chat_in(
    app: &mut App,
    options: ChatOptions,
    signals: &mut StopSignals,
) -> Result<Exit, Failure> {
    if options.continues {
        let sessions = app.sessions_for_reading().await?;
        let session = last_session_here(app, &sessions).await?;
        return resume_in(app, sessions, session, signals).await;
    }
    signals.guard(app.connect()).await?;
    let sessions = app.sessions().await?;
    app.sandbox.store_result();
    let choice = signals.guard(app.choose_model()).await?;
    choice.warn();
    let model = choice.model;
    let conversation = app.runner(&sessions, &model)?.start(app.user());
    Chat::new(app, sessions, conversation, model)
        .run(signals)
        .await
}

/// Opens a chat in an existing session.
pub(super) async fn resume(
    app: &mut App,
    sessions: Sessions,
    session: SessionId,
) -> Result<Exit, Failure> {
    let mut signals = StopSignals::listen()?;
    let result = resume_in(app, sessions, session, &mut signals).await;
    app.close().await;
    result
}

async fn resume_in(
    app: &mut App,
    sessions: Sessions,
    session: SessionId,
    signals: &mut StopSignals,
) -> Result<Exit, Failure> {
    signals.guard(app.connect()).await?;
    let choice = signals.guard(app.choose_model()).await?;
    choice.warn();
    let model = choice.model;
    let runner = app.runner(&sessions, &model)?;
    let conversation = open_session(&runner, session).await?;
    Chat::new(app, sessions, conversation, model)
        .run(signals)
        .await
}

/// An open chat.
struct Chat<'a> {
    app: &'a mut App,
    sessions: Sessions,
    conversation: Conversation,
    model: Arc<dyn Model>,
    /// The name of the model that the user selected with `/model`.
    selected_model: Option<String>,
    /// Whether a model other than the demo was in use, so that the demo is the user's choice.
    has_model: bool,
    /// Whether the last turn failed because of the model's key.
    was_key_refused: bool,
    screen: ScreenMode,
    palette: Palette,
    activity: Activity,
    keys: Option<KeyReader>,
    input: ChatInput,
    /// Reads lines if the screen is plain.
    lines: Option<LineReader>,
    /// Reads answers from the terminal if the lines come from a pipe.
    answers: Option<LineReader>,
    /// The undo that was shown last, until the user confirms it.
    offered_undo: Option<UndoPlan>,
    /// When the user last pressed Ctrl-C at an empty prompt.
    last_interrupt: Option<Instant>,
}

impl<'a> Chat<'a> {
    fn new(
        app: &'a mut App,
        sessions: Sessions,
        conversation: Conversation,
        model: Arc<dyn Model>,
    ) -> Self {
        // Lines of a pipe are read as they are, also if there is a keyboard.
        let is_plain = app.loaded.settings.ui.plain || !std::io::stdin().is_terminal();
        let screen = ScreenMode::detect(is_plain, Output::Stdout);
        let palette = match screen {
            ScreenMode::Live => Palette::for_terminal(),
            ScreenMode::Plain => Palette::plain(),
        };
        let agents = app.tree.agents.iter().map(|agent| agent.name.clone());
        let root = app.tree.root.name.clone();
        let palette = palette.with_agents(std::iter::once(root).chain(agents));
        let history = app.loaded.paths.chat_history();
        let input = ChatInput::new(&history, app.workspace.path(), app.mode.clone());
        Self {
            activity: Activity::new(palette.clone()),
            app,
            sessions,
            conversation,
            has_model: model.name() != OfflineModel::NAME,
            model,
            selected_model: None,
            was_key_refused: false,
            screen,
            palette,
            keys: None,
            input,
            lines: None,
            answers: None,
            offered_undo: None,
            last_interrupt: None,
        }
    }

    async fn run(mut self, signals: &mut StopSignals) -> Result<Exit, Failure> {
        let unfinished = unfinished_here(self.app, &self.sessions).await?;
        screen::print(&self.banner(&unfinished))?;
        let style = self.palette.markdown();
        print_recap(&self.sessions, self.conversation.session(), style).await?;
        self.app.remote_agents.retry_in_background();
        self.app.vaults.allow_prompts();
        self.open_screen()?;
        let result = self.converse(signals).await;
        self.close_screen();
        result?;
        if self.conversation.turns() > 0 {
            screen::print(&format!(
                "continue: lango resume {}",
                self.conversation.session()
            ))?;
        }
        Ok(Exit::Ok)
    }

    fn open_screen(&mut self) -> Result<(), Failure> {
        if self.screen == ScreenMode::Live {
            self.input.status = self.status();
            self.keys = Some(KeyReader::open()?);
            Region::open(Output::Stdout);
        }
        Ok(())
    }

    fn close_screen(&mut self) {
        title("");
        Region::close();
        self.keys = None;
    }

    async fn converse(&mut self, signals: &mut StopSignals) -> Result<(), Failure> {
        self.finish_pending_turn().await?;
        while let Some(message) = self.next_message(signals).await? {
            if self.screen == ScreenMode::Live {
                self.print_sent(&message)?;
            }
            match SlashCommand::parse(&message) {
                Some(Ok((SlashCommand::Quit, _))) => return Ok(()),
                None if matches!(message.trim(), "exit" | "quit") => return Ok(()),
                Some(Ok((command, argument))) => {
                    if let Err(failure) = self.perform(command, argument).await {
                        screen::say(&format!("error: {failure}"));
                    }
                }
                Some(Err(unknown)) => screen::print(&unknown)?,
                None => self.send(&message).await?,
            }
        }
        Ok(())
    }

    /// Prints a message that was sent.
    fn print_sent(&self, message: &str) -> std::io::Result<()> {
        let sent = ChatInput::sent_lines(message, screen::columns(), &self.palette);
        screen::print_rendered(&format!("\n{sent}"))
    }

    /// Runs the turn of a message, or the command after `!`.
    async fn send(&mut self, message: &str) -> Result<(), Failure> {
        let was_waiting = !self.conversation.waiting().is_empty();
        self.finish_pending_turn().await?;
        if let Some(reason) = self.unfinished_turn() {
            self.return_unsent(message);
            screen::say(&format!("the message was not sent: {reason}"));
            return Ok(());
        }
        if was_waiting && self.screen == ScreenMode::Live {
            // The earlier turn stands between the message and its answer.
            self.print_sent(message)?;
        }
        if self.app.add_new_remote_agents()? {
            self.use_model(Arc::clone(&self.model))?;
        }
        if self.was_key_refused
            && let Err(failure) = self.renew_model().await
        {
            self.return_unsent(message);
            screen::say(&format!("the message was not sent\nerror: {failure}"));
            return Ok(());
        }
        // Text of a pipe may come from anyone, so it cannot approve a command.
        if let Some(command) = message.trim().strip_prefix('!')
            && std::io::stdin().is_terminal()
        {
            return match command.trim() {
                "" => Ok(screen::print(
                    "type a command after `!`, for example: !git status",
                )?),
                command => match explain_useless(command) {
                    Some(explanation) => Ok(screen::print(&explanation)?),
                    None => self.run_command(command).await,
                },
            };
        }
        let attached = std::mem::take(&mut self.input.attachments);
        let has_started = match self.question(message, &attached) {
            Ok(question) => {
                let request = TurnRequest::Question(&question);
                self.run_turn(request, None).await?
            }
            Err(failure) => {
                screen::say(&format!("error: {failure}"));
                false
            }
        };
        if !has_started {
            self.input.attachments = attached;
            self.return_unsent(message);
        }
        Ok(())
    }

    /// Returns why no message can be sent now, if the last turn is unfinished.
    fn unfinished_turn(&self) -> Option<&'static str> {
        if !self.conversation.waiting().is_empty() {
            return Some("this session waits for your answer first");
        }
        let is_interrupted = self.conversation.is_interrupted();
        is_interrupted.then_some("the last turn of this session has not ended")
    }

    /// Puts a message that was not sent back into the input, before those that waited behind it.
    fn return_unsent(&mut self, message: &str) {
        self.input.return_message(message);
        self.input.return_queued();
    }

    /// Runs a command that the user typed.
    async fn run_command(&mut self, command: &str) -> Result<(), Failure> {
        // A turn that another process left unfinished must not continue with the model that only runs this command.
        let message = format!("!{command}");
        if let Err(error) = self.conversation.refresh().await {
            self.return_unsent(&message);
            screen::say(&format!("error: {}", Failure::from(error)));
            return Ok(());
        }
        self.finish_pending_turn().await?;
        if let Some(reason) = self.unfinished_turn() {
            self.return_unsent(&message);
            screen::say(&format!("the command did not run: {reason}"));
            return Ok(());
        }
        let tree = Arc::clone(&self.app.tree);
        let owner = tree
            .owner_of(COMMAND_TOOL)
            .map_or(&tree.root, |owner| owner);
        let model: Arc<dyn Model> = Arc::new(CommandModel::new(command, owner.name.as_str()));
        let runner = self
            .app
            .runner_without_agent_models(&self.sessions, &model)?;
        self.conversation.set_runner(&runner);
        let typed = TypedCommand(command.to_owned());
        let question = UserInput::from(message.as_str());
        let result = self
            .run_turn(TurnRequest::Question(&question), Some(&typed))
            .await;
        self.use_model(Arc::clone(&self.model))?;
        if !result? {
            self.return_unsent(&message);
        }
        Ok(())
    }

    /// Builds the model again with the key that its provider has now: the user may have stored one after the old one was
    /// refused.
    async fn renew_model(&mut self) -> Result<(), Failure> {
        let model = match &self.selected_model {
            Some(name) => self.app.model_selector().agent_model(name)?,
            None => self.app.choose_model().await?.model,
        };
        self.use_model(model)?;
        self.was_key_refused = false;
        Ok(())
    }

    /// Uses a model from the next turn on.
    fn use_model(&mut self, model: Arc<dyn Model>) -> Result<(), Failure> {
        let runner = self.app.runner(&self.sessions, &model)?;
        self.conversation.set_runner(&runner);
        self.has_model |= model.name() != OfflineModel::NAME;
        self.model = model;
        self.input.status = self.status();
        Ok(())
    }

    /// Turns a message into a question, with the files that it mentions and those of `/attach`. Mentions only count if
    /// standard input is a terminal.
    fn question(&self, message: &str, attached: &[ReadAttachment]) -> Result<UserInput, Failure> {
        if !std::io::stdin().is_terminal() {
            return Ok(UserInput::from_pipe(message, 0));
        }
        let mut question = UserInput::from(message);
        question.files = attached.iter().map(|read| read.file.clone()).collect();
        for path in missing_files(message) {
            screen::say(&format!(
                "not attached, because there is no such file: {}",
                sanitize(path)
            ));
        }
        // A pasted text may mention any file.
        for path in mentioned_files(message) {
            match read_mentioned(&self.app.workspace, path)? {
                Some(file) => question.files.push(file),
                None => {
                    let path = sanitize(path);
                    screen::say(&format!(
                        "not attached, because it is outside of this folder or hidden from agents: {path} (/attach {path})"
                    ));
                }
            }
        }
        check_files(&question.files)?;
        Ok(question)
    }
}
