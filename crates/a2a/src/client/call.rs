//! One call to a remote agent: handles the events of its task until the task has ended.

use super::agent::A2aAgent;
use super::draft::Draft;
use super::files::{RemoteFile, attach};
use super::outcome::{FinalStatus, TaskOutcome, truncate};
use super::read::{self, Item, RemoteState, Status, TaskIds};
use super::refusal::{Refusal, RefusalKind};
use super::stream::{EventStream, StreamEnd};
use lango_core::{RemoteAnswer, RemoteError, RemoteEvent, RemoteThread, Text};
use tokio::sync::mpsc::Sender;

/// The channel for the events of a call.
pub(crate) type EventSender = Sender<Result<RemoteEvent, RemoteError>>;

pub(crate) type CallResult = Result<RemoteAnswer, CallFailure>;

/// Why a call has no answer.
#[derive(Debug)]
pub(crate) struct CallFailure {
    pub detail: String,
    pub is_unknown: bool,
}

/// Whether a call has ended.
pub(crate) enum CallProgress {
    Done(CallResult),
    /// The call has not ended. The text says what was last received, for error messages.
    Pending(String),
}

/// A call in progress.
pub(crate) struct Call<'a> {
    pub agent: &'a A2aAgent,
    sender: EventSender,
    pub task: Option<Text>,
    pub context: Option<Text>,
    /// Whether [`RemoteEvent::Accepted`], which stores the id of the task, was sent.
    pub is_announced: bool,
    /// Whether the message answers a question of the agent.
    pub is_reply: bool,
    draft: Draft,
    pub status: Status,
    /// The last text of the agent before the current status.
    earlier_text: Option<String>,
}

impl<'a> Call<'a> {
    pub(super) fn new(agent: &'a A2aAgent, sender: EventSender) -> Self {
        Self {
            agent,
            sender,
            task: None,
            context: None,
            is_announced: false,
            is_reply: false,
            draft: Draft::default(),
            status: Status {
                state: RemoteState::Running,
                text: None,
                files: Vec::new(),
            },
            earlier_text: None,
        }
    }

    /// Reads a stream until the task or the stream ends.
    pub(super) async fn listen(&mut self, mut events: EventStream) -> CallProgress {
        let timeouts = self.agent.wire.timeouts;
        let mut is_first = true;
        loop {
            let timeout = if self.task.is_some() {
                timeouts.idle
            } else {
                timeouts.reply
            };
            let end = match events.next(timeout).await {
                Ok(value) => {
                    // A stream starts with the current status. After a reply to a question, this may still be the
                    // status from before the reply.
                    let may_be_outdated = self.is_reply && std::mem::take(&mut is_first);
                    match self.handle_item(&value, may_be_outdated).await {
                        CallProgress::Pending(_) => continue,
                        done => return done,
                    }
                }
                Err(end) => end,
            };
            return match end {
                StreamEnd::Interrupted(seen) => CallProgress::Pending(seen),
                StreamEnd::Endless => CallProgress::Done(Err(CallFailure {
                    detail: "its stream is longer than 64 MiB, so lango stopped reading it"
                        .to_owned(),
                    is_unknown: true,
                })),
                StreamEnd::Error(refusal) => self.stream_error(refusal).await,
            };
        }
    }

    /// Handles one item that the server sent.
    pub(super) async fn handle_item(
        &mut self,
        value: &serde_json::Value,
        may_be_outdated: bool,
    ) -> CallProgress {
        let pending = || CallProgress::Pending("it sent nothing that lango understands".to_owned());
        let Some(item) = read::item(value) else {
            return pending();
        };
        match item {
            Item::Message { ids, text, files } if self.task.is_none() => {
                return CallProgress::Done(self.message_only(ids, text, files).await);
            }
            Item::Message { text, .. } => {
                self.earlier_text = Some(text);
                return pending();
            }
            Item::Task {
                ids,
                status,
                artifacts,
                last_text,
            } => {
                if !self.belongs_to_call(ids).await {
                    return pending();
                }
                self.earlier_text = last_text.or(self.earlier_text.take());
                // Some servers leave artifacts that they have already sent out of a snapshot.
                if !artifacts.is_empty() {
                    let events = self.draft.replace_all(artifacts);
                    self.emit(events).await;
                }
                self.set_status(status);
            }
            Item::Status { ids, status } => {
                if !self.belongs_to_call(ids).await {
                    return pending();
                }
                self.set_status(status);
            }
            Item::Artifact {
                ids,
                artifact,
                is_more,
            } => {
                if !self.belongs_to_call(ids).await {
                    return pending();
                }
                let events = self.draft.apply(artifact, is_more);
                self.emit(events).await;
                return pending();
            }
        }
        if may_be_outdated
            && matches!(
                self.status.state,
                RemoteState::InputRequired | RemoteState::AuthRequired
            )
        {
            return pending();
        }
        self.check_end(false).await
    }

    /// Ends the call if the task has ended or waits for input. If the task has no text and this was not a poll, the
    /// call stays open, so that the task is polled once more.
    pub(super) async fn check_end(&mut self, is_poll: bool) -> CallProgress {
        let status = FinalStatus {
            state: self.status.state,
            draft: &self.draft,
            text: self.status.text.as_deref(),
            earlier_text: self.earlier_text.as_deref(),
        };
        let Some(outcome) = status.outcome() else {
            return CallProgress::Pending("it is still running".to_owned());
        };
        if !is_poll && !status.has_text() {
            return CallProgress::Pending("it ended without any text".to_owned());
        }
        let (text, task) = match outcome {
            TaskOutcome::Answer(text) => (text, None),
            TaskOutcome::Question(text) => (text, self.task.clone()),
            TaskOutcome::Failure(detail) => {
                if self.status.state == RemoteState::AuthRequired
                    && let Some(thread) = self.thread(self.task.clone())
                {
                    // Cancel the task. Otherwise it could resume after an authorization, although no caller waits for
                    // it.
                    self.agent.stop(&thread).await;
                }
                return CallProgress::Done(Err(CallFailure {
                    detail,
                    is_unknown: false,
                }));
            }
        };
        let withdrawn = self.draft.before_answer(&text);
        self.emit(withdrawn.into_iter().collect()).await;
        let thread = self.thread(task);
        let mut files: Vec<RemoteFile> = self.draft.files().cloned().collect();
        for file in std::mem::take(&mut self.status.files) {
            if !files.contains(&file) {
                files.push(file);
            }
        }
        CallProgress::Done(Ok(self.answer(text, files, thread).await))
    }

    /// Withdraws the draft text, if any was sent.
    pub(super) async fn withdraw(&mut self) {
        let withdrawn = self.draft.before_answer("");
        self.emit(withdrawn.into_iter().collect()).await;
    }

    async fn message_only(
        &mut self,
        ids: TaskIds,
        text: String,
        files: Vec<RemoteFile>,
    ) -> CallResult {
        if let Some(context) = ids.context {
            self.context = Some(context.into());
        }
        let text = if text.is_empty() {
            "(It answered without any text.)".to_owned()
        } else {
            truncate(text, false)
        };
        let thread = self.thread(None);
        Ok(self.answer(text, files, thread).await)
    }

    /// Handles an error on the stream. Polls the task first, because it may have ended with a result.
    async fn stream_error(&mut self, refusal: Refusal) -> CallProgress {
        if self.task.is_some()
            && let Ok(CallProgress::Done(ended)) = self.poll().await
        {
            return CallProgress::Done(ended);
        }
        CallProgress::Done(Err(CallFailure {
            detail: refusal.detail,
            is_unknown: self.task.is_some() || refusal.kind == RefusalKind::Lost,
        }))
    }

    /// Returns whether an item belongs to the task of this call. The first task that the server names becomes the task
    /// of this call.
    async fn belongs_to_call(&mut self, ids: TaskIds) -> bool {
        if let (Some(ours), Some(named)) = (&self.task, &ids.task)
            && **ours != **named
        {
            return false;
        }
        if let Some(context) = ids.context {
            self.context = Some(context.into());
        }
        self.task = self.task.take().or(ids.task.map(Text::from));
        if !self.is_announced
            && self.task.is_some()
            && let Some(thread) = self.thread(self.task.clone())
        {
            self.is_announced = true;
            self.emit(vec![RemoteEvent::Accepted(thread)]).await;
        }
        true
    }

    fn set_status(&mut self, status: Status) {
        if let Some(text) = self.status.text.take()
            && self.status.state == RemoteState::Running
        {
            self.earlier_text = Some(text);
        }
        self.status = status;
    }

    /// Returns the ids of the remote conversation, or `None` if the server has named neither task nor context.
    fn thread(&self, task: Option<Text>) -> Option<RemoteThread> {
        match (&self.context, task) {
            (None, None) => None,
            (context, task) => Some(RemoteThread {
                context: context.clone().unwrap_or_else(|| Text::from("")),
                task,
            }),
        }
    }

    async fn emit(&mut self, events: Vec<RemoteEvent>) {
        for event in events {
            // Fails if the reader is gone. Then this call is dropped at its next await.
            let _ = self.sender.send(Ok(event)).await;
        }
    }

    /// Builds the answer with its files. Adds a note to the text for each file that cannot be attached.
    async fn answer(
        &self,
        mut text: String,
        files: Vec<RemoteFile>,
        thread: Option<RemoteThread>,
    ) -> RemoteAnswer {
        let (files, problems) = attach(files, &self.agent.egress).await;
        for problem in problems {
            text.push_str(&format!("\n[{problem}]"));
        }
        RemoteAnswer {
            text,
            files,
            thread,
        }
    }
}
