//! Running a turn while somebody watches: what is shown goes to a function, Ctrl-C stops the turn, and what waits for an
//! answer is asked for until the turn ends or has to wait.

use super::ask::{Asker, Reply};
use crate::exit::{Exit, Failure};
use crate::screen;
use crate::vault::UserVaults;
use lango_core::{Answer, AnsweredBy, ApprovalId, TurnId, UserInput, Waiting};
use lango_engine::{Conversation, RunnerError, Shown, Standing, Stop, TurnEnd};
use std::cell::Cell;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::sync::mpsc;

/// What a turn is given.
pub enum Given<'a> {
    /// A question begins one.
    Question(&'a UserInput),
    /// An answer lets the one that waits go on.
    Answer(ApprovalId, Answer),
    /// Nothing new: the one that was cut off goes on, the one that waits is asked about again. If somebody else saw to it
    /// meanwhile, nothing waits.
    Nothing,
}

/// How far a turn came while it was watched.
pub struct Watched {
    /// How far it came.
    pub end: TurnEnd,
    /// What was denied because nobody could be asked.
    pub denied: Vec<Waiting>,
}

/// Where the user is asked.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The folder that the agents work in.
    pub folder: &'a str,
    /// The vaults that calls may need unlocked.
    pub vaults: &'a UserVaults,
}

/// Runs a turn until it ends, or until it has to wait. That nobody looks any more is no failure.
pub async fn watch(
    conversation: &mut Conversation,
    given: Given<'_>,
    asker: Asker,
    place: Place<'_>,
    mut show: impl FnMut(Shown) -> std::io::Result<()>,
) -> Result<Watched, Failure> {
    let mut denied = Vec::new();
    let mut end = match given {
        Given::Question(question) => go(conversation, Go::Ask(question), &mut show).await?,
        Given::Answer(request, answer) => {
            let answer = prepare(conversation, place, &request, answer).await?;
            let go_on = Go::Answer(request, answer, AnsweredBy::Person);
            go(conversation, go_on, &mut show).await?
        }
        Given::Nothing if conversation.is_cut_off() => {
            go(conversation, Go::Resume, &mut show).await?
        }
        Given::Nothing => TurnEnd::Waiting(conversation.waiting().to_vec()),
    };
    while let TurnEnd::Waiting(waiting) = &end {
        let next = match asker.ask(conversation, waiting, place.folder).await? {
            Reply::Wait => break,
            Reply::Stop => Go::Stop,
            Reply::Answered(answer, by) => {
                if by == AnsweredBy::Nobody {
                    denied.extend(waiting.first().cloned());
                }
                let request = waiting[0].request.id.clone();
                let turn = waiting[0].turn.clone();
                conversation.refresh().await?;
                let mut left = conversation.waiting().iter();
                if !left.any(|waiting| waiting.request.id == request) {
                    screen::say("answered elsewhere; the turn goes on there");
                    end = outcome(conversation, &turn).await?;
                    continue;
                }
                match prepare(conversation, place, &request, answer).await {
                    Ok(answer) => Go::Answer(request, answer, by),
                    // Ctrl-C at a prompt stops the turn, as it does while the turn runs.
                    Err(failure) if failure.exit == Exit::Interrupted => Go::Stop,
                    Err(failure) => return Err(failure),
                }
            }
        };
        end = go(conversation, next, &mut show).await?;
    }
    crate::clean_up::warn();
    Ok(Watched { end, denied })
}

/// Interval between two looks at a turn that another process continues.
const POLL: Duration = Duration::from_millis(200);

/// Waits until a turn that another process continues ends or waits again.
async fn outcome(conversation: &Conversation, turn: &TurnId) -> Result<TurnEnd, Failure> {
    loop {
        match conversation.standing(turn).await? {
            Standing::Finished(report) => return Ok(TurnEnd::Finished(report)),
            Standing::Waiting(waiting) => return Ok(TurnEnd::Waiting(waiting)),
            Standing::Unfinished => tokio::time::sleep(POLL).await,
            Standing::Unknown => return Err(RunnerError::NothingWaits.into()),
        }
    }
}

/// Asks for what an allowed call needs, while the turn waits. Returns the answer, or a refusal if it was not given.
async fn prepare(
    conversation: &Conversation,
    place: Place<'_>,
    request: &ApprovalId,
    answer: Answer,
) -> Result<Answer, Failure> {
    let mut waiting = conversation.waiting().iter();
    let waiting = waiting.find(|waiting| waiting.request.id == *request);
    match waiting.filter(|_| answer.allows()) {
        Some(waiting) => {
            let prepared = place.vaults.prepare(conversation.user(), waiting).await?;
            Ok(prepared.unwrap_or(answer))
        }
        None => Ok(answer),
    }
}

/// What a conversation does next.
enum Go<'a> {
    Ask(&'a UserInput),
    Resume,
    Answer(ApprovalId, Answer, AnsweredBy),
    Stop,
}

async fn go(
    conversation: &mut Conversation,
    go: Go<'_>,
    show: &mut impl FnMut(Shown) -> std::io::Result<()>,
) -> Result<TurnEnd, Failure> {
    let stop = Stop::new();
    let (sender, shown) = mpsc::channel(64);
    let is_begun = Cell::new(!matches!(go, Go::Ask(_)));
    let run = async {
        // The sender is dropped with the turn, which ends the showing.
        let sender = sender;
        let turn = act(conversation, go, &stop, &sender);
        tokio::pin!(turn);
        tokio::select! {
            end = &mut turn => end,
            () = asked_to_stop() => {
                stop.stop();
                turn.await
            }
        }
    };
    // The receiver is dropped when showing fails, so that the turn goes on to its end and waits for nobody.
    let showing = async {
        let mut shown = shown;
        while let Some(item) = shown.recv().await {
            is_begun.set(is_begun.get() || matches!(item, Shown::Stored(_)));
            show(item)?;
        }
        Ok::<(), std::io::Error>(())
    };
    let (end, showing) = tokio::join!(run, showing);
    let end = end.map_err(|error| match is_begun.get() {
        true => Failure::in_turn(error, conversation.session()),
        false => error.into(),
    })?;
    match showing {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(end),
    }
}

async fn act(
    conversation: &mut Conversation,
    go: Go<'_>,
    stop: &Stop,
    shown: &mpsc::Sender<Shown>,
) -> Result<TurnEnd, RunnerError> {
    match go {
        Go::Ask(question) => conversation.turn(question.clone(), stop, shown).await,
        Go::Resume => {
            let end = conversation.resume(stop, shown).await?;
            // Whoever was at work on it has brought it to its end: nothing is left, and nothing waits.
            Ok(end.unwrap_or_else(|| TurnEnd::Waiting(Vec::new())))
        }
        Go::Answer(request, answer, by) => {
            conversation.answer(&request, answer, by, stop, shown).await
        }
        Go::Stop => conversation.stop_waiting(shown).await,
    }
}

/// Waits for Ctrl-C, or for the signals with which systems end a service.
async fn asked_to_stop() {
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = asked_to_end() => {}
    }
}

/// Waits for the signals with which systems end a service.
pub async fn asked_to_end() {
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
