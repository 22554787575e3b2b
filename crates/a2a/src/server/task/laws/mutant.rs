//! A task with a planted bug: the machine itself is unchanged, its inputs, effects or state are tampered with.

use super::super::state::{Await, State, Write};
use super::super::{Effect, EffectResult, Input, Request, Task};
use a2a::TaskState;
use lango_core::{Put, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// Requests to cancel from other replicas are ignored.
    LoseCancel,
    /// A replica that lost the race to store starts a run all the same.
    StartTwice,
    /// An end that another replica stored is taken for something else.
    OverwriteEnd,
    /// A newer message that another replica stored is not noticed.
    OverwriteMessage,
    /// A message that waits for the run is dropped.
    ForgetQueued,
    /// A status is published with the request to store it.
    PublishFirst,
    /// A joint write that failed is taken for one of the task alone, and repeated.
    RepeatJoint,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Mutant {
    pub task: Task,
    bug: Option<Bug>,
}

impl Mutant {
    pub fn new(task: Task, bug: Option<Bug>) -> Self {
        Self { task, bug }
    }

    pub fn accept(&mut self, input: Input, now: Timestamp) -> Vec<Effect> {
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
            (Some(Bug::StartTwice), Input::Result(EffectResult::Stored(Ok(Put::Overtaken))))
                if matches!(awaiting, Some(Await::Claimed(_))) =>
            {
                Input::Result(EffectResult::Stored(Ok(Put::Stored)))
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
