//! Runs a turn while a user watches: updates go to the screen, Escape and Ctrl-C stop the turn, and approvals are
//! requested until the turn ends or has to wait.

use super::ask::{ApprovalMode, ApproverMessage, Reply, TerminalApprover};
use super::turn_screen::{ScreenAction, ScreenEvent, TurnScreen};
use lango::app::Failure;
use lango::app::signals::{StopSignal, StopSignals};
use lango::app::vault::UserVaults;
use lango::{TurnAction, TurnRun};
use lango_core::{ApprovalAnswer, ApprovalId, ApprovalRequest, PendingApproval, UserInput};
use lango_engine::{CancelToken, Conversation, RunnerError, TurnEnd, TurnUpdate, turn_updates};
use std::io::ErrorKind;

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
    mut screen: TurnScreen<'_>,
) -> Result<WatchedTurn, Failure> {
    let (updates, shown) = turn_updates();
    let (approver, mut messages) = TerminalApprover::new(approval_mode, context, updates.backlog());
    let mut has_started = !matches!(request, TurnRequest::Question(_));
    let action = match request {
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
    };
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
    let mut turn = Box::pin(turn);
    let mut end: Option<Result<TurnEnd, RunnerError>> = None;
    let mut shown = Some(shown);
    let mut is_preparing = false;
    let mut signals = StopSignals::listen()?;
    let mut output: std::io::Result<()> = screen.draw();
    loop {
        if let Err(error) = std::mem::replace(&mut output, Ok(())) {
            // Without an output the turn runs to its end. Dropping the receiver discards its updates. Questions stay
            // pending, because nobody can see them.
            output = Err(error);
            drop(shown.take());
            screen.abandon_question();
            messages.close();
            while let Ok(message) = messages.try_recv() {
                drop(message);
            }
            while end.is_none() {
                tokio::select! {
                    result = &mut turn => end = Some(result),
                    _ = signals.next() => cancel.cancel(),
                }
            }
            break;
        }
        let updates = async {
            match &mut shown {
                Some(shown) => shown.recv().await,
                None => None,
            }
        };
        tokio::select! {
            biased;
            result = &mut turn, if end.is_none() => end = Some(result),
            update = updates => match update {
                Some(update) => {
                    has_started = has_started || matches!(update, TurnUpdate::Stored(_));
                    output = screen.update(update);
                }
                None if end.is_some() => break,
                None => std::future::pending().await,
            },
            Some(message) = messages.recv() => match message {
                ApproverMessage::Ask(question, reply) => {
                    is_preparing = true;
                    output = during(&mut turn, &mut end, screen.ask(*question, reply)).await;
                }
                ApproverMessage::Done => {
                    is_preparing = false;
                    output = screen.resume();
                }
            },
            signal = signals.next() => match (screen.is_asking(), signal) {
                (true, StopSignal::Interrupt) => screen.answer_question(Reply::Stop),
                (true, StopSignal::Terminate) => screen.answer_question(Reply::Wait),
                // A prompt handles signals itself, because it has to restore the terminal.
                (false, _) if is_preparing => {}
                (false, _) => cancel.cancel(),
            },
            event = screen.next_event() => match event {
                ScreenEvent::Redraw => output = screen.draw(),
                ScreenEvent::QuestionWithdrawn => {
                    is_preparing = false;
                    screen.withdraw_question();
                }
                ScreenEvent::Key(key) => match screen.handle(key) {
                    Ok(ScreenAction::Continue) => {}
                    Ok(ScreenAction::Stop) => cancel.cancel(),
                    Ok(ScreenAction::View) => output = during(&mut turn, &mut end, screen.view()).await,
                    Ok(ScreenAction::Edit) => output = during(&mut turn, &mut end, screen.edit()).await,
                    Err(error) => output = Err(error),
                },
            },
        }
    }
    drop(turn);
    let finished = match &end {
        Some(Ok(TurnEnd::Finished(report))) if !report.structured => report.answer.as_deref(),
        _ => None,
    };
    let is_answer_shown = match &output {
        Ok(()) => screen.finish(finished),
        Err(_) => Ok(false),
    };
    let end = end.unwrap_or(Err(RunnerError::NothingPending));
    let end = end.map_err(|error| {
        if has_started {
            Failure::in_turn(error, &session)
        } else {
            error.into()
        }
    })?;
    let denied = approver.finish()?;
    for result in [
        output,
        is_answer_shown
            .as_ref()
            .map(|_| ())
            .map_err(|error| error.kind().into()),
    ] {
        if let Err(error) = result
            && error.kind() != ErrorKind::BrokenPipe
        {
            return Err(error.into());
        }
    }
    lango::app::clean_up::warn();
    Ok(WatchedTurn {
        end,
        denied,
        is_answer_shown: is_answer_shown.unwrap_or(false),
    })
}

/// Waits for the screen and lets the turn run meanwhile.
async fn during<T>(
    turn: &mut (impl Future<Output = T> + Unpin),
    end: &mut Option<T>,
    work: impl Future<Output = std::io::Result<()>>,
) -> std::io::Result<()> {
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            result = &mut *turn, if end.is_none() => *end = Some(result),
        }
    }
}

/// Waits for a termination signal (SIGTERM or SIGHUP).
pub(super) async fn termination_requested() {
    use tokio::signal::unix::{SignalKind, signal};
    let other = |kind| async move {
        match signal(kind) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = other(SignalKind::terminate()) => {}
        () = other(SignalKind::hangup()) => {}
    }
}
