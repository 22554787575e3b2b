//! The start of a call: sends a message, exactly once.
//!
//! Once the server has named a task, lango can recover from a broken connection by polling that task. If the connection
//! breaks before that, the outcome is unknown, and the call reports it as such. A refused message was not accepted, so
//! it may be sent again in another form.

use super::call::{Call, CallFailure, CallProgress, CallResult};
use super::read::RemoteState;
use super::refusal::{Refusal, RefusalKind};
use super::wire::{Operation, Reply};
use a2a::SendMessageRequest;
use lango_core::{AttachedFile, RemoteThread, Text};

impl Call<'_> {
    /// Sends a message and follows its task to the end.
    pub(super) async fn send(
        &mut self,
        key: &str,
        text: &str,
        files: &[AttachedFile],
        thread: Option<&RemoteThread>,
    ) -> CallResult {
        self.context = thread.map(|thread| thread.context.clone());
        let waiting_task = thread.and_then(|thread| thread.task.clone());
        self.is_reply = waiting_task.is_some();
        let message = self.agent.message(key, text, files, thread);
        let mut reply = self.post(&message).await;
        if self.is_reply
            && let Err(refusal) = &reply
            && matches!(
                refusal.kind,
                RefusalKind::NotFound | RefusalKind::Unsupported
            )
        {
            // The task that asked the question has ended or was deleted, so it accepts no reply. Start a new task
            // instead.
            self.is_reply = false;
            let context = thread.map(|thread| RemoteThread {
                context: thread.context.clone(),
                task: None,
            });
            let message = self.agent.message(key, text, files, context.as_ref());
            reply = self.post(&message).await;
        }
        let step = match reply {
            Ok(Reply::Whole(value)) => self.handle_item(&value, false).await,
            Ok(Reply::Stream(events)) => self.listen(*events).await,
            Err(refusal) if refusal.kind == RefusalKind::Lost => {
                CallProgress::Pending(refusal.detail)
            }
            Err(refusal) => {
                if refusal.suggests_move() {
                    self.agent.mark_stale();
                }
                return Err(CallFailure {
                    detail: refusal.detail,
                    is_unknown: false,
                });
            }
        };
        match step {
            CallProgress::Done(ended) => ended,
            CallProgress::Pending(_) if self.task.is_some() => self.follow().await,
            CallProgress::Pending(seen) => {
                let lost = CallFailure {
                    detail: format!("{seen}; the outcome of the task is unknown"),
                    is_unknown: true,
                };
                match waiting_task.filter(|_| self.is_reply) {
                    Some(task) => self.recover_reply(task, lost).await,
                    None => Err(lost),
                }
            }
        }
    }

    async fn post(&self, message: &SendMessageRequest) -> Result<Reply, Refusal> {
        let wire = &self.agent.wire;
        let timeout = wire.timeouts.reply;
        if self.agent.streams() {
            let reply = wire
                .request(Operation::SendStreaming(message), timeout)
                .await;
            match &reply {
                // The card announces streaming, but the server does not support it. It has not accepted the message.
                Err(refusal)
                    if matches!(
                        refusal.kind,
                        RefusalKind::Unsupported | RefusalKind::NoSuchMethod
                    ) => {}
                _ => return reply,
            }
        }
        wire.request(Operation::Send(message), timeout).await
    }

    /// Polls the task after a reply to its question got no answer. If the task still waits for input, the outcome is
    /// unknown: it may not have received the reply, or it may have asked another question.
    async fn recover_reply(&mut self, task: Text, lost: CallFailure) -> CallResult {
        self.task = Some(task);
        let step = self.poll().await;
        match (step, self.status.state) {
            (Err(_), _) | (_, RemoteState::InputRequired | RemoteState::AuthRequired) => Err(lost),
            (Ok(CallProgress::Done(ended)), _) => ended,
            (Ok(CallProgress::Pending(_)), _) => self.follow().await,
        }
    }

    /// Resumes a call after an interruption, by following its task.
    pub(super) async fn resume(&mut self, thread: &RemoteThread) -> CallResult {
        self.context = Some(thread.context.clone());
        self.task = thread.task.clone();
        self.is_announced = true;
        if self.task.is_none() {
            return Err(CallFailure {
                detail: "it never gave the task an id, so its outcome cannot be determined"
                    .to_owned(),
                is_unknown: true,
            });
        }
        self.follow().await
    }
}
