//! Drives a turn: performs the steps that are ready, feeds results into the turn, and stores the events that follow.

use super::under_way::UnderWay;
use super::{
    Runner, RunnerError, RunnerParts, Shown, Stop, TurnEnd, TurnReport, append, grants, perform,
    remote, report,
};
use crate::turn::{Input, Step, StepKey, Turn};
use lango_core::{Batch, BoxLease, Effect, Event, UserId};
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::mpsc;

/// What ended while a turn waited.
enum Ended {
    /// Nothing: a step told something on its way.
    Nothing,
    Step(Result<(StepKey, Input), RunnerError>),
    /// The turn, by a stop or its deadline.
    Turn(Input),
}

/// How long the call of a pure tool waits for its result before it is stored alone.
const RESULT_WAIT: Duration = Duration::from_millis(20);

/// Takes steps until a turn whose first events are stored has an outcome, or only a person can go on.
pub(super) async fn drive(
    parts: &RunnerParts,
    turn: &mut Turn,
    user: &UserId,
    first: Batch,
    lease: &BoxLease,
    stop: &Stop,
    shown: &mpsc::Sender<Shown>,
) -> Result<TurnEnd, RunnerError> {
    let left = turn.limits().turn_ms.saturating_sub(turn.active_ms());
    let deadline = tokio::time::sleep(Duration::from_millis(left));
    tokio::pin!(deadline);
    let mut under_way = UnderWay::new();
    let mut keys = HashSet::new();
    let mut news = remote::News::default();
    let mut at_work = remote::AtWork::of(turn);
    let mut batch = first;
    // Events of calls of pure tools, which are stored with the results if these come soon.
    let mut unstored: Vec<Event> = Vec::new();
    if turn.limits().turn_ms == 0 && turn.outcome().is_none() {
        let events = turn.accept(Input::TimeSpent, parts.clock.now());
        batch = append(parts, events, shown).await?;
    }
    while turn.outcome().is_none() {
        let granted = grants::use_grants(parts, turn, &batch, shown);
        under_way.during(granted).await?;
        for step in turn.ready() {
            if under_way.len() < Runner::STEPS_AT_ONCE && keys.insert(step.key()) {
                let told = news.sender_for(&step);
                let shown = shown.clone();
                under_way.push(perform::perform(
                    parts, turn, user, lease, step, shown, told,
                ));
            }
        }
        if under_way.is_empty() && turn.is_parked() && !stop.is_stopped() {
            return Ok(TurnEnd::Waiting(turn.waiting()));
        }
        let (told, ended) = tokio::select! {
            biased;
            () = stop.stopped() => (None, Ended::Turn(Input::Cancelled)),
            () = &mut deadline => (None, Ended::Turn(Input::TimeSpent)),
            told = news.next() => (Some(told), Ended::Nothing),
            Some(performed) = under_way.next() => (None, Ended::Step(performed)),
            () = tokio::time::sleep(RESULT_WAIT), if !unstored.is_empty() => {
                let events = std::mem::take(&mut unstored);
                batch = under_way.during(append(parts, events, shown)).await?;
                continue;
            }
        };
        // What a step told on its way comes before its result, and results that are known before the end.
        let mut inputs: Vec<_> = told.into_iter().collect();
        inputs.extend(std::iter::from_fn(|| news.try_next()));
        let (performed, end) = match ended {
            Ended::Nothing => (Vec::new(), None),
            Ended::Step(performed) => (vec![performed], None),
            Ended::Turn(end) => (under_way.take_results(), Some(end)),
        };
        for performed in performed {
            let (key, input) = performed?;
            keys.remove(&key);
            inputs.push(input);
        }
        let mut events = std::mem::take(&mut unstored);
        for input in inputs.into_iter().chain(end) {
            at_work.note(&input);
            events.extend(turn.accept(input, parts.clock.now()));
        }
        if turn.outcome().is_some() {
            // Nothing begins after the end, nor goes on while it is stored.
            under_way = UnderWay::new();
        }
        if under_way.is_empty() && calls_pure_tools(&events, turn) {
            unstored = events;
            batch = Batch::default();
        } else {
            batch = under_way.during(append(parts, events, shown)).await?;
        }
    }
    while let Some(told) = news.try_next() {
        at_work.note(&told);
    }
    at_work.cancel(parts).await;
    Ok(TurnEnd::Finished(TurnReport {
        structured: turn.has_answer_schema(),
        ..report(&batch)
    }))
}

/// Returns whether a turn goes on with calls of pure tools only, and nothing in the events must be stored before: if the process
/// ends meanwhile, no more than a reply of a model is lost.
fn calls_pure_tools(events: &[Event], turn: &Turn) -> bool {
    let is_pure = |step: &Step| matches!(step, Step::CallTool(step) if step.effect == Effect::Pure);
    let steps = turn.ready();
    !steps.is_empty()
        && steps.iter().all(is_pure)
        && !events.iter().any(|event| event.body.is_binding())
}
