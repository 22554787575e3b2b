//! A task with a planted bug. The state machine itself is unchanged; the mutant tampers with its inputs, effects or
//! state.

use crate::server::task::state::{Await, State, Write};
use crate::server::task::{Effect, EffectResult, Input, Request, Task};
use a2a::TaskState;
use lango_core::{TaskPutOutcome, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bug {
    /// Ignores cancel requests from other replicas.
    LoseCancel,
    /// Starts a run although another replica stored its claim first.
    StartTwice,
    /// Ignores that another replica has ended the task.
    OverwriteEnd,
    /// Ignores a newer message that another replica stored.
    OverwriteMessage,
    /// Drops a message that waits for the run.
    ForgetQueued,
    /// Publishes a status before it is stored.
    PublishFirst,
    /// Treats a failed joint write as a write of the task alone, and repeats it.
    RepeatJoint,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mutant {
    pub task: Task,
    bug: Option<Bug>,
}

impl Mutant {
    pub(super) fn new(task: Task, bug: Option<Bug>) -> Self {
        Self { task, bug }
    }

    pub(super) fn accept(&mut self, input: Input, now: Timestamp) -> Vec<Effect> {
        let Some(input) = self.tamper_input(input) else {
            return Vec::new();
        };
        let mut effects = self.task.accept(input, now);
        if self.bug == Some(Bug::ForgetQueued)
            && let State::Running(run) = &mut self.task.state
        {
            run.queued = None;
        }
        if self.bug == Some(Bug::PublishFirst)
            && let Some(Await::Stored {
                write: Write::Status(status),
                ..
            }) = &self.task.awaiting
        {
            for update in status.updates.iter().rev() {
                effects.insert(0, Effect::Publish(update.clone()));
            }
        }
        effects
    }

    fn tamper_input(&self, input: Input) -> Option<Input> {
        let awaiting = &self.task.awaiting;
        Some(match (self.bug, input) {
            (Some(Bug::LoseCancel), Input::CancelRequested) => return None,
            (Some(Bug::LoseCancel), Input::Request { caller, request }) => Input::Request {
                caller,
                request: match request {
                    Request::Recover { .. } => Request::Recover {
                        is_cancel_requested: false,
                    },
                    request => request,
                },
            },
            (
                Some(Bug::StartTwice),
                Input::Result(EffectResult::Stored(Ok(TaskPutOutcome::Outdated))),
            ) if matches!(awaiting, Some(Await::Claimed(_))) => {
                Input::Result(EffectResult::Stored(Ok(TaskPutOutcome::Stored)))
            }
            (Some(Bug::OverwriteEnd), Input::Result(EffectResult::Loaded(Ok(mut document))))
                if matches!(awaiting, Some(Await::Conflict { .. })) =>
            {
                document.task.status.state = TaskState::Working;
                Input::Result(EffectResult::Loaded(Ok(document)))
            }
            (
                Some(Bug::OverwriteMessage),
                Input::Result(EffectResult::Loaded(Ok(mut document))),
            ) if matches!(awaiting, Some(Await::Conflict { .. }))
                && !document.state().is_terminal() =>
            {
                document
                    .task
                    .history
                    .clone_from(&self.task.document.task.history);
                Input::Result(EffectResult::Loaded(Ok(document)))
            }
            (
                Some(Bug::RepeatJoint),
                Input::Reported {
                    mut caller,
                    run,
                    report,
                },
            ) => {
                caller.is_joint = false;
                Input::Reported {
                    caller,
                    run,
                    report,
                }
            }
            (_, input) => input,
        })
    }
}
