//! Calls remote agents. Each call continues the session's conversation with the agent, and is cancelled when its turn
//! ends.

use super::draft::Draft;
use super::{Runner, RunnerParts, attachments, turn_updates};
use crate::attachments::check_files;
use crate::turn::{RemoteStep, Turn, TurnInput, TurnStep};
use futures_util::StreamExt;
use futures_util::future::join_all;
use lango_core::{
    AgentName, FrameId, RemoteAgent, RemoteAnswer, RemoteCall, RemoteError, RemoteEvent,
    RemoteThread, SessionId, StoreError, TurnId, UserId,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Progress that steps report before they finish. Only remote calls report any, so other turns never create the
/// channel.
#[derive(Default)]
pub(super) struct RemoteProgress {
    channel: Option<(mpsc::Sender<TurnInput>, mpsc::Receiver<TurnInput>)>,
}

impl RemoteProgress {
    /// Returns the channel on which this step reports progress, if it does.
    pub(crate) fn sender_for(&mut self, step: &TurnStep) -> Option<mpsc::Sender<TurnInput>> {
        let TurnStep::CallRemote(_) = step else {
            return None;
        };
        let channel = || mpsc::channel(Runner::MAX_RUNNING_STEPS);
        let (sender, _) = self.channel.get_or_insert_with(channel);
        Some(sender.clone())
    }

    /// Waits for the next report. Never resolves if there is no channel.
    pub(crate) async fn next(&mut self) -> TurnInput {
        match &mut self.channel {
            // This struct also has a sender, so the channel never closes.
            Some((_, receiver)) => match receiver.recv().await {
                Some(input) => input,
                None => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }

    /// Returns the next report if one has already arrived.
    pub(crate) fn try_next(&mut self) -> Option<TurnInput> {
        let (_, receiver) = self.channel.as_mut()?;
        receiver.try_recv().ok()
    }
}

/// Tasks that remote agents accepted and have not finished.
pub(super) struct RemoteTasks {
    tasks: HashMap<FrameId, (AgentName, RemoteThread)>,
}

impl RemoteTasks {
    /// Finds the accepted tasks in the log of a turn.
    pub(crate) fn of(turn: &Turn) -> Self {
        let steps = turn.ready().into_iter().filter_map(|step| match step {
            TurnStep::CallRemote(step) => step
                .accepted
                .map(|thread| (step.frame, (step.agent, thread))),
            TurnStep::CallModel(_) | TurnStep::CallTool(_) => None,
        });
        Self {
            tasks: steps.collect(),
        }
    }

    /// Updates the tasks from an input of the turn.
    pub(crate) fn note(&mut self, input: &TurnInput) {
        match input {
            TurnInput::RemoteAccepted { step, thread } => {
                let task = (step.agent.clone(), thread.clone());
                self.tasks.insert(step.frame.clone(), task);
            }
            TurnInput::RemoteReturned { step, .. } => {
                self.tasks.remove(&step.frame);
            }
            _ => {}
        }
    }

    /// Cancels all tasks, because the turn is over.
    pub(crate) async fn cancel(self, parts: &RunnerParts) {
        let each = self.tasks.values().filter_map(|(agent, thread)| {
            let remote = find(parts, agent)?;
            Some(cancel(remote, Some(thread)))
        });
        join_all(each).await;
    }
}

fn find<'a>(parts: &'a RunnerParts, agent: &AgentName) -> Option<&'a dyn RemoteAgent> {
    let mut remotes = parts.remotes.iter();
    let remote = remotes.find(|remote| remote.name() == agent);
    remote.map(AsRef::as_ref)
}

/// Returns the agent's timeout, if it has its own.
pub(super) fn timeout(parts: &RunnerParts, agent: &AgentName) -> Option<Duration> {
    find(parts, agent)?.timeout()
}

/// Builds the request for a remote agent: its task in the session's conversation with it, or the request to resume an
/// accepted task. Fails if the mode forbids changes, because a remote agent may make some.
pub(super) async fn remote_request(
    parts: &RunnerParts,
    user: &UserId,
    session: &SessionId,
    turn: &TurnId,
    step: &RemoteStep,
) -> Result<RemoteCall, RemoteError> {
    if let Some(thread) = &step.accepted {
        let thread = thread.clone();
        return Ok(RemoteCall::Resume { thread });
    }
    let mode = parts.mode.get();
    if !mode.allows_changes() {
        let detail = format!(
            "it was not called, because it could change something and the permission mode is `{mode}`"
        );
        return Err(failed(step, detail));
    }
    let not_read = |error: StoreError| failed(step, error.to_string());
    let thread = parts.store.remote_thread(session, &step.agent).await;
    let thread = thread.map_err(not_read)?;
    let mut text = Arc::clone(&step.task);
    let (files, gone) = attachments::read_files(parts, user, &step.attachments)
        .await
        .map_err(not_read)?;
    for name in gone {
        text = format!("{text}\n[`{name}` is not attached: its content was deleted]").into();
    }
    Ok(RemoteCall::Send {
        key: format!("{turn}/{}", step.frame),
        text,
        files,
        thread,
    })
}

/// Stores the files of an answer. For each file that cannot be attached, appends a sentence to the answer's text.
pub(super) async fn store_files(
    parts: &RunnerParts,
    user: &UserId,
    input: TurnInput,
) -> Result<TurnInput, StoreError> {
    let TurnInput::RemoteReturned {
        step,
        result: Ok(mut answer),
        ..
    } = input
    else {
        return Ok(input);
    };
    let (files, refused) = check_files(std::mem::take(&mut answer.files));
    let (attachments, omitted) = attachments::store_files(parts, user, files).await?;
    for problem in refused.into_iter().chain(omitted) {
        answer.text.push('\n');
        answer.text.push_str(&problem);
    }
    if answer.text.trim().is_empty() && !attachments.is_empty() {
        "[it answered only with files]".clone_into(&mut answer.text);
    }
    Ok(TurnInput::RemoteReturned {
        step,
        result: Ok(answer),
        attachments,
    })
}

/// Calls a remote agent and waits for its answer until the timeout.
pub(super) async fn call(
    parts: &RunnerParts,
    step: RemoteStep,
    call: Result<RemoteCall, RemoteError>,
    time: Duration,
    mut draft: Draft<'_>,
    progress: Option<mpsc::Sender<TurnInput>>,
) -> TurnInput {
    let remote = find(parts, &step.agent);
    let mut accepted = step.accepted.clone();
    if let Some(thread) = accepted.clone() {
        // The agent is working again and must be cancelled when the turn ends.
        report_accepted(progress.as_ref(), &step, thread).await;
    }
    let result = match (remote, call) {
        (_, Err(error)) => Err(error),
        (None, _) => Err(failed(&step, "it is not connected".to_owned())),
        (Some(remote), Ok(call)) => {
            let listening = listen(
                remote,
                call,
                &step,
                &mut accepted,
                &mut draft,
                progress.as_ref(),
            );
            match tokio::time::timeout(time, listening).await {
                Ok(result) => result,
                Err(_elapsed) => {
                    cancel(remote, accepted.as_ref()).await;
                    Err(RemoteError {
                        is_unknown: true,
                        ..failed(
                            &step,
                            format!(
                                "no answer within {} s; its outcome is unknown",
                                time.as_secs_f32()
                            ),
                        )
                    })
                }
            }
        }
    };
    if result.is_err() {
        draft.withdraw();
    }
    TurnInput::RemoteReturned {
        step,
        result,
        attachments: Vec::new(),
    }
}

/// Fetches the results of tasks that remote agents accepted in a turn whose process is gone.
pub(super) async fn fetch_results(
    parts: &RunnerParts,
    user: &UserId,
    turn: &Turn,
) -> Result<Vec<TurnInput>, StoreError> {
    let took = |step: &RemoteStep| step.accepted.as_ref()?.task.is_some().then_some(());
    let steps = turn.ready().into_iter().filter_map(|step| match step {
        TurnStep::CallRemote(step) => took(&step).map(|()| step),
        TurnStep::CallModel(_) | TurnStep::CallTool(_) => None,
    });
    let each = steps.map(|step| async {
        let (discarded, _) = turn_updates();
        let call = remote_request(parts, user, turn.session(), turn.id(), &step).await;
        let draft = Draft::new(step.frame.clone(), step.agent.clone(), &discarded, false);
        let input = self::call(
            parts,
            step,
            call,
            Runner::REMOTE_RESULT_TIMEOUT,
            draft,
            None,
        )
        .await;
        store_files(parts, user, input).await
    });
    join_all(each).await.into_iter().collect()
}

/// Processes the stream of a remote agent until its answer.
async fn listen(
    remote: &dyn RemoteAgent,
    call: RemoteCall,
    step: &RemoteStep,
    accepted: &mut Option<RemoteThread>,
    draft: &mut Draft<'_>,
    progress: Option<&mpsc::Sender<TurnInput>>,
) -> Result<RemoteAnswer, RemoteError> {
    let mut stream = remote.call(call);
    while let Some(event) = stream.next().await {
        match event? {
            RemoteEvent::Accepted(thread) => {
                *accepted = Some(thread.clone());
                report_accepted(progress, step, thread).await;
            }
            RemoteEvent::Text(text) => draft.push(&text),
            RemoteEvent::Withdrawn => draft.withdraw(),
            RemoteEvent::Answer(answer) => return Ok(answer),
        }
    }
    Err(RemoteError {
        is_unknown: true,
        ..failed(step, "it ended without an answer".to_owned())
    })
}

/// Reports that the agent accepted the task. The ids are needed to resume the task after a crash.
async fn report_accepted(
    progress: Option<&mpsc::Sender<TurnInput>>,
    step: &RemoteStep,
    thread: RemoteThread,
) {
    if let Some(progress) = progress {
        let step = step.clone();
        // The receiver lives as long as the turn.
        let _ = progress
            .send(TurnInput::RemoteAccepted { step, thread })
            .await;
    }
}

/// Cancels the task of a remote agent, if it accepted one.
async fn cancel(remote: &dyn RemoteAgent, accepted: Option<&RemoteThread>) {
    if let Some(thread) = accepted.filter(|thread| thread.task.is_some()) {
        let _ = tokio::time::timeout(Runner::REMOTE_CANCEL_TIMEOUT, remote.cancel(thread)).await;
    }
}

fn failed(step: &RemoteStep, detail: String) -> RemoteError {
    RemoteError {
        agent: step.agent.clone(),
        detail,
        is_unknown: false,
    }
}
