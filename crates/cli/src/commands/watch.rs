//! Runs a turn while a user watches: updates go to the screen, Escape and Ctrl-C stop the turn, and approvals are
//! requested until the turn ends or has to wait.

use super::ask::{ApprovalMode, ApproverMessage, Reply, TerminalApprover};
use super::turn_screen::{ScreenAction, ScreenEvent, TurnScreen};
use lango::app::Failure;
use lango::app::signals::{StopSignal, StopSignals};
use lango::app::vault::UserVaults;
use lango::{TurnAction, TurnRun};
use lango_core::{
    ApprovalAnswer, ApprovalId, ApprovalRequest, Outcome, PendingApproval, SessionId, UserInput,
};
use lango_engine::{
    CancelToken, Conversation, ModeSwitch, RunnerError, TurnEnd, TurnUpdate, UpdateReceiver,
    turn_updates,
};
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use tokio::sync::mpsc::UnboundedReceiver;

/// A request to start or continue a turn.
pub(super) enum TurnRequest<'a> {
    /// A question, which starts a turn.
    Question(&'a UserInput),
    /// The answer to an approval, which continues the waiting turn.
    Answer(ApprovalId, ApprovalAnswer),
    /// Nothing new: an interrupted turn is resumed, and pending approvals are requested again. If another process has
    /// finished the turn meanwhile, nothing is pending.
    Continue,
}

/// The result of watching a turn.
pub(super) struct WatchedTurn {
    pub end: TurnEnd,
    /// Calls that were denied because no user could be asked.
    pub denied: Vec<PendingApproval>,
    /// Whether the answer is already on the screen.
    pub is_answer_shown: bool,
    /// Whether a signal other than Ctrl-C stopped the turn.
    pub is_terminated: bool,
}

/// Why a turn could not be shown to its end.
pub(super) struct WatchError {
    pub failure: Failure,
    /// Whether the turn is in the log. Otherwise its message is nowhere but on the screen.
    pub has_started: bool,
}

impl From<WatchError> for Failure {
    fn from(error: WatchError) -> Self {
        error.failure
    }
}

/// What prompts to the user need.
#[derive(Clone, Copy)]
pub(super) struct PromptContext<'a> {
    /// The workspace, for approvals that apply to a folder.
    pub folder: &'a str,
    /// The vaults that a call may need to unlock.
    pub vaults: &'a UserVaults,
    /// A command that the user typed and thereby approved.
    pub typed_command: Option<&'a TypedCommand>,
    /// The user may switch to `accept-edits` while calls wait for an answer.
    pub mode: &'a ModeSwitch,
}

/// A command that the user typed after `!`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TypedCommand(pub String);

impl TypedCommand {
    /// Whether the request is exactly for this command. A request that only the user may allow is still asked.
    pub(super) fn is_for(&self, request: &ApprovalRequest) -> bool {
        let arguments = request.arguments.as_object();
        let is_same = arguments.is_some_and(|arguments| {
            arguments.len() == 1
                && arguments.get("command").and_then(|value| value.as_str()) == Some(&*self.0)
        });
        is_same
            && request.question.is_permission()
            && request.inspection.user_only.is_none()
            && request.inspection.guarded.is_none()
    }
}

/// Runs a turn until it ends or has to wait. If the output is closed, the turn still runs to its end, without an
/// error.
pub(super) async fn watch(
    conversation: &mut Conversation,
    request: TurnRequest<'_>,
    approval_mode: ApprovalMode,
    context: PromptContext<'_>,
    screen: TurnScreen<'_>,
) -> Result<WatchedTurn, WatchError> {
    let mut has_started = !matches!(request, TurnRequest::Question(_));
    watch_turn(
        conversation,
        request,
        approval_mode,
        context,
        screen,
        &mut has_started,
    )
    .await
    .map_err(|failure| WatchError {
        failure,
        has_started,
    })
}

async fn watch_turn(
    conversation: &mut Conversation,
    request: TurnRequest<'_>,
    approval_mode: ApprovalMode,
    context: PromptContext<'_>,
    mut screen: TurnScreen<'_>,
    has_started: &mut bool,
) -> Result<WatchedTurn, Failure> {
    let (updates, shown) = turn_updates();
    let (approver, messages) = TerminalApprover::new(approval_mode, context, updates.backlog());
    for waiting in conversation.waiting() {
        screen.add_pending(&waiting.request);
    }
    let action = prepare_action(request, conversation, &approver).await?;
    let session = conversation.session().clone();
    let cancel = CancelToken::new();
    let turn = async {
        // Dropping the sender with the turn ends the stream of updates.
        let updates = updates;
        let run = TurnRun {
            conversation,
            approver: &approver,
            cancel: &cancel,
            updates: &updates,
        };
        run.run(action).await
    };
    let mut watcher = Watcher {
        turn: Box::pin(turn),
        end: None,
        updates: Some(shown),
        messages,
        signals: StopSignals::listen()?,
        cancel: &cancel,
        screen,
        is_preparing: false,
        is_terminated: false,
        has_started,
    };
    let output = watcher.run().await;
    let is_terminated = watcher.is_terminated;
    let (end, is_answer_shown) = watcher.finish(output, &session)?;
    let denied = approver.finish()?;
    let is_answer_shown = match is_answer_shown {
        Ok(is_shown) => is_shown,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => false,
        Err(error) => return Err(error.into()),
    };
    lango::app::clean_up::warn();
    Ok(WatchedTurn {
        end,
        denied,
        is_answer_shown,
        is_terminated,
    })
}

/// Turns a request into what the turn has to do. An answer may need a prompt first, such as one for a passphrase.
async fn prepare_action(
    request: TurnRequest<'_>,
    conversation: &Conversation,
    approver: &TerminalApprover<'_>,
) -> Result<TurnAction, Failure> {
    Ok(match request {
        TurnRequest::Question(question) => TurnAction::Ask(question.clone()),
        TurnRequest::Continue => TurnAction::Resume,
        TurnRequest::Answer(request, answer) => {
            let mut waiting = conversation.waiting().iter();
            let waiting = waiting.find(|waiting| waiting.request.id == request);
            let answer = match waiting {
                Some(waiting) => {
                    let user = conversation.user();
                    approver.prepare(user, waiting, answer).await?
                }
                None => answer,
            };
            TurnAction::Answer(request, answer)
        }
    })
}

/// A turn that runs, and the screen that shows it.
struct Watcher<'a, T> {
    turn: T,
    /// How the turn ended, once it has.
    end: Option<Result<TurnEnd, RunnerError>>,
    /// `None` if nobody can see them any more.
    updates: Option<UpdateReceiver>,
    messages: UnboundedReceiver<ApproverMessage>,
    signals: StopSignals,
    cancel: &'a CancelToken,
    screen: TurnScreen<'a>,
    /// Whether a question or a prompt that follows from it has the terminal.
    is_preparing: bool,
    is_terminated: bool,
    has_started: &'a mut bool,
}

impl<T: Future<Output = Result<TurnEnd, RunnerError>> + Unpin> Watcher<'_, T> {
    /// Shows the turn until it has ended and every update is on the screen. If the output fails, the turn still runs to
    /// its end.
    async fn run(&mut self) -> io::Result<()> {
        let mut output = self.screen.draw();
        while output.is_ok() {
            match self.step().await {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return Ok(()),
                Err(error) => output = Err(error),
            }
        }
        self.run_unseen().await;
        output
    }

    /// Handles the next thing that happens. Breaks when the turn has ended and was shown.
    async fn step(&mut self) -> io::Result<ControlFlow<()>> {
        let update = async {
            match &mut self.updates {
                Some(updates) => updates.recv().await,
                None => None,
            }
        };
        tokio::select! {
            biased;
            result = &mut self.turn, if self.end.is_none() => self.end = Some(result),
            signal = self.signals.next() => self.handle_signal(signal)?,
            // Before the updates: a flood of them must not keep the user from stopping the turn.
            event = self.screen.next_event() => self.handle_event(event).await?,
            update = update => match update {
                Some(update) => {
                    *self.has_started |= matches!(update, TurnUpdate::Stored(_));
                    self.screen.update(update)?;
                }
                None if self.end.is_some() => return Ok(ControlFlow::Break(())),
                None => std::future::pending().await,
            },
            Some(message) = self.messages.recv() => self.handle_message(message).await?,
        }
        Ok(ControlFlow::Continue(()))
    }

    async fn handle_message(&mut self, message: ApproverMessage) -> io::Result<()> {
        match message {
            ApproverMessage::Ask(question, reply) => {
                while let Some(key) = self.screen.typed_key() {
                    self.handle_event(ScreenEvent::Key(key)).await?;
                }
                self.is_preparing = true;
                let question = self.screen.ask(*question, reply);
                during(&mut self.turn, &mut self.end, question).await
            }
            ApproverMessage::Done => {
                self.is_preparing = false;
                self.screen.resume()
            }
        }
    }

    fn handle_signal(&mut self, signal: StopSignal) -> io::Result<()> {
        self.is_terminated |= signal == StopSignal::Terminate;
        match (self.screen.is_asking(), signal) {
            (true, StopSignal::Interrupt) => self.screen.answer_question(Reply::Stop)?,
            (true, StopSignal::Terminate) => self.screen.answer_question(Reply::Wait)?,
            // A prompt handles signals itself, because it has to restore the terminal.
            (false, _) if self.is_preparing => {}
            (false, _) => self.stop(),
        }
        Ok(())
    }

    fn stop(&mut self) {
        self.screen.show_stopping();
        self.cancel.cancel();
    }

    async fn handle_event(&mut self, event: ScreenEvent) -> io::Result<()> {
        let action = match event {
            ScreenEvent::Redraw => return self.screen.draw(),
            ScreenEvent::QuestionWithdrawn => {
                self.is_preparing = false;
                return self.screen.withdraw_question();
            }
            ScreenEvent::SuspendRequested => ScreenAction::Suspend,
            ScreenEvent::AnswerSettled => self.screen.settle_answer()?,
            ScreenEvent::Key(key) => self.screen.handle(key)?,
        };
        match action {
            ScreenAction::Continue => Ok(()),
            ScreenAction::Stop => {
                self.stop();
                Ok(())
            }
            ScreenAction::View => during(&mut self.turn, &mut self.end, self.screen.view()).await,
            ScreenAction::Edit => during(&mut self.turn, &mut self.end, self.screen.edit()).await,
            ScreenAction::Suspend => self.screen.suspend(),
        }
    }

    /// Runs the turn to its end without an output. Questions stay pending, because nobody can see them.
    async fn run_unseen(&mut self) {
        // Without a receiver the updates are discarded.
        self.updates = None;
        self.screen.abandon_question();
        self.messages.close();
        while self.messages.try_recv().is_ok() {}
        while self.end.is_none() {
            tokio::select! {
                result = &mut self.turn => self.end = Some(result),
                signal = self.signals.next() => {
                    self.is_terminated |= signal == StopSignal::Terminate;
                    self.cancel.cancel();
                }
            }
        }
    }

    /// Completes the screen. Returns how the turn ended, and whether its answer is on the screen.
    fn finish(
        mut self,
        output: io::Result<()>,
        session: &SessionId,
    ) -> Result<(TurnEnd, io::Result<bool>), Failure> {
        let answer = match &self.end {
            // The line of a command that the user typed and stopped says everything.
            Some(Ok(TurnEnd::Finished(report)))
                if self.screen.shows_only_calls() && report.outcome == Outcome::Cancelled =>
            {
                None
            }
            Some(Ok(TurnEnd::Finished(report))) if !report.structured => {
                report.answer_without_error()
            }
            _ => None,
        };
        let is_answer_shown = output.and_then(|()| self.screen.finish(answer));
        match self.end.unwrap_or(Err(RunnerError::NothingPending)) {
            Ok(end) => Ok((end, is_answer_shown)),
            Err(error) if *self.has_started => Err(Failure::in_turn(error, session)),
            Err(error) => Err(error.into()),
        }
    }
}

/// Waits for the screen and lets the turn run meanwhile.
async fn during<T>(
    turn: &mut (impl Future<Output = T> + Unpin),
    end: &mut Option<T>,
    work: impl Future<Output = io::Result<()>>,
) -> io::Result<()> {
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            result = &mut *turn, if end.is_none() => *end = Some(result),
        }
    }
}
