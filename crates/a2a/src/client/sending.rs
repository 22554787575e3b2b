//! The beginning of a call: a message is sent once.
//!
//! As soon as the server has named a task, whatever breaks can be mended by asking for that task; before that, what broke
//! after the message left is not known, and is said to be so. What was refused was not taken, and may be put otherwise.

use super::call::{Call, Ended, Failure, Step};
use super::read::State;
use super::refusal::{Kind, Refusal};
use super::wire::{Ask, Reply};
use a2a::SendMessageRequest;
use lango_core::{AttachedFile, RemoteThread, Text};

impl Call<'_> {
    /// Sends a message and stays with what comes of it.
    pub async fn send(
        &mut self,
        key: &str,
        text: &str,
        files: &[AttachedFile],
        thread: Option<&RemoteThread>,
    ) -> Ended {
        self.context = thread.map(|thread| thread.context.clone());
        let asked_in = thread.and_then(|thread| thread.task.clone());
        self.is_reply = asked_in.is_some();
        let message = self.agent.message(key, text, files, thread);
        let mut reply = self.post(&message).await;
        if self.is_reply
            && let Err(refusal) = &reply
            && matches!(refusal.kind, Kind::NotFound | Kind::Unsupported)
        {
            // The task that asked is over or forgotten, and will never take a reply: it becomes a task of its own.
            self.is_reply = false;
            let context = thread.map(|thread| RemoteThread {
                context: thread.context.clone(),
                task: None,
            });
            let message = self.agent.message(key, text, files, context.as_ref());
            reply = self.post(&message).await;
        }
        let step = match reply {
            Ok(Reply::Whole(value)) => self.hear(&value, false).await,
            Ok(Reply::Stream(events)) => self.listen(*events).await,
            Err(refusal) if refusal.kind == Kind::Lost => Step::Open(refusal.detail),
            Err(refusal) => {
                if refusal.suggests_a_move() {
                    self.agent.doubt();
                }
                return Err(Failure {
                    detail: refusal.detail,
                    is_unknown: false,
                });
            }
        };
        match step {
            Step::Over(ended) => ended,
            Step::Open(_) if self.task.is_some() => self.follow().await,
            Step::Open(seen) => {
                let lost = Failure {
                    detail: format!("{seen}; what becomes of the task is not known"),
                    is_unknown: true,
                };
                match asked_in.filter(|_| self.is_reply) {
                    Some(task) => self.after_a_lost_reply(task, lost).await,
                    None => Err(lost),
                }
            }
        }
    }

    async fn post(&self, message: &SendMessageRequest) -> Result<Reply, Refusal> {
        let wire = &self.agent.wire;
        let patience = wire.patience.reply;
        if self.agent.streams() {
            let reply = wire.ask(Ask::SendStreaming(message), patience).await;
            match &reply {
                // The card promised streams and the server has none; it took nothing yet.
                Err(refusal) if matches!(refusal.kind, Kind::Unsupported | Kind::NoSuchMethod) => {}
                _ => return reply,
            }
        }
        wire.ask(Ask::Send(message), patience).await
    }

    /// Nothing was heard of a reply, but the task it is for has a name. If that still asks, nobody can tell whether it
    /// does so again or has not read the reply.
    async fn after_a_lost_reply(&mut self, task: Text, lost: Failure) -> Ended {
        self.task = Some(task);
        let step = self.look().await;
        match (step, self.status.state) {
            (Err(_), _) | (_, State::InputRequired | State::AuthRequired) => Err(lost),
            (Ok(Step::Over(ended)), _) => ended,
            (Ok(Step::Open(_)), _) => self.follow().await,
        }
    }

    /// Asks what became of a task.
    pub async fn go_on(&mut self, thread: &RemoteThread) -> Ended {
        self.context = Some(thread.context.clone());
        self.task = thread.task.clone();
        self.is_told = true;
        if self.task.is_none() {
            return Err(Failure {
                detail: "it never named the task, so nobody can ask what became of it".to_owned(),
                is_unknown: true,
            });
        }
        self.follow().await
    }
}
