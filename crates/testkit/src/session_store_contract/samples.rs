//! A builder of sample logs.

use lango_core::{
    AgentName, AnswerSource, ApprovalAnswer, ApprovalId, ApprovalQuestion, ApprovalRequest,
    Attachment, CallId, Effect, Event, EventBatch, EventBody, FrameId, MessageOrigin, Outcome,
    Risk, SessionId, StopReason, Text, Timestamp, ToolName, Trust, TurnId, TurnSettings, Usage,
};
use serde_json::json;
use std::sync::Arc;

/// The root agent of the sample logs.
pub(super) const ROOT: &str = "test-root";

/// Returns a reference to a text file.
pub fn attachment(name: &str, digest: &str, size: usize) -> Attachment {
    Attachment {
        name: name.into(),
        media_type: "text/plain".into(),
        digest: digest.into(),
        size: size as u64,
    }
}

/// A builder of a session's log. It numbers the events and sets their turn and time.
#[derive(Debug, Clone)]
pub struct LogBuilder {
    session: SessionId,
    turn: TurnId,
    next_seq: u64,
    events: Vec<Event>,
}

impl LogBuilder {
    /// Starts the log of a session at its first event.
    pub fn new(session: &SessionId) -> Self {
        Self {
            session: session.clone(),
            turn: TurnId::from("t_0"),
            next_seq: 1,
            events: Vec::new(),
        }
    }

    /// Sets the `seq` of the next event.
    pub fn at(mut self, seq: u64) -> Self {
        self.next_seq = seq;
        self
    }

    /// Adds any event, at the time 1000 plus its `seq`.
    pub fn add(mut self, author: &str, frame: &str, body: EventBody) -> Self {
        self.events.push(Event {
            seq: self.next_seq,
            session: self.session.clone(),
            turn: self.turn.clone(),
            frame: FrameId::from(frame),
            author: AgentName::from(author),
            time: Timestamp(1000 + self.next_seq),
            body,
        });
        self.next_seq += 1;
        self
    }

    /// Starts a turn with a message of the user.
    pub fn ask(self, text: &str) -> Self {
        self.ask_from(Some(MessageOrigin::Person), text)
    }

    /// Starts a turn with a message of this origin. Messages in the logs of older versions have no origin.
    pub fn ask_from(mut self, origin: Option<MessageOrigin>, text: &str) -> Self {
        self.turn = TurnId::new(format!("t_{}", self.next_seq));
        self.add(
            AgentName::USER,
            "",
            EventBody::UserMessage {
                text: text.into(),
                origin,
                settings: None,
                attachments: Vec::new(),
            },
        )
    }

    /// Sets the folder of the turn that the last event starts.
    pub fn in_folder(mut self, folder: &str) -> Self {
        if let Some(EventBody::UserMessage { settings, .. }) =
            self.events.last_mut().map(|event| &mut event.body)
        {
            *settings = Some(Box::new(TurnSettings {
                topology: "d".into(),
                folder: Some(folder.into()),
                ..TurnSettings::default()
            }));
        }
        self
    }

    /// Attaches a file to the last event.
    pub fn attach(mut self, file: &Attachment) -> Self {
        if let Some(
            EventBody::UserMessage { attachments, .. }
            | EventBody::AgentDelegated { attachments, .. }
            | EventBody::ToolReturned { attachments, .. }
            | EventBody::RemoteReturned { attachments, .. },
        ) = self.events.last_mut().map(|event| &mut event.body)
        {
            attachments.push(file.clone());
        }
        self
    }

    /// Adds an agent's final message, which ends its frame.
    pub fn say(self, author: &str, frame: &str, text: &str) -> Self {
        self.add(author, frame, message(text, Trust::Trusted))
    }

    /// Adds the final message of an agent that has seen untrusted content.
    pub fn say_untrusted(self, author: &str, frame: &str, text: &str) -> Self {
        self.add(author, frame, message(text, Trust::Untrusted))
    }

    /// Delegates a task from the root to an agent, which opens a frame with this id.
    pub fn delegate(self, frame: &str, agent: &str, task: &str, finish: bool) -> Self {
        let (call, agent) = (CallId::from(frame), AgentName::from(agent));
        self.add(
            ROOT,
            "",
            EventBody::AgentDelegated {
                call,
                agent,
                task: task.into(),
                round: 1,
                finish,
                attachments: Vec::new(),
            },
        )
    }

    /// Requests an approval. Without a pattern it asks to reconcile an unknown outcome instead.
    pub fn request(self, id: &str, pattern: Option<Text>) -> Self {
        let request = ApprovalRequest {
            id: ApprovalId::from(id),
            agent: AgentName::from("operator"),
            call: CallId::from("c_1/1"),
            tool: ToolName::from("fs_write"),
            arguments: Arc::new(json!({ "path": "a", "content": "\u{0}" })),
            inspection: Default::default(),
            digest: "d".into(),
            folder: "/x".into(),
            effect: Effect::Idempotent,
            risk: Risk::Moderate,
            question: match pattern {
                Some(_) => ApprovalQuestion::Permission,
                None => ApprovalQuestion::UnknownOutcome,
            },
            reason: "it changes something".into(),
            pattern,
        };
        self.add(ROOT, "c_1", EventBody::ApprovalRequested(request))
    }

    /// Answers an approval request as the user.
    pub fn answer(self, id: &str, answer: ApprovalAnswer) -> Self {
        let body = EventBody::ApprovalAnswered {
            request: ApprovalId::from(id),
            answer,
            by: AnswerSource::Person,
        };
        self.add(AgentName::USER, "c_1", body)
    }

    /// Finishes the turn. The previous event is its answer.
    pub fn finish(self) -> Self {
        let answer = Some(self.next_seq - 1);
        self.add(
            ROOT,
            "",
            finished(Outcome::Answered { limit: None }, answer),
        )
    }

    /// Ends the turn with this outcome and without an answer.
    pub fn end(self, outcome: Outcome) -> Self {
        self.add(ROOT, "", finished(outcome, None))
    }

    /// Undoes a turn, after the end of the last one.
    pub fn undo(self, turn: &str, restored: &[&str]) -> Self {
        let body = EventBody::TurnUndone {
            undone: TurnId::from(turn),
            restored: restored.iter().map(|path| Text::from(*path)).collect(),
            skipped: Vec::new(),
            trust: Trust::Trusted,
        };
        self.add(AgentName::USER, "", body)
    }

    /// Adds a model reply with its usage: tokens sent, how many of them were cached, tokens received, and the cost.
    pub fn spend(
        self,
        author: &str,
        model: &str,
        (input_tokens, cached_tokens, output_tokens): (u64, u64, u64),
        cost: Option<u64>,
    ) -> Self {
        let mut body = message("", Trust::Trusted);
        if let EventBody::AgentMessage {
            model: name,
            usage,
            cost_micros,
            ..
        } = &mut body
        {
            *name = Some(model.into());
            *cost_micros = cost;
            *usage = Usage {
                input_tokens,
                cached_tokens,
                output_tokens,
                ..Usage::default()
            };
        }
        self.add(author, "", body)
    }

    pub fn cancel(self) -> Self {
        self.add(ROOT, "", finished(Outcome::Cancelled, None))
    }

    /// Adds a whole turn: question, answer and finish, three events.
    pub fn exchange(self, question: &str, answer: &str) -> Self {
        self.ask(question).say(ROOT, "", answer).finish()
    }

    /// Takes the events that were added since the last call, ready to be stored.
    pub fn batch(&mut self) -> EventBatch {
        std::mem::take(&mut self.events).into()
    }
}

pub(super) fn message(text: &str, trust: Trust) -> EventBody {
    EventBody::AgentMessage {
        text: text.into(),
        calls: vec![],
        is_final: true,
        model: None,
        usage: Usage::default(),
        cost_micros: None,
        opaque: None,
        stop: StopReason::Finished,
        trust,
    }
}

pub(super) fn finished(outcome: Outcome, answer: Option<u64>) -> EventBody {
    let usage = Usage {
        input_tokens: 12,
        output_tokens: 3,
        ..Usage::default()
    };
    EventBody::TurnFinished {
        outcome,
        answer,
        usage,
        cost_micros: Some(7),
        model_calls: 1,
        tool_calls: 0,
        rounds: 0,
    }
}
