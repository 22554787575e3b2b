//! Runs a turn while a user watches: events go to a callback, Ctrl-C stops the turn, and approvals are requested
//! until the turn ends or has to wait.

use super::ask::{ApprovalMode, Reply};
use crate::screen;
use lango::app::vault::UserVaults;
use lango::app::{Failure, FailureKind};
use lango_core::{AnswerSource, ApprovalAnswer, ApprovalId, PendingApproval, TurnId, UserInput};
use lango_engine::{
    CancelToken, Conversation, RunnerError, TurnEnd, TurnStatus, TurnUpdate, UpdateSender,
    turn_updates,
};
use std::cell::Cell;
use std::io::ErrorKind;
use std::time::Duration;

/// A request to start or continue a turn.
pub enum TurnRequest<'a> {
    /// A question, which starts a turn.
    Question(&'a UserInput),
    /// The answer to an approval, which continues the waiting turn.
    Answer(ApprovalId, ApprovalAnswer),
    /// Nothing new: an interrupted turn is resumed, and pending approvals are requested again. If another process has
    /// finished the turn meanwhile, nothing is pending.
    Continue,
}

/// The result of watching a turn.
pub struct WatchedTurn {
    pub end: TurnEnd,
    /// Calls that were denied because no user could be asked.
    pub denied: Vec<PendingApproval>,
}

/// What prompts to the user need.
#[derive(Clone, Copy)]
pub struct PromptContext<'a> {
    /// The workspace, for approvals that apply to a folder.
    pub folder: &'a str,
    /// The vaults that a call may need to unlock.
    pub vaults: &'a UserVaults,
}

/// Runs a turn until it ends or has to wait. If the output is closed, the turn still runs to its end, without an
/// error.
pub async fn watch(
    conversation: &mut Conversation,
    input: TurnRequest<'_>,
    approval_mode: ApprovalMode,
    context: PromptContext<'_>,
    mut show: impl FnMut(TurnUpdate) -> std::io::Result<()>,
) -> Result<WatchedTurn, Failure> {
    let mut denied = Vec::new();
    let mut end = match input {
        TurnRequest::Question(question) => {
            run_action(conversation, TurnAction::Ask(question), &mut show).await?
        }
        TurnRequest::Answer(request, answer) => {
            let answer = prepare(conversation, context, &request, answer).await?;
            let action = TurnAction::Answer(request, answer, AnswerSource::Person);
            run_action(conversation, action, &mut show).await?
        }
        TurnRequest::Continue if conversation.is_interrupted() => {
            run_action(conversation, TurnAction::Resume, &mut show).await?
        }
        TurnRequest::Continue => TurnEnd::Waiting(conversation.waiting().to_vec()),
    };
    while let TurnEnd::Waiting(waiting) = &end {
        let next = match approval_mode
            .ask(conversation, waiting, context.folder)
            .await?
        {
            Reply::Wait => break,
            Reply::Stop => TurnAction::Cancel,
            Reply::Answered(answer, by) => {
                if by == AnswerSource::Unattended {
                    denied.extend(waiting.first().cloned());
                }
                let request = waiting[0].request.id.clone();
                let turn = waiting[0].turn.clone();
                conversation.refresh().await?;
                let mut left = conversation.waiting().iter();
                if !left.any(|waiting| waiting.request.id == request) {
                    screen::say("answered by another process, which continues the turn");
                    end = wait_for_outcome(conversation, &turn).await?;
                    continue;
                }
                match prepare(conversation, context, &request, answer).await {
                    Ok(answer) => TurnAction::Answer(request, answer, by),
                    // Ctrl-C at a prompt stops the turn, as it does while the turn runs.
                    Err(failure) if failure.kind == FailureKind::Interrupted => TurnAction::Cancel,
                    Err(failure) => return Err(failure),
                }
            }
        };
        end = run_action(conversation, next, &mut show).await?;
    }
    lango::app::clean_up::warn();
    Ok(WatchedTurn { end, denied })
}

/// Interval between checks of a turn that another process has continued.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Waits for a turn that another process has continued, until the turn has ended or is waiting for the user again.
async fn wait_for_outcome(conversation: &Conversation, turn: &TurnId) -> Result<TurnEnd, Failure> {
    loop {
        match conversation.turn_status(turn).await? {
            TurnStatus::Finished(report) => return Ok(TurnEnd::Finished(report)),
            TurnStatus::Waiting(waiting) => return Ok(TurnEnd::Waiting(waiting)),
            TurnStatus::Unfinished => tokio::time::sleep(POLL_INTERVAL).await,
            TurnStatus::Unknown => return Err(RunnerError::NothingPending.into()),
        }
    }
}

/// Prompts for what an allowed call needs, such as a passphrase, while the turn waits. Returns the user's answer, or
/// a denial if the prompt was declined.
async fn prepare(
    conversation: &Conversation,
    context: PromptContext<'_>,
    request: &ApprovalId,
    answer: ApprovalAnswer,
) -> Result<ApprovalAnswer, Failure> {
    let mut waiting = conversation.waiting().iter();
    let waiting = waiting.find(|waiting| waiting.request.id == *request);
    match waiting.filter(|_| answer.allows()) {
        Some(waiting) => {
            let prepared = context.vaults.prepare(conversation.user(), waiting).await?;
            Ok(prepared.unwrap_or(answer))
        }
        None => Ok(answer),
    }
}

/// The next action on a conversation.
enum TurnAction<'a> {
    Ask(&'a UserInput),
    Resume,
    Answer(ApprovalId, ApprovalAnswer, AnswerSource),
    Cancel,
}

async fn run_action(
    conversation: &mut Conversation,
    action: TurnAction<'_>,
    show: &mut impl FnMut(TurnUpdate) -> std::io::Result<()>,
) -> Result<TurnEnd, Failure> {
    let stop = CancelToken::new();
    let (sender, shown) = turn_updates();
    let has_started = Cell::new(!matches!(action, TurnAction::Ask(_)));
    let run = async {
        // Dropping the sender with the turn ends the display loop.
        let sender = sender;
        let turn = start_action(conversation, action, &stop, &sender);
        tokio::pin!(turn);
        tokio::select! {
            end = &mut turn => end,
            () = stop_requested() => {
                stop.cancel();
                turn.await
            }
        }
    };
    // If the display fails, the receiver is dropped, and the turn runs to its end.
    let showing = async {
        let mut shown = shown;
        while let Some(item) = shown.recv().await {
            has_started.set(has_started.get() || matches!(item, TurnUpdate::Stored(_)));
            show(item)?;
        }
        Ok::<(), std::io::Error>(())
    };
    let (end, showing) = tokio::join!(run, showing);
    let end = end.map_err(|error| {
        if has_started.get() {
            Failure::in_turn(error, conversation.session())
        } else {
            error.into()
        }
    })?;
    match showing {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(end),
    }
}

async fn start_action(
    conversation: &mut Conversation,
    action: TurnAction<'_>,
    stop: &CancelToken,
    shown: &UpdateSender,
) -> Result<TurnEnd, RunnerError> {
    match action {
        TurnAction::Ask(question) => conversation.turn(question.clone(), stop, shown).await,
        TurnAction::Resume => {
            let end = conversation.resume(stop, shown).await?;
            // Another process has finished the turn: nothing is left to do, and nothing is pending.
            Ok(end.unwrap_or_else(|| TurnEnd::Waiting(Vec::new())))
        }
        TurnAction::Answer(request, answer, by) => {
            conversation.answer(&request, answer, by, stop, shown).await
        }
        TurnAction::Cancel => conversation.cancel_waiting(shown).await,
    }
}

/// Waits for Ctrl-C or a termination signal.
async fn stop_requested() {
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = termination_requested() => {}
    }
}

/// Waits for a termination signal (SIGTERM or SIGHUP).
pub async fn termination_requested() {
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
