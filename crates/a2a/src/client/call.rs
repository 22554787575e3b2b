//! One call under way: what is heard of it, and when that is its end.

use super::agent::A2aAgent;
use super::draft::Draft;
use super::files::{RemoteFile, attach};
use super::read::{self, Item, Names, State, Status};
use super::refusal::{Kind, Refusal};
use super::stream::{Events, StreamEnd};
use super::verdict::{Ending, Verdict, bounded};
use lango_core::{RemoteAnswer, RemoteError, RemoteEvent, RemoteThread, Text};
use tokio::sync::mpsc::Sender;

/// Where the events of a call go.
pub(crate) type Listener = Sender<Result<RemoteEvent, RemoteError>>;

/// How a call ended.
pub(crate) type Ended = Result<RemoteAnswer, Failure>;

/// Why a call has no answer.
#[derive(Debug)]
pub(crate) struct Failure {
    pub detail: String,
    pub is_unknown: bool,
}

/// Whether a call is over.
pub(crate) enum Step {
    Over(Ended),
    /// It is not, and this is what was seen last.
    Open(String),
}

/// A call under way.
pub(crate) struct Call<'a> {
    pub agent: &'a A2aAgent,
    listener: Listener,
    pub task: Option<Text>,
    pub context: Option<Text>,
    /// Whether the other side knows under which name the task runs.
    pub is_told: bool,
    /// Whether the message was a reply to a question.
    pub is_reply: bool,
    draft: Draft,
    pub status: Status,
    said_before: Option<String>,
}

impl<'a> Call<'a> {
    pub fn new(agent: &'a A2aAgent, listener: Listener) -> Self {
        Self {
            agent,
            listener,
            task: None,
            context: None,
            is_told: false,
            is_reply: false,
            draft: Draft::default(),
            status: Status {
                state: State::Running,
                words: None,
                files: Vec::new(),
            },
            said_before: None,
        }
    }

    /// Reads a stream to the end of the task or of the stream, whichever is first.
    pub async fn listen(&mut self, mut events: Events) -> Step {
        let patience = self.agent.wire.patience;
        let mut is_first = true;
        loop {
            let silence = if self.task.is_some() {
                patience.idle
            } else {
                patience.reply
            };
            let seen = match events.next(silence).await {
                Ok(value) => {
                    // The first thing on a stream is how the task stands. When we reply to a question, that may still be
                    // how it stood before.
                    let may_be_old = self.is_reply && std::mem::take(&mut is_first);
                    match self.hear(&value, may_be_old).await {
                        Step::Open(_) => continue,
                        over => return over,
                    }
                }
                Err(end) => end,
            };
            return match seen {
                StreamEnd::Cut(seen) => Step::Open(seen),
                StreamEnd::Endless => Step::Over(Err(Failure {
                    detail: "its stream has no end, and was given up".to_owned(),
                    is_unknown: true,
                })),
                StreamEnd::Error(refusal) => self.broken(refusal).await,
            };
        }
    }

    /// Takes in one thing that was said.
    pub async fn hear(&mut self, value: &serde_json::Value, may_be_old: bool) -> Step {
        let open = || Step::Open("it said nothing that lango understands".to_owned());
        let Some(item) = read::item(value) else {
            return open();
        };
        match item {
            Item::Message { names, text, files } if self.task.is_none() => {
                return Step::Over(self.message_only(names, text, files).await);
            }
            Item::Message { text, .. } => {
                self.said_before = Some(text);
                return open();
            }
            Item::Task {
                names,
                status,
                artifacts,
                last_said,
            } => {
                if !self.is_ours(names).await {
                    return open();
                }
                self.said_before = last_said.or(self.said_before.take());
                // Some leave out of a snapshot what they have sent before.
                if !artifacts.is_empty() {
                    let events = self.draft.replace_all(artifacts);
                    self.tell_all(events).await;
                }
                self.is_at(status);
            }
            Item::Status { names, status } => {
                if !self.is_ours(names).await {
                    return open();
                }
                self.is_at(status);
            }
            Item::Artifact {
                names,
                artifact,
                is_more,
            } => {
                if !self.is_ours(names).await {
                    return open();
                }
                let events = self.draft.take(artifact, is_more);
                self.tell_all(events).await;
                return open();
            }
        }
        if may_be_old
            && matches!(
                self.status.state,
                State::InputRequired | State::AuthRequired
            )
        {
            return open();
        }
        self.judged(false).await
    }

    /// Ends the call if the task is over. If it is, and nothing was said, it is worth a look of its own first.
    pub async fn judged(&mut self, is_look: bool) -> Step {
        let ending = Ending {
            state: self.status.state,
            draft: &self.draft,
            words: self.status.words.as_deref(),
            said_before: self.said_before.as_deref(),
        };
        let Some(verdict) = ending.verdict() else {
            return Step::Open("it is at work".to_owned());
        };
        if !is_look && !ending.has_words() {
            return Step::Open("it ended without a word".to_owned());
        }
        let (text, task) = match verdict {
            Verdict::Answer(text) => (text, None),
            Verdict::Question(text) => (text, self.task.clone()),
            Verdict::Failure(detail) => {
                if self.status.state == State::AuthRequired
                    && let Some(thread) = self.thread(self.task.clone())
                {
                    // Nobody will listen any more: it must not go on behind our back once somebody lets it.
                    self.agent.stop(&thread).await;
                }
                return Step::Over(Err(Failure {
                    detail,
                    is_unknown: false,
                }));
            }
        };
        let withdrawn = self.draft.before_answer(&text);
        self.tell_all(withdrawn.into_iter().collect()).await;
        let thread = self.thread(task);
        let mut files: Vec<RemoteFile> = self.draft.files().cloned().collect();
        for file in std::mem::take(&mut self.status.files) {
            if !files.contains(&file) {
                files.push(file);
            }
        }
        Step::Over(Ok(self.answer(text, files, thread).await))
    }

    /// Takes back what was shown, if anything was.
    pub async fn withdraw(&mut self) {
        let withdrawn = self.draft.before_answer("");
        self.tell_all(withdrawn.into_iter().collect()).await;
    }

    async fn message_only(&mut self, names: Names, text: String, files: Vec<RemoteFile>) -> Ended {
        if let Some(context) = names.context {
            self.context = Some(context.into());
        }
        let text = if text.is_empty() {
            "(It answered without any text.)".to_owned()
        } else {
            bounded(text, false)
        };
        let thread = self.thread(None);
        Ok(self.answer(text, files, thread).await)
    }

    /// A stream that says that something went wrong. The task itself may say more.
    async fn broken(&mut self, refusal: Refusal) -> Step {
        if self.task.is_some()
            && let Ok(Step::Over(ended)) = self.look().await
        {
            return Step::Over(ended);
        }
        Step::Over(Err(Failure {
            detail: refusal.detail,
            is_unknown: self.task.is_some() || refusal.kind == Kind::Lost,
        }))
    }

    /// Whether this is about the task of this call; the first that is named is.
    async fn is_ours(&mut self, names: Names) -> bool {
        if let (Some(ours), Some(named)) = (&self.task, &names.task)
            && **ours != **named
        {
            return false;
        }
        if let Some(context) = names.context {
            self.context = Some(context.into());
        }
        self.task = self.task.take().or(names.task.map(Text::from));
        if !self.is_told
            && self.task.is_some()
            && let Some(thread) = self.thread(self.task.clone())
        {
            self.is_told = true;
            self.tell_all(vec![RemoteEvent::Accepted(thread)]).await;
        }
        true
    }

    fn is_at(&mut self, status: Status) {
        if let Some(words) = self.status.words.take()
            && self.status.state == State::Running
        {
            self.said_before = Some(words);
        }
        self.status = status;
    }

    /// The conversation so far; none if the server named nothing of it.
    fn thread(&self, task: Option<Text>) -> Option<RemoteThread> {
        match (&self.context, task) {
            (None, None) => None,
            (context, task) => Some(RemoteThread {
                context: context.clone().unwrap_or_else(|| Text::from("")),
                task,
            }),
        }
    }

    async fn tell_all(&mut self, events: Vec<RemoteEvent>) {
        for event in events {
            // Nobody may be listening any more; then this call is dropped at its next wait.
            let _ = self.listener.send(Ok(event)).await;
        }
    }

    /// The answer with its files; what cannot be attached is named in its text.
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
