//! Drives a turn: performs the steps that are ready, feeds results into the turn, and stores the events that follow.

use super::answers::{Answers, GivenAnswer};
use super::under_way::UnderWay;
use super::{
    Output, Runner, RunnerError, RunnerParts, Stop, TurnEnd, TurnReport, append, append_last,
    grants, perform, remote, report,
};
use crate::turn::{Input, Step, StepKey, Turn};
use lango_core::{AnsweredBy, Batch, BoxLease, Effect, Event, UserId};
use std::collections::HashSet;
use std::time::Duration;

/// Why a turn stops waiting.
enum WakeReason {
    /// The user answered a request while other steps run.
    Answer(GivenAnswer),
    /// A running step made progress.
    Progress(Input),
    /// A step finished.
    Step(Result<(StepKey, Input), RunnerError>),
    /// The user stopped the turn, or its deadline passed.
    End(Input),
}

/// How long to wait for the result of a pure tool before its call is stored without the result.
const RESULT_WAIT: Duration = Duration::from_millis(20);

/// Runs a turn, whose first events are stored, until it has an outcome or waits for an approval.
pub(super) async fn drive(
    parts: &RunnerParts,
    turn: &mut Turn,
    user: &UserId,
    first: Batch,
    lease: &BoxLease,
    (stop, answers): (&Stop, &Answers),
    output: Output<'_>,
) -> Result<TurnEnd, RunnerError> {
    let shown = output.shown;
    let answers = answers.open();
    let left = turn.limits().turn_ms.saturating_sub(turn.active_ms());
    let deadline = tokio::time::sleep(Duration::from_millis(left));
    tokio::pin!(deadline);
    let mut under_way = UnderWay::new();
    let mut keys = HashSet::new();
    let mut news = remote::News::default();
    let mut at_work = remote::AtWork::of(turn);
    let mut batch = first;
    // Calls of pure tools that are stored together with their results, or after `RESULT_WAIT`.
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
        let has_stopped = under_way.is_empty() && turn.is_parked() && !stop.is_stopped();
        if has_stopped && answers.close_if_empty() {
            return Ok(TurnEnd::Waiting(turn.waiting()));
        }
        let reason = tokio::select! {
            biased;
            () = stop.stopped() => WakeReason::End(Input::Cancelled),
            () = &mut deadline => WakeReason::End(Input::TimeSpent),
            given = answers.next() => WakeReason::Answer(given),
            progress = news.next() => WakeReason::Progress(progress),
            Some(performed) = under_way.next() => WakeReason::Step(performed),
            () = tokio::time::sleep(RESULT_WAIT), if !unstored.is_empty() => {
                let events = std::mem::take(&mut unstored);
                batch = under_way.during(append(parts, events, shown)).await?;
                continue;
            }
        };
        // Progress of a step precedes its result, and finished results precede the end of the turn.
        let mut taken = None;
        let (progress, performed, end) = match reason {
            WakeReason::Answer(given) => match check_answer(turn, &given) {
                Ok(input) => {
                    taken = Some(given.taken);
                    (Some(input), Vec::new(), None)
                }
                Err(error) => {
                    // The caller may be gone.
                    let _ = given.taken.send(Err(error));
                    batch = Batch::default();
                    continue;
                }
            },
            WakeReason::Progress(progress) => (Some(progress), Vec::new(), None),
            WakeReason::Step(performed) => (None, vec![performed], None),
            WakeReason::End(end) => (None, under_way.take_results(), Some(end)),
        };
        let mut inputs: Vec<Input> = progress.into_iter().collect();
        inputs.extend(std::iter::from_fn(|| news.try_next()));
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
            // No step may start or continue while the end of the turn is stored.
            under_way = UnderWay::new();
            let report = report_of(turn, &events);
            batch = append_last(parts, events, &report, output).await?;
        } else if under_way.is_empty() && calls_pure_tools(&events, turn) {
            unstored = events;
            batch = Batch::default();
        } else {
            batch = under_way.during(append(parts, events, shown)).await?;
        }
        if let Some(taken) = taken {
            let _ = taken.send(Ok(()));
        }
    }
    while let Some(told) = news.try_next() {
        at_work.note(&told);
    }
    at_work.cancel(parts).await;
    Ok(TurnEnd::Finished(report_of(turn, &batch)))
}

/// Returns an answer as an input of its turn, if it answers a request that waits.
fn check_answer(turn: &Turn, given: &GivenAnswer) -> Result<Input, RunnerError> {
    let waiting = turn.waiting();
    let mut asked = waiting.iter().map(|waiting| &waiting.request);
    let request = given.request.clone();
    let Some(asked) = asked.find(|asked| asked.id == request) else {
        return Err(RunnerError::NotWaiting { request });
    };
    if !given.answer.fits(asked.asks) {
        let answer = given.answer.word();
        return Err(RunnerError::NoAnswer { request, answer });
    }
    Ok(Input::Answered {
        request,
        answer: given.answer.clone(),
        by: AnsweredBy::Person,
    })
}

/// Returns the report of a turn that has ended with these events.
fn report_of(turn: &Turn, last: &[Event]) -> TurnReport {
    TurnReport {
        structured: turn.has_answer_schema(),
        ..report(last)
    }
}

/// Returns whether the next steps only call pure tools and no event is binding. These events may be stored later: a crash loses
/// at most one reply of a model.
fn calls_pure_tools(events: &[Event], turn: &Turn) -> bool {
    let is_pure = |step: &Step| matches!(step, Step::CallTool(step) if step.effect == Effect::Pure);
    let steps = turn.ready();
    !steps.is_empty()
        && steps.iter().all(is_pure)
        && !events.iter().any(|event| event.body.is_binding())
}
