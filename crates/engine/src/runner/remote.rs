//! Calls of remote agents: in the conversation that the session has with each, and with a word to stop when nobody waits
//! for them any more.

use super::draft::Draft;
use super::{Runner, RunnerParts, attachments};
use crate::attachments::check_files;
use crate::turn::{Input, RemoteStep, Step, Turn};
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

/// What steps tell before they are done. Only calls of remote agents do, so it costs nothing without one.
#[derive(Default)]
pub(super) struct News {
    channel: Option<(mpsc::Sender<Input>, mpsc::Receiver<Input>)>,
}

impl News {
    /// Where this step tells, if it is one that does.
    pub fn sender_for(&mut self, step: &Step) -> Option<mpsc::Sender<Input>> {
        let Step::CallRemote(_) = step else {
            return None;
        };
        let channel = || mpsc::channel(Runner::STEPS_AT_ONCE);
        let (sender, _) = self.channel.get_or_insert_with(channel);
        Some(sender.clone())
    }

    /// Waits for the next.
    pub async fn next(&mut self) -> Input {
        match &mut self.channel {
            // One sender is here, so there is always another to wait for.
            Some((_, heard)) => match heard.recv().await {
                Some(input) => input,
                None => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }

    /// The next that is there.
    pub fn try_next(&mut self) -> Option<Input> {
        let (_, heard) = self.channel.as_mut()?;
        heard.try_recv().ok()
    }
}

/// Tasks that remote agents took and have not answered.
pub(super) struct AtWork {
    tasks: HashMap<FrameId, (AgentName, RemoteThread)>,
}

impl AtWork {
    /// Those that the log of a turn tells of.
    pub fn of(turn: &Turn) -> Self {
        let steps = turn.ready().into_iter().filter_map(|step| match step {
            Step::CallRemote(step) => step
                .accepted
                .map(|thread| (step.frame, (step.agent, thread))),
            Step::CallModel(_) | Step::CallTool(_) => None,
        });
        Self {
            tasks: steps.collect(),
        }
    }

    /// Notes what a step tells.
    pub fn note(&mut self, input: &Input) {
        match input {
            Input::RemoteAccepted { step, thread } => {
                let task = (step.agent.clone(), thread.clone());
                self.tasks.insert(step.frame.clone(), task);
            }
            Input::RemoteReturned { step, .. } => {
                self.tasks.remove(&step.frame);
            }
            _ => {}
        }
    }

    /// Tells all of them to stop: the turn is over.
    pub async fn cancel(self, parts: &RunnerParts) {
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

/// Returns the timeout of a remote agent that has its own.
pub(super) fn timeout(parts: &RunnerParts, agent: &AgentName) -> Option<Duration> {
    find(parts, agent)?.timeout()
}

/// What a remote agent is asked: its task, in the conversation that the session has with it, or what became of it.
pub(super) async fn what_to_ask(
    parts: &RunnerParts,
    user: &UserId,
    session: &SessionId,
    turn: &TurnId,
    step: &RemoteStep,
) -> Result<RemoteCall, RemoteError> {
    if let Some(thread) = &step.accepted {
        let thread = thread.clone();
        return Ok(RemoteCall::GoOn { thread });
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

/// Stores the files of an answer. What cannot be attached is named in its text.
pub(super) async fn store_files(
    parts: &RunnerParts,
    user: &UserId,
    input: Input,
) -> Result<Input, StoreError> {
    let Input::RemoteReturned {
        step,
        result: Ok(mut answer),
        ..
    } = input
    else {
        return Ok(input);
    };
    let (files, refused) = check_files(std::mem::take(&mut answer.files));
    for problem in refused {
        answer.text.push('\n');
        answer.text.push_str(&problem);
    }
    if answer.text.trim().is_empty() && !files.is_empty() {
        "[it answered with files only]".clone_into(&mut answer.text);
    }
    let attachments = attachments::store_files(parts, user, files).await?;
    Ok(Input::RemoteReturned {
        step,
        result: Ok(answer),
        attachments,
    })
}

/// Asks a remote agent, and waits for its answer as long as a call may take.
pub(super) async fn call(
    parts: &RunnerParts,
    step: RemoteStep,
    call: Result<RemoteCall, RemoteError>,
    time: Duration,
    mut draft: Draft,
    news: Option<mpsc::Sender<Input>>,
) -> Input {
    let remote = find(parts, &step.agent);
    let mut accepted = step.accepted.clone();
    if let Some(thread) = accepted.clone() {
        // It is at work again, and has to be told when the turn ends.
        tell(news.as_ref(), &step, thread).await;
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
                news.as_ref(),
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
                                "no answer within {} s; nobody knows whether it was done",
                                time.as_secs_f32()
                            ),
                        )
                    })
                }
            }
        }
    };
    if result.is_err() {
        draft.withdraw().await;
    }
    Input::RemoteReturned {
        step,
        result,
        attachments: Vec::new(),
    }
}

/// Asks what became of the tasks that remote agents took, of a turn whose process is gone.
pub(super) async fn hear(
    parts: &RunnerParts,
    user: &UserId,
    turn: &Turn,
) -> Result<Vec<Input>, StoreError> {
    let took = |step: &RemoteStep| step.accepted.as_ref()?.task.is_some().then_some(());
    let steps = turn.ready().into_iter().filter_map(|step| match step {
        Step::CallRemote(step) => took(&step).map(|()| step),
        Step::CallModel(_) | Step::CallTool(_) => None,
    });
    let each = steps.map(|step| async {
        let (nobody, _) = mpsc::channel(1);
        let call = what_to_ask(parts, user, turn.session(), turn.id(), &step).await;
        let draft = Draft::new(step.agent.clone(), nobody, false);
        let input = self::call(parts, step, call, Runner::HEARING, draft, None).await;
        store_files(parts, user, input).await
    });
    join_all(each).await.into_iter().collect()
}

/// Hears what a remote agent says until its answer.
async fn listen(
    remote: &dyn RemoteAgent,
    call: RemoteCall,
    step: &RemoteStep,
    accepted: &mut Option<RemoteThread>,
    draft: &mut Draft,
    news: Option<&mpsc::Sender<Input>>,
) -> Result<RemoteAnswer, RemoteError> {
    let mut stream = remote.call(call);
    while let Some(event) = stream.next().await {
        match event? {
            RemoteEvent::Accepted(thread) => {
                *accepted = Some(thread.clone());
                tell(news, step, thread).await;
            }
            RemoteEvent::Text(text) => draft.push(&text).await,
            RemoteEvent::Withdrawn => draft.withdraw().await,
            RemoteEvent::Answer(answer) => return Ok(answer),
        }
    }
    Err(RemoteError {
        is_unknown: true,
        ..failed(step, "it ended without an answer".to_owned())
    })
}

/// Tells the turn under which names a task was taken; whoever asks after a crash knows them.
async fn tell(news: Option<&mpsc::Sender<Input>>, step: &RemoteStep, thread: RemoteThread) {
    if let Some(news) = news {
        let step = step.clone();
        // The other end is there as long as the turn is.
        let _ = news.send(Input::RemoteAccepted { step, thread }).await;
    }
}

/// Tells a remote agent to stop, if it took a task.
async fn cancel(remote: &dyn RemoteAgent, accepted: Option<&RemoteThread>) {
    if let Some(thread) = accepted.filter(|thread| thread.task.is_some()) {
        let _ = tokio::time::timeout(Runner::CANCELLING, remote.cancel(thread)).await;
    }
}

fn failed(step: &RemoteStep, detail: String) -> RemoteError {
    RemoteError {
        agent: step.agent.clone(),
        detail,
        is_unknown: false,
    }
}
