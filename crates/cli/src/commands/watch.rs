//! Runs a turn while a user watches: events go to a callback, Ctrl-C stops the turn, and approvals are requested
//! until the turn ends or has to wait.

use super::ask::{ApprovalMode, TerminalApprover};
use lango::app::Failure;
use lango::app::vault::UserVaults;
use lango::{TurnAction, TurnRun};
use lango_core::{ApprovalAnswer, ApprovalId, PendingApproval, UserInput};
use lango_engine::{CancelToken, Conversation, TurnEnd, TurnUpdate, turn_updates};
use std::cell::Cell;
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
}

/// What prompts to the user need.
#[derive(Clone, Copy)]
pub(super) struct PromptContext<'a> {
    /// The workspace, for approvals that apply to a folder.
    pub folder: &'a str,
    /// The vaults that a call may need to unlock.
    pub vaults: &'a UserVaults,
}

/// Runs a turn until it ends or has to wait. If the output is closed, the turn still runs to its end, without an
/// error.
pub(super) async fn watch(
    conversation: &mut Conversation,
    request: TurnRequest<'_>,
    approval_mode: ApprovalMode,
    context: PromptContext<'_>,
    mut show: impl FnMut(TurnUpdate) -> std::io::Result<()>,
) -> Result<WatchedTurn, Failure> {
    let (updates, shown) = turn_updates();
    let approver = TerminalApprover::new(approval_mode, context, updates.backlog());
    let has_started = Cell::new(!matches!(request, TurnRequest::Question(_)));
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
    let run = async {
        // Dropping the sender with the turn ends the display loop.
        let updates = updates;
        let run = TurnRun {
            conversation,
            approver: &approver,
            cancel: &cancel,
            updates: &updates,
        };
        let turn = run.run(action);
        tokio::pin!(turn);
        loop {
            tokio::select! {
                end = &mut turn => return end,
                // A prompt handles signals itself, because it has to restore the terminal.
                () = stop_requested() => if !approver.is_prompting() {
                    cancel.cancel();
                    return turn.await;
                }
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
            Failure::in_turn(error, &session)
        } else {
            error.into()
        }
    })?;
    let denied = approver.finish()?;
    if let Err(error) = showing
        && error.kind() != ErrorKind::BrokenPipe
    {
        return Err(error.into());
    }
    lango::app::clean_up::warn();
    Ok(WatchedTurn { end, denied })
}

/// Waits for Ctrl-C or a termination signal.
async fn stop_requested() {
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = termination_requested() => {}
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
