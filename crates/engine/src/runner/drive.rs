//! The loop of a turn.

use super::answer_inbox::PendingAnswer;
use super::conversation::Conversation;
use super::running_steps::RunningSteps;
use super::spans::log_end;
use super::turn_context::TurnContext;
use super::{
    Runner, RunnerError, TurnEnd, TurnReport, append, append_last, grants, remote, report, step,
};
use crate::turn::{StepKey, Turn, TurnInput, TurnStep};
use lango_core::{Effect, Event, EventBatch};
use std::collections::HashSet;
use std::time::Duration;

/// Why a turn wakes up.
enum WakeReason {
    /// The user answered a request while other steps run.
    Answer(PendingAnswer),
    /// A running step made progress.
    Progress(TurnInput),
    Step(Result<(StepKey, TurnInput), RunnerError>),
    /// The user cancelled the turn, or its deadline passed.
    End(TurnInput),
}

/// How long to wait for the result of a pure tool before its call is stored without the result.
const RESULT_WAIT: Duration = Duration::from_millis(20);

impl Conversation {
    /// Drives a turn whose first events are stored, until it has an outcome or waits for an approval: starts the steps
    /// that are ready, waits for a result, passes it to the turn, and stores the events that follow.
    pub(super) async fn drive(
        &self,
        turn: &mut Turn,
        first: EventBatch,
        context: TurnContext<'_>,
    ) -> Result<TurnEnd, RunnerError> {
        let parts = &*self.parts;
        let TurnContext {
            cancel, updates, ..
        } = context;
        let answers = self.answers.listen();
        let remaining_ms = turn.limits().turn_ms.saturating_sub(turn.active_ms());
        let deadline = tokio::time::sleep(Duration::from_millis(remaining_ms));
        tokio::pin!(deadline);
        let mut running_steps = RunningSteps::new();
        let mut keys = HashSet::new();
        let mut remote_progress = remote::RemoteProgress::default();
        let mut remote_tasks = remote::RemoteTasks::of(turn);
        let mut batch = first;
        // Calls of pure tools, to be stored together with their results, or after `RESULT_WAIT`.
        let mut unstored: Vec<Event> = Vec::new();
        if turn.limits().turn_ms == 0 && turn.outcome().is_none() {
            let events = turn.accept(
                TurnInput::TimeSpent {
                    printed: Vec::new(),
                },
                parts.clock.now(),
            );
            batch = append(parts, events, updates).await?;
        }
        while turn.outcome().is_none() {
            // Start what is ready.
            let granted = grants::use_grants(parts, turn, &batch, updates);
            running_steps.during(granted).await?;
            for step in turn.ready() {
                if running_steps.len() < Runner::MAX_RUNNING_STEPS && keys.insert(step.key()) {
                    let progress = remote_progress.sender_for(&step);
                    let user = &self.user;
                    running_steps.push(step::perform(parts, turn, user, step, context, progress));
                }
            }
            answers.publish(turn);
            let has_stopped =
                running_steps.is_empty() && turn.is_parked() && !cancel.is_cancelled();
            if has_stopped && answers.close_if_empty() {
                let end = TurnEnd::Waiting(turn.waiting());
                log_end(&end);
                return Ok(end);
            }
            // Wait for a result or another input.
            let reason = tokio::select! {
                biased;
                () = cancel.cancelled() => WakeReason::End(TurnInput::Cancelled { partial: updates.partial_replies(), printed: updates.printed() }),
                () = &mut deadline => WakeReason::End(TurnInput::TimeSpent { printed: updates.printed() }),
                given = answers.next() => WakeReason::Answer(given),
                progress = remote_progress.next() => WakeReason::Progress(progress),
                Some(performed) = running_steps.next() => WakeReason::Step(performed),
                () = tokio::time::sleep(RESULT_WAIT), if !unstored.is_empty() => {
                    let events = std::mem::take(&mut unstored);
                    batch = running_steps.during(append(parts, events, updates)).await?;
                    continue;
                }
            };
            // Progress of a step precedes its result, and finished results precede the end of the turn.
            let mut reply = None;
            let (progress, performed, mut end) = match reason {
                WakeReason::Answer(given) => match check_answer(turn, &given) {
                    Ok(input) => {
                        reply = Some(given.reply);
                        (Some(input), Vec::new(), None)
                    }
                    Err(error) => {
                        // The caller may be gone.
                        let _ = given.reply.send(Err(error));
                        batch = EventBatch::default();
                        continue;
                    }
                },
                WakeReason::Progress(progress) => (Some(progress), Vec::new(), None),
                WakeReason::Step(performed) => (None, vec![performed], None),
                WakeReason::End(end) => (None, running_steps.take_results(), Some(end)),
            };
            let mut inputs: Vec<TurnInput> = progress.into_iter().collect();
            inputs.extend(std::iter::from_fn(|| remote_progress.try_next()));
            for performed in performed {
                let (key, input) = performed?;
                keys.remove(&key);
                if let (Some(TurnInput::Cancelled { partial, .. }), StepKey::Frame(frame)) =
                    (&mut end, &key)
                {
                    // Its reply is complete.
                    partial.retain(|reply| reply.frame != *frame);
                }
                inputs.push(input);
            }
            // Let the turn decide, and store what it decided.
            let mut events = std::mem::take(&mut unstored);
            for input in inputs.into_iter().chain(end) {
                remote_tasks.note(&input);
                events.extend(turn.accept(input, parts.clock.now()));
            }
            if turn.outcome().is_some() {
                // No step may start or continue while the end of the turn is stored.
                running_steps = RunningSteps::new();
                let report = report_of(turn, &events);
                batch = append_last(parts, events, &report, context).await?;
            } else if running_steps.is_empty() && calls_pure_tools(&events, turn) {
                unstored = events;
                batch = EventBatch::default();
            } else {
                batch = running_steps.during(append(parts, events, updates)).await?;
            }
            if let Some(reply) = reply {
                let _ = reply.send(Ok(()));
            }
        }
        while let Some(input) = remote_progress.try_next() {
            remote_tasks.note(&input);
        }
        remote_tasks.cancel(parts).await;
        let end = TurnEnd::Finished(report_of(turn, &batch));
        log_end(&end);
        Ok(end)
    }
}

/// Converts an answer to an input of the turn. Fails if its request is not pending or the answer does not fit.
fn check_answer(turn: &Turn, given: &PendingAnswer) -> Result<TurnInput, RunnerError> {
    let waiting = turn.waiting();
    let mut asked = waiting.iter().map(|waiting| &waiting.request);
    let request = given.request.clone();
    let Some(asked) = asked.find(|asked| asked.id == request) else {
        return Err(RunnerError::NotPending { request });
    };
    if !given.answer.fits(asked.question) {
        let answer = given.answer.name();
        return Err(RunnerError::WrongAnswer { request, answer });
    }
    Ok(TurnInput::Answered {
        request,
        answer: given.answer.clone(),
        by: given.by.clone(),
    })
}

/// Returns the report of a turn that ended with these events.
fn report_of(turn: &Turn, last: &[Event]) -> TurnReport {
    TurnReport {
        structured: turn.has_answer_schema(),
        ..report(last)
    }
}

/// Whether the next steps call only pure tools and none of these events must be durable. If so, the events may be
/// stored later, because a crash loses at most one reply of a model.
fn calls_pure_tools(events: &[Event], turn: &Turn) -> bool {
    let is_pure =
        |step: &TurnStep| matches!(step, TurnStep::CallTool(step) if step.effect == Effect::Pure);
    let steps = turn.ready();
    !steps.is_empty()
        && steps.iter().all(is_pure)
        && !events.iter().any(|event| event.body.must_be_durable())
}
